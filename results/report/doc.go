// Package report turns stored runs into charts, tables, HTML pages and comparisons.
//
// Input is a run directory (package store), which Load reads into a Run, or the summaries of the
// points of a sweep. Output is for people:
//
//   - Run.Page is the report of a run, with the charts of Run.Figures.
//   - SweepPage is the report of a sweep, with the charts of Charts.
//   - Compare returns the differences between two sets of runs, and whether they exceed noise.
//   - List and WriteList list the runs below a directory.
//   - FaultLocations numbers the links and hosts with faults, for charts and drawings.
//
// A Page is one HTML file. Charts are those of package plot. The package writes no files, and it
// computes nothing that a summary already has.
//
// Three things hold. The same data gives the same bytes, except for start times and wall times of a
// manifest. The text of a lab is escaped, and the content policy of a page forbids fetching. A
// value that a run did not measure has no chart, and a dash in a table, never a zero.
//
// Start reading at Load and Run.Page; for comparisons at Compare, which matches the points of two
// sides (pairs), tests each metric (comparePoint) and judges the differences (Judge).
package report
