// Package docker is the runtime that puts the processes of a lab, one per host and one for the fabric or, where the
// machine's kernel switches, one per switch, into containers of a Docker Engine on this machine.
//
//	cluster, err := docker.Launch(ctx, spec) // a runtime.Cluster, as of the built-in runtime
//	err = docker.Probe(ctx, "")              // whether it can be had here, or why not
//	names, err := docker.Clean(ctx, "")      // what killed orchestrators left
//
// The image holds this program and nothing else; it is made from the running binary when the engine does not have it.
// Containers have no network of the engine's, no capabilities, a read-only root, and bounds on memory and processes.
// Their interface is made in their network namespace from outside, as are their sockets, which they are handed. So they
// need no privileges, and the orchestrator needs those of root.
//
// Control is a connection over an abstract socket in the container's own network namespace (docs/adr/0060): there is no
// file, and nobody but root can get there.
//
// Nothing outlives the process that called Launch, however that ends: agents end when their connection does, the engine
// removes containers that ended, and a second process removes what remains, such as containers that had not been started
// or that hang (see Reap). Every object carries labels with its lab, run, node and owner; what does not carry all of
// them is never touched.
package docker
