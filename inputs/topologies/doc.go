// Package topologies reads networks that other programs describe: Graphviz DOT (as NVIDIA Air
// writes it), containerlab YAML, GraphML, topologies of htsim (.topo), and those of ns-3 simulators
// such as HPCC's and SimAI's. Which of them a file is follows from its content.
//
//	graph fabric {                            3 1 2
//	  leaf0 [function=leaf]                   0
//	  leaf0:swp1 -- server0:eth1              0 1 100Gbps 0.001ms 0
//	  leaf0:swp2 -- server1:eth1              0 2 100Gbps 0.001ms 0
//	}
//
// In comes a text, out comes a Network of nodes and links, which the lab reads as a custom
// topology.
//
// A host here has one link. Where a format has no word for the difference, nodes with one link are
// hosts and others switches. Properties of links that the lab does not have, such as the latency of
// switches, are errors with the file and the line.
//
// Start reading at Network and Parse; each format has a file of its own.
package topologies
