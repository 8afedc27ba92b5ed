// Package flows reads lists of flows: connection matrices of htsim (.cm) and flow lists of the ns-3
// simulators of HPCC and SimAI (flow.txt). Which of the two a file is follows from its content.
//
//	Nodes 16                                  2
//	Connections 2                             0 5 3 100 2000000 2.0
//	0->5 id 1 start 0 size 2000000            0 7 3 101 2000000 2.0
//	0->7 id 2 trigger 1 size 2000000
//	trigger id 1 oneshot
//
// In comes the text, out come Flows with the places in the file, and from those a graph.Graph: a
// send and a receive for each flow, on a connection of its own, after a computation until it starts
// or after the flow that triggers it.
//
// The one idea: hosts know only of what ends or begins at them. A flow can follow another one if
// its sender is an end of the other; anything else needs a message that the file does not have, and
// is an error.
//
// Start reading at Flow, then Graph in graph.go. parse.go reads flow lists, and
// matrix.go connection matrices.
package flows
