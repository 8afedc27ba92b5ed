// Package plot draws the charts of a run: lines over time, distributions, sweeps with their noise, bars.
//
// What comes in are named series of plain numbers in the units that the axes name; what goes out are the bytes of an SVG
// or a PNG. The same chart gives the same bytes: nothing of a drawing depends on a clock, a map's order or the fonts of
// the machine. Text is drawn as outlines, so that an SVG needs no font and a page with many of them stays one file.
//
// The defaults are what a reader needs: colours that colour-blind people tell apart (Okabe and Ito, Color Universal
// Design, 2008), dashes and marks that survive a black and white printer, a legend above the data and never on it, axes
// with their units, and a caption for where a number comes from. A chart that cannot be drawn (series of two lengths, a
// zero on a logarithmic axis) is an error that says which value of which series is wrong.
//
// It is pure, and safe for concurrent use.
package plot
