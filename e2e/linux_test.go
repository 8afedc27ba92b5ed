package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/kernelpath"
	"weft/tc-shaping/qdisc"
	"weft/transport"
)

// needLinux skips a test where Linux cannot be the network with BPF programs.
func needLinux(t *testing.T) {
	t.Helper()
	testenv.NeedEmulation(t)
	kernel, err := kernelpath.Available()
	if err != nil {
		t.Skip(err)
	}
	if lacks := kernel.Lacks(qdisc.PartBPF); lacks != nil {
		t.Skip(lacks)
	}
}

// Every transport runs on Linux as the network, over a fat-tree of bridges and routes: what is done
// is right, no packet is refused, each link carries the packets that it carries in the simulator,
// and a run that is ok takes as long.
func TestPrivTransportsOnLinux(t *testing.T) {
	needLinux(t)
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module { // which another test has
			continue
		}
		t.Run(kind, func(t *testing.T) {
			d := newWorkspace(t)
			text := fmt.Sprintf(`weft: 1
name: linux
topology: {kind: fat-tree, k: 4, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}
transport: {kind: %s}
queues: {pfc: off, trim: off}
workload: [{collective: all-to-all, ranks: 6, size: 120KB}]
expect: [verified == true, unfinished == 0, drops == 0]
`, kind)
			file := d.writeLab("linux.yaml", text)
			d.run("run", file, "--engine", "sim").wantCode(0)
			_, want := d.summary()
			quiettest.Check(t, 3, func() error {
				d := newWorkspace(t)
				d.run("run", d.writeLab("linux.yaml", text), "--datapath", "kernel").wantCode(0)
				_, got := d.summary()
				wantDone(t, got)
				if got.Datapath != "kernel" || got.Network.Packets < want.Network.Packets || len(got.Refused) > 0 {
					t.Errorf("%+v", got.Network)
				}
				off := got.Collectives[0].TimeUS/want.Collectives[0].TimeUS - 1
				t.Logf("%s: %.2f us, in the simulator %.2f", got.Fidelity.Verdict, got.Collectives[0].TimeUS, want.Collectives[0].TimeUS)
				if got.Fidelity.Verdict != "ok" || math.Abs(off) > 0.05 {
					return fmt.Errorf("%s, and %.1f %% off", got.Fidelity.Verdict, 100*off)
				}
				return nil
			})
		})
	}
}

// With CCM on Linux, the built-in lab has the steps of the protocol: a flow leaves a slow path on
// request of a downstream switch, and sources are notified of incast and of its end.
func TestPrivCCMOnLinux(t *testing.T) {
	needLinux(t)
	quiettest.Check(t, 3, func() error {
		d := newWorkspace(t)
		r := d.run("run", libraryLab(t, "ccm/example-emu.yaml"), "--datapath", "kernel")
		_, s := d.summary()
		wantDone(t, s)
		if s.Network.CCM == nil || s.Network.CCM.NeedsPath == 0 || len(s.Refused) > 0 {
			t.Errorf("%+v", s.Network.CCM)
		}
		if r.code != 0 || s.Fidelity.Verdict != "ok" {
			return fmt.Errorf("%s, exit code %d: %s", s.Fidelity.Verdict, r.code, r.stdout)
		}
		return nil
	})
}

// The demo runs its lab over Linux beside the simulator and the modelled fabric: the same packets
// in all three, what tc says of a switch in mid-run, and the links as measured. A machine that
// lacks what Linux needs shows the other two, and says what is missing.
func TestPrivDemo(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	small := []string{"--set", "workload.0.size=256KB", "--set", "workload.1.size=256KB", "--retry-dilation=false"}
	if _, err := kernelpath.Available(); err != nil {
		small = append(small, "--set", "workload.1.ranks=4") // it may be User Mode Linux
	}
	r := d.startCommand(d.command(append([]string{"demo"}, small...)...)).waitLong().wantCode(0)
	for _, words := range []string{"simulator", "modelled fabric", "all-to-all of 8", "outcome"} {
		if !strings.Contains(r.stdout, words) {
			t.Errorf("no %q in\n%s", words, r.stdout)
		}
	}
	linux := 0
	for _, dir := range d.runs() {
		s := summaryIn(t, dir)
		wantDone(t, s)
		if s.Datapath != "kernel" {
			continue
		}
		linux++
		if k := s.LinkCheck; k == nil || k.Measured == 0 || k.Directions != 96 || k.RateError > 0.02 {
			t.Errorf("the links as measured: %+v", k)
		}
		text, err := os.ReadFile(filepath.Join(dir, "tc.txt"))
		if err != nil || !strings.Contains(string(text), "qdisc") || !strings.Contains(string(text), "htb") ||
			!strings.Contains(string(text), "edge0") {
			t.Errorf("tc.txt: %v\n%s", err, text)
		}
		if !strings.Contains(r.stdout, "links as measured") || !strings.Contains(r.stdout, "htb 1:") {
			t.Errorf("no links and no tc in\n%s", r.stdout)
		}
	}
	if missing := strings.Contains(r.stdout, "did not run"); missing != (linux == 0) {
		t.Errorf("%d runs over Linux, and\n%s", linux, r.stdout)
	}
}

// With datapath auto Linux carries a short lab where it can, and the first line says so or why not.
// A lab that Linux cannot honour gets the modelled fabric.
func TestPrivDatapathAuto(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	const text = "weft: 1\nname: open\ntopology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}\n" +
		"workload: [{collective: incast, ranks: 2, size: 64KB}]\nengine: {kind: emu, datapath: auto}\n"
	want := "datapath kernel (auto: Linux honours the lab, in about "
	if _, err := kernelpath.Available(); err != nil {
		want = "datapath fabric (auto: Linux cannot honour the lab: "
	}
	d.run("run", d.writeLab("open.yaml", text), "--dilation", "2000").wantCode(0).wantOnStderr(want)
	d.run("run", d.writeLab("pfc.yaml", text+"queues: {shared: {total: 32MB}, pfc: on}\ntransport: {kind: roce}\n")).wantCode(0).
		wantOnStderr("datapath fabric (auto: Linux cannot honour the lab: ")
}
