// Package benchmark turns a question in the terms of nccl-tests (which collectives, by which algorithms, over which
// transports, in which sizes) into labs, and what their ranks did into tables and a picture.
//
// In come a Request and, later, the parts of each run; out come cases to be run, each a lab file with a trace that has a
// collective for each size, and rows of package collectives/bench. All sizes of a case are measured in one run, one after the
// other over the same connections, as nccl-tests measures them with one communicator. It is pure: who runs the labs is the
// caller.
package benchmark
