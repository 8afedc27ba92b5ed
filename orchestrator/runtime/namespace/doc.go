// Package namespace is the built-in runtime: it starts the processes of a lab, one per host and one for the
// fabric, each in network, mount, PID, UTS and IPC namespaces of its own, without a daemon.
//
//	cluster, err := namespace.Launch(ctx, spec) // every node configured, every cable plugged in, or nothing
//	cluster.Node(i).Conn                        // from here on the agent's; Fabric().Conn the fabric's
//	err = cluster.Close()                       // nothing is left
//
// Each process is this program, run again as "weft node" or "weft fabric", where package boot awaits it. It
// returns from boot before Launch does, and then owns its end of the control connection.
//
// Nothing outlives the process that called Launch, however that ends. Every child dies with the thread that
// started it (PR_SET_PDEATHSIG), with its control connection, and with the init of its PID namespace, which
// it is itself. Namespaces have no names, interfaces lie in namespaces, mounts in mount namespaces, and there
// is no file: what remains when the processes are gone, the kernel removes.
//
// A user who may not create namespaces gets a user namespace to do it in: see NeedsUserNS and Enter.
package namespace
