// Package expect is the language of a lab's expect section: one comparison per line over the summary of a
// run, such as
//
//	fct_slowdown.p99 <= 1.10 * flows
//	abs(rtt.mean - (base_rtt + transport.pc4.target_qtime)) <= 10% * rtt.mean
//	verified == true
//
// What comes in is a line of text and, later, a summary; what goes out is a parsed expression, an error that
// says at which byte of the line something is wrong, or a verdict. Quantities carry units (10us, 25%, 100Gbps,
// 4KiB) and units are checked: a time is never compared with a number. Comparisons allow for the rounding of
// binary fractions, one part in 10^9, and nothing else. It is pure.
//
// Names are those of the summary (see Names) and the settings of the lab by their path, as `weft explain`
// prints them: transport.pc4.target_qtime, workload.0.ranks, topology.mtu.
//
//	line    = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//	sum     = product { ("+" | "-") product }
//	product = factor { ("*" | "/") factor }
//	factor  = "-" factor | quantity | name [ "[" selector { "," selector } "]" ] | "(" sum ")"
//	        | ("steps" | "first" | "last") "(" text in double quotes ")"
//	        | ("abs" | "min" | "max" | "mean" | "median" | "sqrt") "(" sum { "," sum } ")"
//	selector = key "=" (value | "*")
//
// Steps are what switches and hosts did for coordinated congestion management, as sentences (docs/ccm.md). steps("leaf0 moves *")
// is how often one happened that reads so, with * for any text; first and last are when.
//
// A selection compares points of one sweep: fct.p99[transport=pc4] <= 0.5 * fct.p99[transport=roce] has to hold for every
// combination of what it leaves open, such as the number of ranks. A key is a path of the sweep, or its beginning or end
// where only one path has it. * means all points, of which min, max, mean or median is taken:
// mean(fct.p99[transport=pc4, seed=*]).
package expect
