// Package machine runs the hosts of one part of an emulated lab on another machine.
//
// An Agent (weft machine) listens there, and starts and ends processes for clients with its secret.
// A Group is on the machine of weft run: its launches are those of package runtime, so that emulate
// sees an ordinary cluster. Each process of it has a connection of its own to its agent, which
// passes messages on; two agents have one for the packets that cross between their parts.
//
// All connections are TLS 1.3, and both ends prove that they have the secret (secret.go). The one
// idea: a run on a machine lives as long as its session, the first connection. When that ends, or
// is silent for 3 s, the agent ends its processes, and the error of the run names the machine.
//
// Clocks of machines differ, and drift apart during a run. The launcher measures them (follower),
// translates the start of lab time (realtime.Start) and keeps lab time of the machines in line
// (labtime.KindScale). The error makes packets late between parts, which the verdict judges.
//
// Docker Swarm and Slurm can start the agents (Engine, Placed). They report to a meeting at the
// machine of weft run and end with it, so that nothing outlives a run that was killed.
//
// Start reading with Agent.Serve, Group.Launches and Placed.
package machine
