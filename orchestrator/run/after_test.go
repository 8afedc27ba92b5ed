package run

import (
	"slices"
	"testing"

	"weft/results/store"
)

// An incast drops packets in its first round trips and not later, so counts from an instant after
// them have no drops.
func TestCountsAfterAnInstant(t *testing.T) {
	const text = `
weft: 1
name: after
topology: {kind: star, hosts: 33, link: {rate: 400Gbps, delay: 2us}}
transport: {kind: strack}
workload: [{collective: incast, ranks: 32, root: h32, size: 2MB}]
`
	s, err := simulateLab(t, text)
	if err != nil || s.Network.Drops == 0 || s.Network.After != nil {
		t.Fatalf("%v, %+v", err, s.Network)
	}
	all := s.Network.Drops
	if s, err = simulateLab(t, text+"measure: {from: 1ns, queues: 1us}\n"); err != nil || s.Network.After.Drops != all {
		t.Errorf("from the beginning: %v, %+v of %d drops", err, s.Network.After, all)
	}
	drops, err := store.Numbers(s.Run, store.QueuesFile, "drops")
	if err != nil || int64(slices.Max(drops)) == 0 || int64(slices.Max(drops)) > all {
		t.Errorf("queues: %v, at most %v drops of %d", err, slices.Max(drops), all)
	}
	if q := s.Network.After.MaxQueue; q > s.Network.MaxQueue || q < s.Network.MaxQueue*9/10 {
		t.Errorf("a queue of at most %d, sampled %d", s.Network.MaxQueue, q)
	}
	if s, err = simulateLab(t, text+"measure: {from: 100us}\n"); err != nil || s.Network.After.Drops != 0 {
		t.Errorf("from 100 us on: %v, %+v", err, s.Network.After)
	}
	if s, err = simulateLab(t, text+"measure: {from: 1s}\n"); err != nil || s.Network.After != nil {
		t.Errorf("from after the end: %v, %+v", err, s.Network.After)
	}
}
