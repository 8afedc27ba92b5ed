// Package examples holds the program that weft new cc begins with. The programs below cc are
// modules of congestion controls, which make builds: aimd to learn from, and swift and dcqcn,
// whose runs have the same data files as those of the built-in ones.
package examples

import "embed"

// AIMD is the folder of a module: the program, its test and a lab.
//
//go:embed cc/aimd/main.go cc/aimd/main_test.go cc/aimd/lab.yaml
var AIMD embed.FS
