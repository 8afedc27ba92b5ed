package run

import (
	"fmt"
	"math"
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
	if q := s.Network.After.MaxQueue; q != s.Network.MaxQueue {
		t.Errorf("a queue of at most %d, from the beginning %d", s.Network.MaxQueue, q)
	}
	if s, err = simulateLab(t, text+"measure: {from: 100us}\n"); err != nil || s.Network.After.Drops != 0 {
		t.Errorf("from 100 us on: %v, %+v", err, s.Network.After)
	}
	if s, err = simulateLab(t, text+"measure: {from: 1s}\n"); err != nil || s.Network.After != nil {
		t.Errorf("from after the end: %v, %+v", err, s.Network.After)
	}
}

// The largest queue from an instant on is that of all instants, whatever the interval of samples:
// it is at least that of dense samples, it does not grow with the instant, and those of the whole
// run are as without it.
func TestLargestQueueAfterAnInstant(t *testing.T) {
	const text = "weft: 1\nname: after\ntopology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}\n" +
		"workload: [{collective: incast, ranks: 3, size: 1MB, repeat: 3}]\n"
	whole := mustSimulate(t, text).Network.MaxQueue
	for _, with := range []string{"", "queues: {pfc: on}\n", "engine: {memo: auto}\n"} {
		last := int64(math.MaxInt64)
		for _, from := range []string{"1ps", "20us", "260us", "600us", "740us"} {
			var most [3]int64
			for i, every := range []string{"off", "249us", "100ns"} {
				n := mustSimulate(t, fmt.Sprintf("%s%smeasure: {from: %s, queues: %s}\n", text, with, from, every)).Network
				if most[i] = n.After.MaxQueue; n.MaxQueue != whole && with != "queues: {pfc: on}\n" {
					t.Errorf("%sfrom %s: largest queue %d, without measure.from %d", with, from, n.MaxQueue, whole)
				}
			}
			if most[0] != most[1] || most[1] != most[2] || most[0] > last || most[0] == 0 {
				t.Errorf("%sfrom %s: %v, at most %d before", with, from, most, last)
			}
			last = most[0]
		}
	}
}
