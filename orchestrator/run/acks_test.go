package run

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weft/results/store"
)

// The first acknowledgements of an incast show congestion before round trips do (STrack paper, Fig.
// 4).
func TestAcksOneByOne(t *testing.T) {
	s := mustSimulate(t, `
weft: 1
name: acks
topology: {kind: star, hosts: 33, link: {rate: 400Gbps, delay: 2us}}
transport: {kind: strack}
workload: [{collective: incast, ranks: 32, root: h32, size: 1MB}]
measure: {acks: true}
`)
	var b strings.Builder
	if err := store.Export(&b, s.Run, store.AcksFile, "csv"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if lines[0] != "time_ps,conn,rtt_ps,ce" || len(lines) < 1000 {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	if first := lines[1]; !strings.HasSuffix(first, ",1") {
		t.Errorf("the first acknowledgement is %s, want it marked", first)
	}
	rtt, err := strconv.ParseFloat(strings.Split(lines[1], ",")[2], 64)
	if err != nil || rtt/1e6 > s.BaseRTTUS+0.2 {
		t.Errorf("the first acknowledgement took %v ps, want two packets more than a base RTT of %v us at most", rtt, s.BaseRTTUS)
	}
	if a := s.Acks; a.Connections != 32 || a.FirstMarked < 30 || a.MarkRTTUS != rtt/1e6 || a.DelayUS < 2*s.BaseRTTUS {
		t.Errorf("senders heard %+v", a)
	}
	s = mustSimulate(t, star+"workload: [{collective: incast, ranks: [h1], root: h0, size: 1MB}]")
	if _, err := os.Stat(filepath.Join(s.Run, store.AcksFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lab that measures no acknowledgements has a file of them: %v", err)
	}
}
