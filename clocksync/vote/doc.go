// Package vote chooses among sources of time that contradict each other: the largest set of claims that can all be true,
// if more than half of the sources are in it. It is the rule of Marzullo and Owicki (Maintaining the time in a distributed
// system, PODC 1983), which NTP calls the intersection of falsetickers and truechimers (RFC 5905, section 11.2.1), but that
// a majority is of all sources that the lab has, not of those that answer: that fewer answer makes none of them right.
//
// In come intervals of time; out goes the part that most of them share. It is pure.
package vote
