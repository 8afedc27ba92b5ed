// Package stats computes the statistics that reports and summaries show.
//
//	one sample     Mean, Quantile, Describe, Jain
//	many samples   Dist: the same in bounded memory, for what packets leave
//	uncertainty    MeanInterval, Bootstrap: 95 % confidence intervals
//	two samples    MannWhitney, ZTest, PredictionTest: two-sided p-values
//	many tests     BenjaminiHochberg: p-values adjusted for their number
//
// In come plain numbers or times; out come numbers, an Interval or a p-value. Units are the
// caller's, except for Dist, which records lab time in picoseconds. A p-value is the probability
// that chance alone makes two samples differ at least as much as they do. The smaller it is, the
// stronger the evidence of a real difference; where too few values say anything, it is 1.
//
// Quantiles are nearest-rank everywhere: always one of the values, never interpolated. So a 99th
// percentile is a time that some flow really took.
//
// All functions are pure and deterministic. Bootstrap draws from a generator with a fixed seed, so
// that the same values give the same interval. An empty sample is never an error: each function
// says what it returns for one.
//
// Start reading at Quantile and Describe in stats.go. The sources of the tests are cited with each.
package stats
