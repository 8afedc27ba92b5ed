// Package deploy manages labs that stay up: it deploys a lab, gives access to it while it runs, and
// removes every trace of it, whatever was killed in between.
//
//	change, err := deploy.Up(ctx, dir, request, options) // a supervisor owns the lab from here on
//	h, err := deploy.Open(root, "quickstart")            // Exec, Link, Node, Capture, State, ...
//	found, err := deploy.Down(ctx, dir, "quickstart", options)
//	swept, err := deploy.Clean(ctx, dir, options)        // whatever crashed deployments left
//
// A deployed lab is a folder in the state directory (Root), which only its owner may enter. The
// folder has the lab file, the supervisor's socket and log, the events, and a journal. The one idea
// is the journal: every operation is written to it, with the way to undo it, before it is carried
// out. So whichever process is killed at whichever instant, the journal names everything that
// exists, and Down and Clean undo it without the lab file.
//
// Invariants: Down and Clean touch only what a journal names, and processes that carry the mark of
// a deployment, a random name in their environment. A process that changes a lab holds its lock.
// The supervisor's socket serves only the supervisor's own user (SO_PEERCRED), and nobody within a
// node.
//
// Times are real time unless a name or comment says lab time. Start reading in up.go (deploying),
// supervise.go (the life of a lab) and down.go (removing it); protocol.go has the requests of the
// socket.
package deploy
