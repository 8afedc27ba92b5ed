// Package doctor finds out what this machine can do for Weft by trying it: it creates a device in a
// scratch network namespace, attaches a queueing discipline, requests a scheduling class. It reads
// no configuration files or lists of modules, which only show what might work. The scratch
// namespace ends with the thread that created it, so nothing stays.
//
// The result is a list of findings: what was tried, whether it works, what its absence costs, and
// how to get it. The caller decides whether a lab can run without it.
//
// A process that may not create namespaces finds out less; enter a user namespace first where
// package namespace can (namespace.Enter). Start reading at Check.
package doctor
