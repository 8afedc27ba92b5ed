// Package expect implements the language of a lab's expect section: one comparison per line over
// the summary of a run, such as
//
//	fct_slowdown.p99 <= 1.10 * flows
//	abs(rtt.mean - (base_rtt + transport.pc4.target_qtime)) <= 10% * rtt.mean
//	verified == true
//
// Parse turns a line into an Expr; Expr.Eval and Expr.Sweep turn an Expr and summaries into a
// record.Expect. An Error has the position of a mistake in the line. The package is pure.
//
// The one idea is that quantities have dimensions. They carry units (10us, 25%, 100Gbps, 4KiB), and
// types are checked before anything runs: a time is never compared with a number. A line can be
// checked without the lab, against its settings (Expr.Check), and against the points of its sweep
// (Expr.CheckSweep).
//
// Two things hold. A number that a run did not measure is an error, and a line with an error is
// missed: nothing never meets an expectation. Comparisons allow for the rounding of binary
// fractions, one part in 10^9, and for nothing else.
//
// Names are those of record.Numbers (Names lists them), and the settings of the lab by their path,
// as `weft explain` prints them: transport.pc4.target_qtime, workload.0.ranks, topology.mtu.
//
//	line     = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//	sum      = product { ("+" | "-") product }
//	product  = factor { ("*" | "/") factor }
//	factor   = "-" factor | quantity | name [ selection ] | "(" sum ")"
//	         | ("steps" | "first" | "last") "(" text in double quotes ")" [ selection ]
//	         | ("abs" | "min" | "max" | "mean" | "median" | "sqrt") "(" sum { "," sum } ")"
//	selection = "[" key "=" (value | "*") { "," key "=" (value | "*") } "]"
//
// Steps are actions of switches and hosts in coordinated congestion management, as sentences
// (docs/ccm.md). steps("leaf0 moves *") is the number of steps that match the pattern, in which *
// stands for any text; first and last are the times of the first and last one.
//
// A selection compares points of one sweep: fct.p99[transport=pc4] <= 0.5 * fct.p99[transport=roce]
// must hold for every combination of the values that it leaves open, such as the number of ranks. A
// key is a path of the sweep, or the beginning or end of only one path. * selects all points, for
// min, max, mean or median: mean(fct.p99[transport=pc4, seed=*]).
//
// Start reading at Parse, names.go for the names, check.go for the types and sweep.go for
// selections.
package expect
