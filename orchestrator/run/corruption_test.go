package run

import (
	"strings"
	"testing"

	"weft/results/record"
	"weft/results/store"
)

// A wrong byte that no checksum has seen makes the run unverified. Warnings name the collective,
// the rank and the step of each wrong result. Every algorithm that forwards the byte makes more
// results wrong.
func TestCorruptedByte(t *testing.T) {
	for item, want := range map[string]string{
		"{collective: all-reduce, size: 1MB}":                                    "wrong: item 0 (all-reduce by ring), repetition 0, rank ",
		"{collective: all-reduce, algorithm: double-binary-tree, size: 1MB}":     "(all-reduce by double-binary-tree)",
		"{collective: all-to-all, algorithm: windowed, parallel: 2, size: 1MB}":  "rank 3 on h3: 1 of 250000 elements, the first at byte ",
		"{collective: broadcast, algorithm: tree, size: 1MB}":                    "(broadcast by tree), repetition 0, rank 3 on h3",
		"{collective: permute, size: 1MB, repeat: 2, type: int32, start: 200us}": "rank 3 on h3",
		"{collective: all-reduce, ranks: {groups: 2, size: 4}, size: 1MB}":       "item 0, group ",
		"{collective: all-gather, algorithm: recursive-doubling, size: 1MB}":     "step ",
		"{collective: reduce-scatter, algorithm: direct, size: 1MB, op: max}":    "received it from rank ",
		"{collective: all-to-all, size: 1MB, repeat: 3, compute: 30us}":          "repetition ",
		"{collective: all-reduce, algorithm: hierarchical, group: 4, size: 1MB}": "(all-reduce by hierarchical)",
		"{collective: all-reduce, algorithm: halving-doubling, size: 1MB}":       "(all-reduce by halving-doubling)",
		"{collective: reduce, algorithm: chain, ranks: [h0, h3, h5], size: 1MB}": "rank 0 on h0: 1 of 250000 elements",
		"{collective: gather, ranks: [h3, h1, h5], size: 1200KB}":                "rank 0 on h3",
		"{collective: incast, ranks: 3, root: h3, size: 1MB}":                    "rank 3 on h3",
	} {
		s, err := simulateLab(t, eight+"workload: ["+item+"]\nfaults: [{at: 10us, corrupt: h3}]")
		if err != nil {
			t.Errorf("%s: %v", item, err)
			continue
		}
		told := strings.Join(s.Warnings, "\n")
		if s.Status != record.Unverified || !strings.Contains(s.Error, "results of ranks have wrong elements") {
			t.Errorf("%s: status %s: %s", item, s.Status, s.Error)
		}
		if m, err := store.ReadManifest(s.Run); err != nil || m.Status != s.Status || m.Error != s.Error {
			t.Errorf("%s: the manifest says %+v, %v", item, m, err)
		}
		if s.Verified || s.Collectives[0].Wrong == 0 || !strings.Contains(told, want) {
			t.Errorf("%s: verified %t, %d wrong, warnings\n%s", item, s.Verified, s.Collectives[0].Wrong, told)
		}
	}
}

// A planned corruption that hits no data is reported, so that nobody takes the result for proof.
func TestCorruptionWithoutDataIsReported(t *testing.T) {
	s, err := simulateLab(t, eight+"workload: [{collective: all-reduce, size: 64KB}]\nfaults: [{at: 1s, corrupt: h3}]")
	if err != nil || !s.Verified || !strings.Contains(strings.Join(s.Warnings, "\n"), "h3: 1 planned corruption not applied") {
		t.Errorf("%v, %+v", err, s)
	}
}

// A rank that nothing reaches, or a message that is lost for good, ends the run. The error has the
// rank, the collective and the step.
func TestLostRankAndLostMessage(t *testing.T) {
	for _, transport := range []string{"{kind: roce, roce: {tries: 3}}", "{kind: strack, strack: {tries: 3}}", "{kind: swift, swift: {tries: 3}}"} {
		for _, fault := range []string{"{at: 20us, link: h3-switch0, down: true}", "{at: 20us, link: h3-switch0, loss: 0.9999}"} {
			s, err := simulateLab(t, eight+"workload: [{collective: all-reduce, size: 1MB}]\ntransport: "+transport+"\nfaults: ["+fault+"]")
			if err == nil || s == nil || s.Verified || s.Status != "failed" {
				t.Errorf("%s, %s: error %v", transport, fault, err)
				continue
			}
			for _, want := range []string{"item 0 (all-reduce)", "rank ", "step "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s: %v; want %q in it", transport, fault, err, want)
				}
			}
		}
	}
}

// Every cut packet is attributed to a fault, including packets for which a switch had no port left.
func TestCutsAreAttributedToFaults(t *testing.T) {
	s := mustSimulate(t, `weft: 1
name: cuts
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link: {rate: 100Gbps, delay: 1us}}
transport: {kind: pc4}
workload: [{collective: all-to-all, ranks: all, size: 4MB}]
faults:
  - {at: 120us, link: leaf1-spine0, down: 50us}
  - {at: 20us, link: leaf0-spine1, down: 40us}
  - {at: 30us, link: h3-leaf1, down: 20us}
`)
	m, err := store.ReadManifest(s.Run)
	if err != nil {
		t.Fatal(err)
	}
	var all int64
	for _, f := range m.Faults {
		if all += f.Cut; f.Cut == 0 {
			t.Errorf("%s on %s has cut off nothing", f.Path, f.Link)
		}
	}
	if t.Logf("%+v", m.Faults); all != s.Network.Cut {
		t.Errorf("faults have cut off %d packets, the network %d", all, s.Network.Cut)
	}
}
