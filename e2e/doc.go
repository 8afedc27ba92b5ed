// Package e2e holds the tests that use weft as its users do: they build the program once, run it on
// lab files, interrupt it, kill it and its processes, fill its disk, and look at what it says, what
// it leaves in its run directory, and what it leaves on the machine, which must be nothing. There
// is no code in it but the tests.
//
// Tests named TestPriv make namespaces; they skip, with the reason, where that is not allowed. No
// test demands a verdict of ok from an emulated run: the machine may be doing something else as
// well.
package e2e
