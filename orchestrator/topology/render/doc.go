// Package render draws a topology: as text for a terminal, as Graphviz dot, as Mermaid, and as a
// self-contained SVG picture.
//
// Input is a topology.Graph and a title, output a string; NewDocument gives the same as JSON. The
// same graph always gives the same bytes, on every processor. The package is pure and writes no
// file.
//
// The one idea of the texts: most links of a tier are alike (type linkTier), so a tier is described
// once, and only links that differ, or are down, are listed or labelled.
//
// The one idea of the picture: boxes have a row and a place in it, and an arrangement turns those
// into coordinates and lines. There are three: layers for trees (layout.go), frames for racks and
// groups (framed.go), and grids for tori (gridded.go). Start with SVG in svg.go, then layout.
package render
