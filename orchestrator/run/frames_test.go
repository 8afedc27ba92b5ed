package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/experiment/experimenttest"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

const framed = `
weft: 1
name: framed
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 1us}}
transport: {kind: roce}
queues: {buffer: 300KB}
workload:
  - {collective: all-to-all, size: 800KB}
  - {collective: incast, ranks: 7, size: 500KB}
`

// Recording frames changes nothing else: the other data files are the same bytes.
func TestFramesChangeNothing(t *testing.T) {
	with, without := mustSimulate(t, framed), mustSimulate(t, framed+"measure: {view: off}\n")
	for _, table := range store.Tables() {
		a, errA := os.ReadFile(filepath.Join(with.Run, table.File))
		b, errB := os.ReadFile(filepath.Join(without.Run, table.File))
		switch table.File {
		case store.FramesFile, store.FrameConnsFile:
			if errA != nil || !os.IsNotExist(errB) {
				t.Errorf("%s: %v with frames, %v without", table.File, errA, errB)
			}
		default:
			if !bytes.Equal(a, b) || (errA == nil) != (errB == nil) {
				t.Errorf("%s differs: %d and %d bytes", table.File, len(a), len(b))
			}
		}
	}
	if _, err := os.Stat(filepath.Join(without.Run, store.NetworkFile)); !os.IsNotExist(err) {
		t.Errorf("without frames there is a map of the network: %v", err)
	}
}

// The last frames add up to the run's own counters.
func TestFramesAgreeWithCounters(t *testing.T) {
	x := experimenttest.Build(t, framed)
	var last []frames.Frame
	var network *record.NetworkMap
	s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir(), Frames: func(
		_ *experiment.Experiment, _ string, n *record.NetworkMap, all []frames.Frame) {
		network, last = n, all
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(last) < 200 || len(network.Ports) != len(x.Fabric.Ports) || len(network.Nodes) != len(x.Graph.Nodes) {
		t.Fatalf("%d frames, %d ports, %d nodes", len(last), len(network.Ports), len(network.Nodes))
	}
	sent, drops, marks := map[int32]int64{}, map[int32]int64{}, map[int32]int64{}
	arrived := map[uint32]int64{}
	var queued int64
	for _, f := range last {
		for _, p := range f.Ports {
			if int64(p.Sent) < sent[p.Port] || p.Marks < marks[p.Port] || p.Drops < drops[p.Port] {
				t.Fatalf("counters of port %d fall at %v", p.Port, f.At)
			}
			sent[p.Port], drops[p.Port], marks[p.Port] = int64(p.Sent), p.Drops, p.Marks
			queued = max(queued, int64(p.Queued))
		}
		for _, c := range f.Conns {
			arrived[c.Conn] = int64(c.Arrived)
		}
	}
	var allDrops, allMarks, allArrived int64
	for p := range x.Fabric.Ports {
		allDrops += drops[int32(p)]
		allMarks += marks[int32(p)]
	}
	for _, a := range arrived {
		allArrived += a
	}
	// What happened after the last frame, a few packets at most, is missing.
	if n := s.Network; allDrops > n.Drops || allDrops < n.Drops-2 || allMarks > n.CEMarks || allMarks < n.CEMarks*95/100 || n.Drops == 0 {
		t.Errorf("%d drops and %d marks in frames, %d and %d in the run", allDrops, allMarks, n.Drops, n.CEMarks)
	}
	if queued < 200e3 || queued > 300e3 {
		t.Errorf("the longest queue has %d bytes; expected nearly its buffer of 300 KB", queued)
	}
	if whole := s.Flows.Bytes; allArrived > whole || allArrived < whole*95/100 {
		t.Errorf("%d bytes arrived in frames, %d in the run", allArrived, whole)
	}
}

// A simulation records as many frames as are kept at the end, rather than many that are merged: its
// first interval is 1/400 of the shortest time that the messages to a host can take.
func TestFirstInterval(t *testing.T) {
	x := experimenttest.Build(t, `
weft: 1
name: long
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}}
transport: {kind: pc4}
workload: [{collective: incast, ranks: 4, root: h4, size: 5MB}]
`)
	var first units.Time
	count := 0
	_, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir(), Frames: func(
		_ *experiment.Experiment, _ string, _ *record.NetworkMap, all []frames.Frame) {
		if count = len(all); count == 1 {
			first = all[0].At
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if first != 4*units.Microsecond { // 20 MB at 100 Gb/s take 1.6 ms
		t.Errorf("the first frame is of %v", first)
	}
	if count < 400 || count > 512 {
		t.Errorf("%d frames", count)
	}
}
