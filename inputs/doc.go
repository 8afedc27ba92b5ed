// Package inputs reads jobs of other programs: it recognizes the format by the content and calls
// the package of that format, which returns a graph.Graph.
//
//	g, format, err := inputs.Read(os.DirFS("."), "llama7b", inputs.Options{})
//
// In come a folder and a name in it: a file, or a folder with a file for each rank, compressed or
// not. Out come a graph and the name of its format.
//
// Files are hostile: what is read is bounded, streamed, and refused with the file and the place
// where it is not understood. Nothing that a file says is ignored in silence: docs/inputs.md lists
// what of each format is understood, refused and approximated.
//
// The one idea: a format is a row of formats in read.go, with a function that recognizes it and one
// that reads it. Start reading there; package source has the bounds, and
// write.go writes jobs.
package inputs
