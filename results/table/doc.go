// Package table prints summaries for people: one run in full, several runs as rows, two engines
// side by side, clocks, expectations, warnings, and progress.
//
// Input are record.Summary values, which engines and stored runs produce alike. Output is text in
// the units of a lab file, for a terminal or as Markdown for the job summary of a CI system. The
// package is pure apart from the writers it is given: callers decide on colours, on the width and
// on a progress bar (Style, NewPace), and nothing here looks at the environment or a file.
//
// A Table is built once, and written for a terminal, as Markdown, or by package report as a part of
// a page. Its numbers are those of record.Numbers.
//
// The one idea: a table never shows a number that means nothing. Completion times of an incomplete
// run, round trips without an acknowledgement and quantiles without samples are dashes, not zeros
// (known.go). Columns that are the same in all rows move into a line above, and a narrow terminal
// loses the least important columns first, with a note (columns.go).
//
// Start with summary.go for one run, points.go for several, and warnings.go for what all of them
// share.
package table
