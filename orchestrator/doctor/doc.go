// Package doctor finds out what this machine can do for Weft, by trying: a device is created in a scratch
// network namespace, a queueing discipline is attached, a scheduling class is asked for. Nothing is read
// from configuration files or lists of modules, which say what might be. The scratch namespace ends with the
// thread that made it, so nothing stays.
//
// What comes out is a list of findings: what was looked for, whether it is there, what its absence costs and
// how to get it. Whether a machine that lacks something can still run a lab is the caller's to judge.
//
// A process that may not create namespaces finds out less. Where package namespace can Enter a user
// namespace, do that first.
package doctor
