// Package trace reads what a training step asks of the network: a list of collectives with their sizes, and how
// long ranks compute between them. Text comes in, items come out; it is pure.
//
// A trace is CSV (RFC 4180). The first line names the columns, in any order; every further line is a collective
// that all ranks take part in, each in its group. Lines that begin with # are comments. Empty fields, and columns
// that are left out, have the default:
//
//	collective  all-reduce, all-to-all, ...: one of schedule.Collectives; required
//	size        of the buffer in the meaning of nccl-tests, with a unit: 25MB, 8MiB; required
//	name        what the line is called
//	algorithm   one of schedule.Algorithms; auto: the first
//	type        float32, bfloat16 or int32; float32
//	op          of a collective that reduces: sum, prod, max or min; sum
//	compute     how long every rank computes before it begins its part: 120us; 0s
//	jitter      how much longer at most, drawn for each rank; 0s
//	start       when computing begins, since the trace began; when the rank's part of the line before is done
//	repeat      so many times, one after the other; 1
//	group       ranks per group, a divisor of their number; all ranks are one group
//	stride      members of a group are so many ranks apart; 1
//	root        of a collective that has one, its rank in the group; 0
//	chunk       what messages are cut into, or off; schedule.DefaultChunk
//	parallel    all-to-all: peers exchanged with at once; all, or 16 if windowed
//	local       hierarchical: ranks per local group; required there
//	shift       permute: rank r of a group sends to r + shift, around; 1
//
// So tensor-parallel groups of 8 neighbours are group 8; the data-parallel groups across them, of 4 among 32
// ranks, are group 4 and stride 8.
package trace
