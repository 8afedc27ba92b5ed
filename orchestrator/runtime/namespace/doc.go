// Package namespace is the built-in runtime: it starts the processes of a lab, one per host and one
// for the fabric, in network, mount, PID, UTS and IPC namespaces of their own, without a daemon.
//
//	cluster, err := namespace.Launch(ctx, spec) // every node configured, every cable plugged in
//	cluster.Node(i).Conn                        // to the agent; Fabric().Conn: to the fabric
//	err = cluster.Close()                       // nothing is left
//
// Each process is this program, started again as "weft node" or "weft fabric", where package boot
// configures it. It has finished booting before Launch returns, and then owns its end of the
// control connection.
//
// Nothing outlives the process that called Launch, however it ends. Every child dies with the
// thread that started it (PR_SET_PDEATHSIG), with its control connection, and with the init process
// of its PID namespace, which it is itself. Namespaces have no names, interfaces and mounts are
// inside namespaces, and there are no files: once the processes are gone, the kernel removes the
// rest. The exceptions are control groups, which Close or CleanGroups remove.
//
// A user who may not create namespaces needs a user namespace first: see privilege.NeedsUserNS and
// Enter.
// Start reading in cluster.go.
package namespace
