// Package runtime defines what a lab's processes are, and contains what the two runtimes that start
// them share. Package namespace below it is the built-in runtime, package docker uses Docker
// Engine.
//
// In goes a Spec: the nodes by number, and the program that they run. Out comes a Cluster: a
// process for every node and one for the fabric, each with a control connection (package control),
// and a cable from every node to the fabric as package boot describes it. If the machine's kernel
// switches the lab, switches are nodes as well, cables join nodes, and there is no fabric process.
//
// The package itself starts no process. It has the types (spec.go, cluster.go), the order in which
// a lab boots (boot.go), Members, the bookkeeping that both runtimes' clusters embed (members.go),
// Inside, which runs a program in a node (inside.go), and functions on a PID alone: Owner, Kill,
// Processes.
//
// The invariant of both runtimes: nothing outlives the process that launched a lab, however that
// process ends. Start reading with Spec and Cluster.
package runtime
