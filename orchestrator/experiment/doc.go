// Package experiment turns a checked lab into an experiment: its network and what every host does
// on it, with everything worked out that the lab leaves open. It is the second stage of a run:
//
//	lab.Lab -> experiment.Experiment -> an engine -> summary.Outcome -> record.Summary
//
// It is pure. The same lab gives the same experiment on every machine, and one experiment serves
// every engine: the simulator, sockets in namespaces or containers, and the kernel datapath.
// Nothing changes a lab or an experiment once it is made, so the same one can be forecast, run and
// summed up.
//
// It rejects, with the line of the lab file, what only the network of a lab shows to be wrong:
// hosts that cannot reach each other, queues that hold no packet, thresholds that no queue reaches,
// PFC that loses packets or deadlocks, and what an engine cannot do. Check does this for all points
// of a sweep without keeping connections. Outside lists what the lab lacks and its transport
// assumes; such a lab runs.
//
// Start reading at Build and compile in experiment.go. The parts of an experiment have a file each:
// network.go, workload.go, transport.go, clocks.go, faults.go, measure.go. Effective lists the
// resulting values of settings, for weft explain.
package experiment
