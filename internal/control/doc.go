// Package control is the protocol between the processes of one lab: messages over a Unix stream
// socket, optionally with file descriptors, by which one process passes an open device or socket to
// another.
//
// A message (Message) is a kind, which determines the meaning of the body, and a JSON body.
// Messages arrive whole and in order. Both sides bound sizes (frame.go): a message that announces
// more is an error, and nothing is allocated for it. The package does not interpret messages;
// package realtime and the agents do.
//
// In the built-in runtime a process inherits its connection as a descriptor (FD, Open). In a
// container it listens on an abstract socket, and both sides check the other's credentials (Accept,
// Dial). Conn has Send and Recv. Start reading at Conn.
package control
