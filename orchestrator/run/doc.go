// Package run drives the runs of a lab: it chooses an engine for an experiment, has it run, and keeps what comes of it.
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// What is pure lies in packages experiment and summary. What is here measures the machine, starts processes, writes files and
// takes time. Engines are sim (virtual time, in this process) and emu (real sockets, in namespaces or containers).
// Run (run.go) is where to start reading.
package run
