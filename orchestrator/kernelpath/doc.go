// Package kernelpath lets the machine's kernel carry the packets of a lab. Every switch is a node
// that holds a network namespace. The hosts of a rack are attached to a Linux bridge in it. Above
// the bridge, packets are routed over groups of next hops. Both ends of every cable are shaped with
// queueing disciplines.
//
// Input: the network as package fabric describes it, so that the modelled fabric and the kernel get
// the same description, and requests in the protocol of package realtime over a control connection,
// as the fabric process gets them. Output: samples of the queues and a report at the end.
// Interfaces use lab time; the kernel gets real time, which is lab time times the dilation.
//
// Plan (plan.go) is pure and lists everything that will be created. Serve (serve.go) builds it and
// handles requests; one goroutine owns all state. line.go shapes the links, contract.go measures
// whether they have the requested properties, setup.go and nexthop.go set up forwarding. Nothing
// outlives the processes that hold the namespaces.
package kernelpath
