// Package servo turns measured offsets into the rate of a software clock.
//
// A node's oscillator is never touched. A servo steers a line (clocksync.Correction) that maps the
// hardware clock to synchronized time. Its inputs are samples (reading, offset from the reference);
// its output is the rate of the line and whether the line steps. Times are picoseconds of the
// hardware clock or of the reference; rates are relative (1e-9 is one part per billion) and
// positive if the line runs faster than the hardware clock.
//
// Gains are normalised: they are shares of an offset that are corrected until the next sample,
// whatever the interval. Gains in 1/s, as in PTP programs, are wrong by a factor of a thousand if
// the same protocol runs a thousand times faster (docs/adr/0075).
//
// Servo in servo.go is the interface; PI and LinReg implement it. Regression is the line of LinReg,
// also used alone by package huygens. Filter smooths measured delays. Bound estimates how far a
// synchronized clock may be off. No part reads a clock, and no input makes a NaN come out.
package servo
