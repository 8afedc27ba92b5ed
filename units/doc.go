// Package units defines the quantities that every other package computes with, and how they are
// written in text.
//
//	type       unit                 example in a lab file
//	Time       picosecond           10us
//	Bytes      byte                 4KiB, 50MB
//	Bandwidth  bit per second       100Gbps
//	float64    ratio                25%
//
// The one idea is exactness. Every quantity but a ratio is an int64 in a unit fine enough that no
// lab needs a fraction of it: at 400 Gbps a 64-byte frame lasts 1.28 ns, so times are picoseconds.
// Integers add up to the same sum in any order, so a simulation gives the same bytes on every
// machine. A rate that does not divide a second evenly leaves a remainder; Line carries it from
// packet to packet, so that the rate holds in the long run.
//
// Text always carries its unit: "10us" is a time and "10" is an error. Parsing is exact or fails,
// and what String writes, parsing reads back as the same value. Errors quote the text, say what was
// expected and suggest the unit that was probably meant.
//
// Everything here is a value. Nothing reads a clock, and nothing allocates outside of text. Start
// reading at Time and Bandwidth; quantity, in text.go, holds the rules of text.
package units
