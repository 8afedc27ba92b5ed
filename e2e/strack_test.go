package e2e

import (
	"math"
	"path/filepath"
	"testing"

	"weft/internal/testenv"
	"weft/results/record"
)

// STrack over real sockets, each path a source port of its own: on a fat-tree, with links down, and
// under loss, reordering and duplication all data arrives and is right, and what is counted is what
// the lab asks for.
func TestPrivSTrackOverRealSockets(t *testing.T) {
	testenv.NeedEmulation(t)
	for name, fault := range map[string]func(record.Network) int64{
		"emu-links-down":  func(record.Network) int64 { return 1 },
		"emu-loss":        func(n record.Network) int64 { return min(n.Lost, n.Retransmits) },
		"emu-reordering":  func(n record.Network) int64 { return n.Late },
		"emu-duplication": func(n record.Network) int64 { return n.Duplicated },
	} {
		t.Run(name, func(t *testing.T) {
			d := newWorkspace(t)
			r := d.run("run", libraryLab(t, filepath.Join("strack", name+".yaml")), "--engine", "emu", "--dilation",
				slow, "--json")
			_, s := d.summary()
			r.wantCode(strictExitCode(s, 3))
			wantDone(t, s)
			wantFidelity(t, s)
			if fault(s.Network) == 0 {
				t.Errorf("%+v", s.Network)
			}
		})
	}
}

// The simulator and the emulation agree on what a flow of a permutation takes: half of them take no
// longer than so much, within 10 % if the emulation is to be trusted.
func TestPrivSTrackInBothEngines(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	r := d.run("run", libraryLab(t, "strack/emu-fat-tree.yaml"), "--engine", "both", "--dilation", slow, "--json")
	half := map[string]float64{}
	code := 0
	for _, dir := range d.runs() {
		s := summaryIn(t, dir)
		wantDone(t, s)
		half[s.Engine] = s.Flows.FCT.P50
		code = max(code, strictExitCode(s, 3))
	}
	r.wantCode(code)
	if sim, emu := half["sim"], half["emu"]; !(sim > 0) || !(emu > 0) || code == 0 && math.Abs(emu-sim) > 0.1*sim {
		t.Errorf("half of the flows take %v us in the simulator, %v us over real sockets", sim, emu)
	}
}
