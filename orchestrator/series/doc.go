// Package series carries out the runs of a command line: labs, the points of their sweeps, and both
// engines where a lab asks for both.
//
//	labfile.File -> []Job -> Runner -> []record.Summary, errors -> Across
//
// Lab files go in, checked. The runs leave their directories, pages and the page of each sweep. The
// caller gets summaries in the order of the jobs, and what happens meanwhile through a Watcher.
//
// The one idea is that a Job has everything that tells one run from another, and a Runner
// everything that they share. A simulation takes one processor, so simulations run side by side; an
// emulation measures time, so it has the machine to itself.
//
// These must hold. Jobs are numbered before any of them starts, so the directories of a lab's runs
// are in the order of its points. A run that never started still has a summary. After an
// interruption no further job starts. Of two runs that repeat one, exactly one counts.
//
// Start reading at Jobs in job.go, and at Runner.Run in runner.go. repeat.go has the runs that are
// made twice, across.go what is judged and drawn over the points of a sweep.
package series
