// Package labs embeds the labs that come with Weft, so that `weft paper` and others find them from
// any directory. It contains every lab file of this folder and no logic.
package labs

import "embed"

// Files holds the lab files by their path below this folder, such as pc4/incast.yaml.
//
//go:embed *.yaml */*
var Files embed.FS
