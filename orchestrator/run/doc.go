// Package run takes a checked lab from its text to its record: it builds the experiment (graph, fabric, and
// what every host will do), gives it to an engine, and turns what came back into a summary.
//
// Building is pure. Engines are sim (virtual time, in this process) and emu (real sockets in namespaces).
package run
