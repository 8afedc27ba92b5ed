// Package summary turns what an engine brings back, an Outcome, into the record of a run. It is pure: engines fill an Outcome,
// and whoever drives a run writes the record to files.
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// Summarize (outcome.go) is where to start reading. Package failure explains runs that failed.
package summary
