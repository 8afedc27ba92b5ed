// Package deploy is the life of a lab that stays up: bringing it up, finding it again, and taking everything of it away,
// whatever happened in between.
//
//	d, err := deploy.Up(ctx, root, request)   // a supervisor process owns the lab from here on
//	c, err := deploy.Dial(root, "quickstart") // and does things to it: Exec, Link, Node, Capture, State, Events
//	err = deploy.Down(ctx, root, "quickstart")
//	swept, err := deploy.Clean(ctx, root)     // what crashed
//
// A lab is a folder of its name in the state directory, which only its owner may enter, with a journal in it. An
// operation is written there, with its undo, before it is done; so whatever is killed at whatever instant, what was
// made is known, and Down and Clean undo it without the lab file. They touch what a journal names, and processes that
// carry the mark of a deployment in their environment, and nothing else. Whoever changes a lab holds its lock.
//
// The supervisor serves a Unix socket in the folder. It believes only its own user (SO_PEERCRED). Times are real
// unless a name says that they are of the lab.
package deploy
