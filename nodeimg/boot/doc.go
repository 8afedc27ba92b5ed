// Package boot runs first in a process of a lab, in namespaces of its own. It makes the node in
// which the rest of the process runs, and drops every privilege.
//
// A process boots in two stages, which are two images of the same program. The first has the
// privileges. It reads its spec from the control connection, mounts a private and read-only tree,
// makes the node's one network interface, hands the other end of its cable to the orchestrator,
// opens the requested sockets, drops to an ordinary user without capabilities, and becomes the
// second by exec. So nothing of the first stage is left in any thread of the second. The package
// never reads the wall clock and knows nothing about the later work of the process.
//
// The messages of the control protocol (package control), for a node:
//
//	orchestrator -> node     boot   NodeSpec
//	node -> orchestrator     link   Link, with the descriptor of the cable's other end
//	node -> orchestrator     up     Report; the second stage runs, Node returns
//
// and for the fabric:
//
//	orchestrator -> fabric   boot   FabricSpec
//	orchestrator -> fabric   links  []Link with as many descriptors, until all have come
//	fabric -> orchestrator   up     Report; Fabric returns
//
// or error, with a text, in place of any answer. After up the connection is the caller's to use.
//
// Start with Node in stage.go. spec.go has the specs, link.go and veth.go the interface, mounts.go
// and root.go the file system, drop.go and filter.go the privileges, and program.go the start of
// programs inside a node.
package boot
