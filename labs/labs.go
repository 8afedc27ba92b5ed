// Package labs holds the labs that come with Weft, as files inside the program: `weft paper` finds its labs wherever it is
// called. What goes in is every lab file of this folder; nothing is computed.
package labs

import "embed"

// Files are the lab files by their path below this folder: pc4/incast.yaml.
//
//go:embed *.yaml */*
var Files embed.FS
