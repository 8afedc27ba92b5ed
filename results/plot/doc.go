// Package plot draws the charts of a run: lines over time, distributions, sweeps with error bars,
// bars.
//
// Inputs are named series of plain numbers, in the units that the axes name. The output is the
// bytes of an SVG or a PNG. The same chart gives the same bytes: nothing depends on a clock, the
// order of a map or the fonts of the machine. Text is drawn as outlines, so that an SVG needs no
// font and a page with many of them stays one file.
//
// The defaults suit readers: colours that colour-blind people can tell apart (Okabe and Ito, Color
// Universal Design, 2008), dashes and markers that survive a black and white printer, a legend
// above the data and never on it, axes with units, and a caption for the origin of the numbers. A
// chart that cannot be drawn (series of two lengths, a zero on a logarithmic axis) is an error that
// names the value and its series.
//
// The package is pure and safe for concurrent use. Start with Chart in chart.go; draw.go lays a
// figure out, and svg.go writes it.
package plot
