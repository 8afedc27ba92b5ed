// Package lab reads the lab file: strict YAML in, a checked Lab out, or every error at once with its line and
// column. It opens no file by itself; callers hand it bytes.
package lab
