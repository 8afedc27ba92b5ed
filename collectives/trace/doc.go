// Package trace parses traces of training steps: a list of collectives with their sizes, and the
// time that ranks compute between them. Text goes in, items come out. It is pure. Start reading at
// Parse and Item.
//
// A trace is CSV (RFC 4180). The first line names the columns, in any order. Each further line is a
// collective that all ranks take part in, each in its group. Lines that begin with # are comments.
// Empty fields and missing columns have their default:
//
//	collective  all-reduce, all-to-all, ...: one of schedule.Collectives; required
//	size        size of the buffer as in nccl-tests, with a unit: 25MB, 8MiB; required
//	name        name of the line
//	algorithm   one of schedule.Algorithms; auto, which is the first
//	type        float32, bfloat16 or int32; float32
//	op          reduction, if the collective reduces: sum, prod, max or min; sum
//	compute     time that every rank computes before the collective: 120us; 0s
//	jitter      maximum additional time, drawn for each rank; 0s
//	start       when computing begins, from the start of the trace; after the line before
//	repeat      number of repetitions, one after the other; 1
//	group       ranks per group, a divisor of their number; all ranks are one group
//	stride      distance between the members of a group, in ranks; 1
//	root        rank of the root in the group, if the collective has one; 0
//	chunk       size of the pieces of messages, or off; schedule.DefaultChunk
//	parallel    all-to-all: concurrent peers; all, or 16 if windowed
//	local       hierarchical: ranks per local group; required there
//	shift       permute: rank r of a group sends to r + shift, cyclically; 1
//
// For example, tensor-parallel groups of 8 neighbours have group 8. The data-parallel groups across
// them, of 4 among 32 ranks, have group 4 and stride 8.
package trace
