// Package benchmark turns a question in the terms of nccl-tests (which collectives, algorithms,
// transports and sizes) into labs, and the results of their ranks into tables and a picture.
//
// Input: a Request and, later, the record's parts of each run. Output: a list of Measured, each a
// collective with one algorithm, with the lab files that measure it; and rows of package
// collectives/bench. All sizes are measured in one run, one after the other over the same
// connections, as nccl-tests does with one communicator. For this the lab has a trace with one
// collective per size.
//
// The package is pure; the caller runs the labs. Start with Request.Measure (request.go), then
// Measured.Labs (network.go) and Measured.Rows (rows.go).
package benchmark
