// Package sdk holds the source of the packages that programs for Weft are written against, so that
// weft new can put a copy beside a new program: building one then needs no network.
//
// The packages themselves are below: cc for congestion control.
package sdk

import "embed"

// Files are the Go files of package cc, without its tests.
//
//go:embed cc/cc.go cc/module.go cc/serve.go cc/exports.go cc/methods.go
var Files embed.FS
