// Package report turns what a run left into something to look at: charts of its data files, and pages of HTML that are one
// file each and fetch nothing.
//
// What comes in is a run directory (package store) or the summaries of a sweep's points; what goes out are charts (package
// plot) and pages. The same data gives the same bytes, but for the instants and wall times that a manifest has.
package report
