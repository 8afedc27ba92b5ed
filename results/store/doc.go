// Package store writes the directory of a run during the run, and reads it back.
//
// Input is rows (package record) and the final summary. Output is a directory:
//
//	runs/<lab>/<second>-<n>/   manifest.json  summary.json  lab.yaml  *.parquet  events.jsonl
//
// The one idea is that a run can be killed at any instant and its directory still makes sense. A
// data file is a Parquet file with a footer after every row group, so a file that ends anywhere
// holds all groups up to its last intact footer. The manifest starts with status "running" and the
// identity of the process, so that a reader recognizes a killed run. Room for the last manifest and
// the summary is reserved on the disk from the start.
//
// Invariants: a directory is created once and never overwritten. Every file that a run left is
// listed in its manifest with its size and CRC-32C, and readers return an error for a file that
// does not match, before they return any row. Wall time and machine appear in manifest.json and
// summary.json only: the data files of a simulated run are a function of lab, seed and version,
// byte for byte.
//
// Start reading at Open and Run.Finish for writing, at Scan and Numbers for reading, and at
// groups.go for the file format. docs/results.md describes the files for users.
package store
