// Package chakra reads and writes Chakra execution traces of MLCommons: a file for each rank, with
// the nodes of its graph as protobuf messages, each after its length.
//
//	moe.0.et  moe.1.et  moe.2.et  groups.json
//
// In come the files in the order of their ranks, and optionally a JSON file with the members of
// process groups; out comes a graph.Graph. The messages are decoded field by field with protowire,
// as a stream: schema.go has the numbers of the fields that are used.
//
// A COMP_NODE becomes a computation of its duration: one at a time on the CPU, and one at a time on
// each GPU stream. Sends and receives become messages. A COMM_COLL_NODE takes part in the next
// collective of its process group. Data and control dependencies both mean that a node begins when
// the other is complete. What has no meaning here, such as nodes that move memory, is an error with
// the file and the node.
//
// Start reading at Parse; nodes are decoded in node.go. Write is the inverse.
package chakra
