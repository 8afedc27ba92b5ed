// Package vote finds the truth among sources of time that contradict each other: the largest set of
// claims that can all be true, if more than half of the sources are in it.
//
// In come intervals of time, one per source. Out goes the part that most of them share, and their
// number. The rule is that of Marzullo and Owicki ("Maintaining the time in a distributed system",
// PODC 1983), which NTP uses to separate truechimers from falsetickers (RFC 5905, section 11.2.1).
// Unlike NTP, a majority here is one of all sources of the lab, not of those that answer: if fewer
// answer, that makes none of them right. It is pure.
package vote
