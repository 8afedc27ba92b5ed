// Package machine has the hosts of one part of an emulated lab on another machine.
//
// An Agent (weft machine) listens there, and starts and ends processes for whoever has its secret.
// A Group is on the machine of weft run: its launches are those of package runtime, so that emulate
// sees an ordinary cluster. Each process of it has a connection of its own to its agent, which
// passes messages on; two agents have one for the packets that cross between their parts.
//
// All connections are TLS 1.3, both ends of which prove that they have the secret (secret.go). The
// one idea: everything hangs on the session, the first connection of a run. When that ends, or says
// nothing for silence, the agent ends its processes, and the run ends by the name of the machine.
//
// Clocks of machines differ. The launcher measures by how much and translates the start of lab time
// (realtime.Start): half the shortest of a few round trips is the error, which eats slack. Clocks
// that drift apart during a run do, too: the verdict counts what is late.
//
// Docker Swarm and Slurm can start the agents (Engine, Placed). They report to a meeting at the
// machine of weft run and end with it, so that nothing outlives a run that was killed.
//
// Start reading with Agent.Serve, Group.Launches and Placed.
package machine
