// Package experiment turns a checked lab into an experiment: the network that it describes and what every host does on it, with
// everything that a lab leaves open worked out. It is the second stage of a run:
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// It is pure. The same lab makes the same experiment on every machine, and an experiment is the same for every engine: the
// simulator, sockets in namespaces or containers, and the kernel's datapath. Nothing changes a lab or an experiment once it is
// made, so one experiment may be forecast, run and summed up.
//
// What a lab gets wrong that only its network shows is refused here, with the line of the lab file: hosts that cannot reach each
// other, queues that hold no packet, thresholds that nothing reaches, and what an engine cannot do.
//
// Build (experiment.go) is where to start reading. Effective lists, for weft explain, what a lab comes to.
package experiment
