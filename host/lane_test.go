package host

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// Messages spread over several connections arrive whole, one after the other or cut, with loss and
// without, and a message that was cut is one flow.
func TestQueuePairs(t *testing.T) {
	for _, kind := range kinds {
		for _, split := range []bool{false, true} {
			for _, loss := range []int{0, 50} {
				rng := rand.New(rand.NewPCG(7, uint64(kind)))
				net := buildNetwork(t, 5, kind,
					job{Spec: ringAllReduce(100*units.KB, 4*units.KB), repeat: 2, qps: 4, split: split},
					job{Spec: allToAll(200*units.KB, 2), qps: 3, split: split, previous: true},
					job{Spec: permutation(t, 5, 123456), qps: 16, split: split},
				)
				net.lose = func(*packet) bool { return loss > 0 && rng.IntN(loss) == 0 }
				net.run(t)
				net.verify(t, 2*5+5+5)
				if got, want := net.flows(), 2*5*2*4*5+5*4+5; got != want { // ring: 20 KB in 5 pieces
					t.Errorf("memory %d, split %t: %d flows, want %d", kind, split, got, want)
				}
			}
		}
	}
}

func (n *network) flows() int {
	flows := 0
	for _, h := range n.hosts {
		flows += len(h.Flows())
	}
	return flows
}

// An incast of several flows from each sender has a connection for each, and they are announced as
// such.
func TestIncastOfFlows(t *testing.T) {
	for _, kind := range kinds {
		s := incast(40*units.KB, 1)
		s.Flows, s.Chunk = 10, 16*units.KB
		net := buildNetwork(t, 4, kind, job{Spec: s, repeat: 2, qps: 2})
		root := net.hosts[1]
		root.Start(0)
		if got := root.expected; got != 3*10*2 {
			t.Errorf("%d flows announced, want 60", got)
		}
		net.run(t)
		net.verify(t, 2*4)
		if got, want := net.flows(), 2*3*10*3; got != want { // 40 KB in 3 pieces
			t.Errorf("memory %d: %d flows, want %d", kind, got, want)
		}
	}
}

// A message with missing parts is one unfinished flow.
func TestUnfinishedSplitMessage(t *testing.T) {
	net := buildNetwork(t, 2, noMemory, job{Spec: incast(64*units.KB, 1), qps: 4, split: true})
	net.lose = func(p *packet) bool { return p.data && net.now > 2*units.Microsecond }
	for i, h := range net.hosts {
		h.Start(0)
		net.transmit(i)
	}
	for range 200 {
		net.step()
	}
	flows := net.hosts[0].Flows()
	if len(flows) != 1 || flows[0].Acked != 0 || flows[0].Size != 64*units.KB || flows[0].Conn != net.hosts[0].plan.Items[0].Conns[0].Conn {
		t.Errorf("flows %+v", flows)
	}
}

// Parts cover a message without gaps, on the lanes of its flow, in multiples of 128 bytes but for
// the last.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := Item{QPs: rapid.IntRange(1, 16).Draw(t, "qps"), Split: true}
		n := units.Bytes(rapid.Int64Range(1, 100_000).Draw(t, "n"))
		at, parts := units.Bytes(0), 0
		for lane := range it.QPs {
			off, size := it.part(lane+3*it.QPs, n)
			if size > 0 {
				parts++
			}
			if size > 0 && (off != at || off%partUnit != 0) || size < 0 {
				t.Fatalf("lane %d of %d: %d bytes at %d, %d were covered", lane, it.QPs, size, off, at)
			}
			at += size
		}
		if at != n || parts != it.parts(n) {
			t.Fatalf("%d bytes in %d parts of %d in %d", at, parts, n, it.parts(n))
		}
	})
}
