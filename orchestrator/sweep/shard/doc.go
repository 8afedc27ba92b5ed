// Package shard runs the points of a shard, and keeps the files of a sweep that several machines
// share.
//
// In goes the directory of a sweep, with its submission, and the number of a shard. Out come run
// directories beside it, as a local sweep leaves them, and what Scan finds in the sweep's
// directory.
//
//	<results>/<lab>/<stamp>-<n>            a run, renamed into its place
//	<results>/<lab>/sweep-<stamp>-<engine> the sweep's directory: its page, and in submission/
//	  submission.json  rounds/R.json       what was submitted, and each start of its shards
//	  tries/           work/               tasks that began a point; runs that are not finished
//	  notes/           differs/            points without a run; copies that disagree
//	  cancelled  collected                 what was asked for, or is over
//
// The one idea: a directory is renamed from work/ into its place only when everything in it is
// written, so a killed task leaves either a whole run or none. All decisions are in package sweep.
//
// These must hold. A task writes nothing outside of submission/ but finished runs. It needs no
// lock: two tasks of one shard may run at once, also on machines that do not see each other. A task
// whose sweep was cancelled or collected ends by itself.
//
// Start reading at Run in run.go; Dir in dir.go has the files, place.go puts a run in its place,
// and keep.go restarts a process that was killed.
package shard
