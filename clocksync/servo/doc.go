// Package servo turns measured offsets into the rate of a software clock.
//
// A node's oscillator is never touched: what is steered is a line (clocksync.Correction), by which the node reads
// synchronized time off its hardware clock. In come samples (reading, offset from the reference); out comes the rate
// of the line and whether it should jump. Times are picoseconds of the hardware clock or of the reference; rates are
// relative (1e-9 is one part per billion) and positive when the line must run faster than the hardware clock.
//
// Gains are normalised: they say what share of an offset is corrected by the next sample, whatever the time
// between samples. Gains in 1/s, as PTP programs have them, are wrong by a factor of a thousand when the same
// protocol runs a thousand times faster (see Scaled).
//
// It reads no clock, and no input makes a NaN come out.
package servo
