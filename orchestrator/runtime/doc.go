// Package runtime is what the ways to start a lab's processes have in common: what a lab is made of, and how one that
// runs looks to whoever drives it. The built-in runtime is package namespace below it, Docker Engine is package docker.
//
// In comes a Spec: the nodes by their numbers, and the program they run. Out comes a Cluster: a process for every node
// and one for the fabric, each with a control connection (package control) and a cable between the two, as package
// boot describes it. Nothing outlives the process that launched it, however that ends.
//
// The package holds types, what depends on nothing but a process's number, the order in which a lab boots, and Members: what the
// clusters of both runtimes have in common. It starts no process.
package runtime
