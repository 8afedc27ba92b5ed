// Package paper defines how a paper's claims are written down and compared with Weft's
// measurements.
//
// Input: paper.yml in the folder of a paper's labs, with figures, the labs that reproduce them, and
// claims. A claim has the paper's number, an expression over the summaries of the runs (package
// results/expect), and a tolerance. Output: a checked Paper and, after the labs have run, a table
// of claims: the paper's number, ours, pass or fail.
//
// A new figure needs a lab and an entry in paper.yml, and no code; docs/papers.md describes the
// format. The package is pure: files come from an fs.FS, and the command line runs the labs. Start
// with Load (paper.go) and Figure.Judge (judge.go).
package paper
