// Package control is how the processes of one lab talk: messages over a Unix stream socket, with file
// descriptors beside them where one process hands another a device or a socket it has opened.
//
// A message is a kind, which says what the body means, and a body of JSON. Messages arrive whole and in
// order. Sizes are bounded on both sides: a peer that announces more is in error, and is not believed.
// A connection is an inherited descriptor (see FD) in the built-in runtime, and a socket in a directory
// shared with the node where there is a daemon in between. The package decides nothing about what is said.
package control
