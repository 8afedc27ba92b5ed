// Package plan describes what running or deploying a lab creates on the machine: the operations in
// order, the operations that each waits for, how each is undone, the properties that exist
// afterwards, and the resources in total.
//
//	emulate.Setup -> Emulated -> Plan -> Text, JSON
//
// The value that the runtimes launch (emulate.Setup) goes in. A Plan comes out, which prints as
// text and as JSON. A simulated lab has an empty plan (Simulated). Sizes are in bytes.
//
// The one idea is that a plan is a dry run: it lists the steps of each node's network, which the
// nodes and switches take (boot.NodeSpec.Steps, kernelpath.Network.Steps), and takes none. What it
// adds is the processes of the setup's spec and the disciplines of its links. So it must compute
// nothing that a runtime computes differently. Op.Makes has one line for each property of a node.
//
// An operation comes after all those that it waits for. Undoing them in reverse order leaves
// nothing.
//
// Start reading at Emulated in plan.go. planFabric there plans labs on the modelled fabric,
// planKernel in kernel.go those on the kernel datapath, and print.go prints.
package plan
