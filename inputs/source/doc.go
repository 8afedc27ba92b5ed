// Package source opens the files of other programs and bounds what readers take from them.
//
//	f, err := source.Open(os.DirFS("."), "job.goal.gz", "job.goal.gz")
//	lines := source.NewLines("job.goal.gz", f)
//	for lines.Next() { ... lines.Text ... lines.Errorf("%q is not understood", word) }
//	return lines.Err()
//
// In comes a name in a folder; out comes a stream of bytes, decompressed, without a byte order
// mark, and bounded. Lines bounds the lines of a text, and Values what a JSON or XML decoder may
// read at a time. JSON is the decoder of JSON, which refuses a key that is there twice.
//
// The one idea: memory grows with what a reader keeps, never with what a file has. Every error,
// also one of reading, is a graph.Error with the line or the byte.
//
// Start reading at Open.
package source
