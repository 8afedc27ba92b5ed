package e2e

import (
	"encoding/json"
	"testing"

	"weft/internal/testenv"
	"weft/results/record"
)

// A run in which no packet or timer was measured has no verdict in its summary either: a reader of
// the JSON alone does not take it for ok.
func TestPrivUnjudgedRuns(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	lab := d.writeLab("lab.yaml", "weft: 1\nname: unjudged\ntopology: {kind: star, hosts: 3, link: {rate: 1Gbps}}\n"+ // few packets for a busy machine
		"engine: {dilation: 100}\nworkload: [{program: [sleep, \"2\"]}]\n")
	r := d.run("run", lab, "--engine", "emu", "--json", "--strict").wantCode(4)
	var s record.Summary
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatal(err)
	}
	f := s.Fidelity
	if f == nil || f.Verdict == record.OK || f.LatenessP99NS > 0 {
		t.Fatalf("%+v", f)
	}
	if unjudged := f.Verdict == record.Unjudged; unjudged != (s.Unjudged() != "") || unjudged == (f.Advice != "") {
		t.Errorf("%+v: %q", f, s.Unjudged()) // a busy machine may have stood so long that it is judged
	}
}
