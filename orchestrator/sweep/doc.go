// Package sweep decides how the points of a sweep are spread over machines: which shard runs which
// point, what the files and an engine's tasks say about the progress, and which copy of a result
// counts. It does no I/O.
//
// In goes a Submission, written once by weft sweep submit, what was found in the sweep's directory
// (Found), and the tasks of an engine such as Docker Swarm or Slurm (Task). Out come the points of
// a shard, the next step of a point (Decide), the state of the sweep (Judge), and the texts that
// engines need: a batch script for Slurm, a manifest for Kubernetes.
//
//	submission.json -> shards -> a task each -> run directories, renamed into place
//
// The one idea is that everything is idempotent. The submission fixes the name of every run, so any
// number of copies of a shard may run, one after another or at the same time: each skips what is
// finished, writes to a directory of its own and renames it. The file system decides which copy is
// first. A second copy of a simulation must have the same bytes, which also checks the machines.
//
// These must hold. A point has at most one result. A failed point is a result; a task fails only if
// its machine does. A point during which a task ends MaxTries times is given up by name, and the
// others go on. Nothing waits for a task that may be gone: the state follows from the files.
//
// Start reading at Submission in submission.go and at Judge in state.go. Package shard runs the
// points; packages local, swarm and slurm start tasks.
package sweep
