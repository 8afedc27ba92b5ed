// Package kineto reads profiles of PyTorch (Kineto): a JSON file for each rank, with the kernels
// that each stream of its GPU ran.
//
//	{"distributedInfo": {"rank": 0}, "traceEvents": [
//	  {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 10, "dur": 5, "args": {"stream": 7}},
//	  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 15, "dur": 9,
//	   "args": {"stream": 20, "Collective name": "allreduce", "In msg nelems": 1024,
//	            "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}}]}
//
// In come the files of all ranks, read as streams; out comes a graph.Graph. Kernels and copies
// become computations of their duration, NCCL's kernels collectives and messages of their group and
// size.
//
// A profile has times, not dependencies. A kernel waits for the one before it on its stream. It
// also waits for the kernel of another stream that ended last before it began, if that ended after
// its own stream was free: then it was that kernel that it waited for. Time that passes between is
// kept as a computation, since the stream waited for the CPU. NCCL's kernels without a collective's
// name, group or size, as old versions of PyTorch write them, are an error that names the first and
// their number.
package kineto
