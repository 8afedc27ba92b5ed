// Package kernelpath has the machine's own kernel carry the packets of a lab: every switch is a node that holds a network
// namespace, the hosts of a rack hang on a Linux bridge in it, above it packets are routed over groups of next hops, and both
// ends of every cable are shaped.
//
// In comes the network as package fabric describes it, so that the modelled fabric and the kernel are told the same; and, over
// the same kind of connection as the fabric process serves, requests in the same words (package realtime). Out go samples of
// queues and at the end a report. Times are lab time; what the kernel is told is real, stretched by the dilation.
//
// Plan is pure and says all that will be made. Nothing here outlives the processes that hold the namespaces.
package kernelpath
