// Package run drives the runs of a lab. It chooses an engine for an experiment, runs it, and keeps
// the results in a run directory.
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// An experiment and Options go in. A run directory (package store) and a record.Summary come out.
// There are two engines: sim runs in virtual time in this process, emu in real time with sockets,
// in namespaces or containers.
//
// The one idea is that both engines return a summary.Outcome, so that everything after them is
// shared. The pure stages are in packages experiment and summary. This package has the rest: it
// measures the machine, starts processes, writes files and takes time.
//
// These must hold. An engine is chosen before a directory is created, so a lab that no engine can
// run leaves nothing. From then on the directory always gets a summary, also when the run fails or
// is interrupted. The first error of writing a file ends the run and fails it. A simulation is a
// function of lab, seed and version: the number of workers and the machine make no difference to
// its files.
//
// Start reading at Run in run.go. engine.go chooses the engine and the dilation, placement.go the
// runtime and the datapath. simulate.go and emulated.go are the engines. forecast.go estimates how
// long a run takes, plan.go describes what a run or a deployment creates, and deployment.go
// prepares the network of a lab that stays up.
package run
