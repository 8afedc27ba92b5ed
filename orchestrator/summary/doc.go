// Package summary turns what an engine brings back, an Outcome, into the record of a run. It is pure: engines fill an Outcome,
// and whoever drives a run writes the record to files.
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// Summarize is the whole of it for a run that went well. ByFaults explains a run that failed by the faults of its lab, and says
// what could be set for the run to survive them.
package summary
