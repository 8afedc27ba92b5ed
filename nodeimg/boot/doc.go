// Package boot is what runs first in a process of a lab that was started in namespaces of its own: it makes
// the node that the rest of the process then lives in, and gives away every privilege.
//
// A process boots in two stages, which are two images of the same program. The first has the privileges: it
// reads its spec from the control connection, mounts a private and read-only tree, makes the node's one
// network interface, hands the other end of its cable to the orchestrator, opens the sockets it was asked to,
// drops to an ordinary user without capabilities, and becomes the second by exec. So nothing of the first
// stage is left in any thread of the second. The package never reads the wall clock and knows nothing of
// what the process does afterwards.
//
// In words of the control protocol (package control), for a node:
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
package boot
