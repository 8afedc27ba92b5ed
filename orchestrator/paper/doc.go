// Package paper is how a paper's claims are written down and held against what Weft measures.
//
// What comes in is paper.yml in the folder of a paper's labs: figures, the labs that reproduce them, and claims, each
// with the paper's number, an expression over the summaries of the runs (package results/expect), and a tolerance. What
// goes out is a checked Paper and, once the labs were run, a table of claims: the paper's number, ours, pass or fail.
//
// A new figure needs a lab and an entry in paper.yml, and no code; docs/papers.md describes the format. It is pure: the
// files come from an fs.FS, and who runs the labs is the command line.
package paper
