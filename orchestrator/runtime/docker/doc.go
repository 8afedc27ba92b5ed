// Package docker is the runtime that puts the processes of a lab into containers of a Docker Engine
// on this machine: one per host and one for the fabric or, if the machine's kernel switches the
// lab, one per switch.
//
//	cluster, err := docker.Launch(ctx, spec) // a runtime.Cluster
//	err = docker.Probe(ctx, "")              // why the engine cannot be used, if so
//	names, err := docker.Clean(ctx, "", runtime.Owner.Dead) // removes what killed launchers left
//
// The image has this program and nothing else; it is made from the running binary if the engine
// does not have it. Containers have no network from the engine, no capabilities, a read-only root,
// and limits of memory and processes. Their interfaces and sockets are made in their network
// namespaces from outside and handed to them. So containers need no privileges, but the launcher
// needs to be root.
//
// The control connection is an abstract socket in the container's own network namespace
// (docs/adr/0060): there is no file, and only root can reach it.
//
// Nothing outlives the process that called Launch, however it ends: agents exit when their
// connection closes, the engine removes containers that have ended, and a second process, the
// reaper (see Reap), removes the rest, such as containers that were never started or that hang.
// Every object carries labels with its lab, run, node and owner; objects without all of them are
// never touched. Start reading in cluster.go; sweep.go has the removal.
package docker
