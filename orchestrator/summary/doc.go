// Package summary turns what an engine measured, an Outcome, into the record of a run.
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// It is pure: an engine fills an Outcome, Summarize computes the summary from it and the
// experiment, and the driver of the run writes files. The same outcome gives the same bytes,
// because rows are sorted before anything is added up; no order in which an engine's threads ran
// shows.
//
// Besides statistics, a summary judges. Settle decides the status of a run, and warnings say what
// makes its numbers doubtful: timeouts that decide the tail, clocks that were never corrected or
// state wrong bounds, results with wrong elements. Every threshold of a judgement is a constant
// with a reason. Values that were not measured are nil and never 0.
//
// The record has units in its names (microseconds, nanoseconds, Gbps); an Outcome has lab time in
// picoseconds. Start reading at Outcome and Summarize in outcome.go. times.go sums up collectives,
// rates.go and plateaus.go throughput, clockreport.go and stability.go clocks. Package failure
// explains runs that failed.
package summary
