// Package render draws a topology: as text for a terminal, as Graphviz dot, as Mermaid, and as an SVG picture
// that needs nothing else. In comes a graph and the name of its lab; out comes a string. Every link that is
// unlike most of its tier, or down, is shown as such. The same graph always gives the same bytes.
//
// It writes no file.
package render
