// Package record defines the records of a run: the summary, the manifest and the rows of the data
// files. Engines fill them in, package store writes and reads them, and packages stats, expect,
// table and report use them.
//
// There are two kinds. Summary, Manifest and Sweep are JSON documents: their `json` names are a
// public format, described in docs/results.md and by `weft schema`, so a Go field may be renamed
// and its key may not. The rows (Flow, Part, Queue and others, in rows.go) are converted by package
// store into Parquet columns.
//
// All times and rates are in lab units, with dilation divided out; JSON names end in their unit
// (_us, _ns, _bytes, _gbps). Wall time appears in Summary.WallS and in the manifest only. An absent
// field was not measured; 0 is a measurement unless its comment says otherwise.
//
// Numbers lists the quantities of a summary that people speak of, each once: its name in
// expectations, its field, its label, its unit, which direction is worse, and why a run may lack
// it. Expectations, tables, comparisons and charts select from that list.
//
// Start reading at Summary, then at Number. Beside Numbers the package has no logic beyond small
// predicates such as Summary.Complete.
package record
