package benchmark

import (
	"fmt"
	"slices"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/units"
)

// maxUnacked is the share of a window that receivers may leave unacknowledged before a lone flow
// waits for acknowledgements. Our own value: on a star with a round trip of 5 us, 28 % cost STrack
// a quarter of its link; on a leaf-spine network 15 % cost nothing.
const maxUnacked = 0.2

// Notes returns what distinguishes the transport of a lab from others beside its congestion
// control: the network that it is made for (madeFor), and acknowledgements so rare that windows
// wait for them.
func Notes(l *lab.Lab, madeFor []string) (notes []string) {
	const otherwise = "; tables without this line are of one that "
	reasons := map[string]string{
		losslessNetwork: "is meant for networks without loss" + otherwise + "may lose packets",
		trimmingNetwork: "learns of losses by the headers of trimmed packets" + otherwise + "drops them whole",
	}
	kind := l.Transport.Kind
	path := "transport." + kind + ".ack_every"
	written := ""
	for _, s := range l.Sources {
		if set := s.Path + "=" + s.Value; slices.Contains(madeFor, set) {
			notes = append(notes, fmt.Sprintf("%s: %s, since %s %s", s.Path, s.Value, kind, reasons[set]))
		}
		if s.Path == path {
			written = s.Value
		}
	}
	every, err := units.ParseBytes(written)
	if err != nil {
		return notes
	}
	effective, err := experiment.Effective(l)
	if err != nil {
		return notes // the run reports the error
	}
	at := slices.IndexFunc(effective, func(s record.Setting) bool { return s.Path == "transport.first_window" })
	if at < 0 {
		return notes
	}
	window, err := units.ParseBytes(effective[at].Value)
	if err != nil || float64(every) <= maxUnacked*float64(window) {
		return notes
	}
	return append(notes, fmt.Sprintf("%s is acknowledged every %s of a window of %s, for which a lone flow waits; "+
		"smaller with --set %s=%s",
		kind, written, window, path, l.Topology.MTU))
}
