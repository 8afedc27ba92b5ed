// Package collect brings results back from machines that share no directory with the submitter.
//
// The collector is a process of the submitter's machine (Start, Serve). Out of the sweep's
// directory it gives the tasks of a round the submission, and into it it puts their runs. Remote is
// the other end: a shard.Backend that asks a collector.
//
//	POST /tries/ID               a try of a point begins; the answer is whether that is needed
//	PUT  /tries/ID/files/NAME    a piece of a file of its run, at an offset
//	POST /tries/ID/place         hashes of all files: the run is checked and put into its place
//	POST /tries/ID/end           the try is over
//	GET  /submission, GET /shards/K, POST /points/I/never
//
// The one idea: a request does what the same task would do in a shared directory, by the same code,
// and may be repeated. A task repeats each until it is answered, for an hour, so that it matters to
// none when the collector is killed: another one goes on with the files.
//
// These must hold. Both ends prove who they are with keys made for one round, and the key of their
// authority is forgotten at once; strangers end at the handshake. What a task sends is bounded,
// lands in the directory of its try, and is renamed from there only when it is a run of its point
// with the hashes that were told. Nothing that a task sends leads elsewhere or is run.
//
// Start reading at the server's handler in server.go; collector.go is the process, keys.go has the
// certificates, and remote.go the other end.
package collect
