// Package inputs reads jobs of other programs: it tells the format from the content and calls the
// package of that format, which returns a graph.Graph.
//
//	g, format, err := inputs.Read(os.DirFS("."), "llama7b", inputs.Options{})
//
// Files are hostile: what is read is bounded, streamed, and refused with the file and the place
// where it is not understood. Nothing that a file says is ignored in silence: docs/inputs.md lists
// what of each format is understood, refused and approximated.
package inputs
