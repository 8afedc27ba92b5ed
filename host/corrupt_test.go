package host

import (
	"fmt"
	"strings"
	"testing"

	"weft/collectives/schedule"
	"weft/units"
)

// A byte that the plan has wrong makes a result wrong, with real bytes and without, and the step
// that received it is known.
func TestBytesThatAreWrong(t *testing.T) {
	for _, memory := range []int{realMemory, symbolicMemory} {
		for _, s := range []schedule.Spec{ringAllReduce(64*units.KB, 4*units.KB), allToAll(64*units.KB, 0), windowedAllToAll(64*units.KB, 1), permutation(t, 4, 64*units.KB)} {
			t.Run(fmt.Sprintf("%d %s %s", memory, s.Collective, s.Algorithm), func(t *testing.T) {
				net := buildNetwork(t, 4, memory, job{Spec: s})
				h := net.hosts[2]
				h.corrupt = []units.Time{0, 1, 1000 * units.Second}
				net.run(t)
				if h.Uncorrupted() != 1 || h.Name() != "h2" {
					t.Errorf("%d bytes of %s are left", h.Uncorrupted(), h.Name())
				}
				wrong := 0
				for _, h := range net.hosts {
					for _, d := range h.Dones() {
						if d.Wrong == 0 {
							continue
						}
						wrong++
						spec := s
						spec.Ranks = 4
						p, err := schedule.Build(spec, d.Rank)
						if err != nil || d.Blame == nil || d.Blame.Step < 0 {
							t.Fatalf("%v, %+v, %+v", err, d, d.Blame)
						}
						op := p[d.Blame.Step]
						if op.Kind != schedule.Recv || op.Peer != d.Blame.Peer || d.Blame.Off < op.Off || d.Blame.Off >= op.Off+op.Len {
							t.Errorf("%+v is blamed for byte %d", op, d.Blame.Off)
						}
					}
				}
				if wrong == 0 {
					t.Error("nothing is wrong")
				}
			})
		}
	}
}

// While it is at something, a host says what: for whoever finds that it is dead.
func TestDoing(t *testing.T) {
	net := buildNetwork(t, 3, symbolicMemory, job{Spec: ringAllReduce(64*units.KB, 0)})
	h := net.hosts[1]
	if got := h.Doing(); got != "" {
		t.Errorf("before: %q", got)
	}
	h.Start(0)
	if got := h.Doing(); !strings.HasPrefix(got, "item 0 (all-reduce by ring), repetition 0, rank 1, step 0 of 8") {
		t.Errorf("at the start: %q", got)
	}
	net.run(t)
	if got := h.Doing(); got != "" {
		t.Errorf("after: %q", got)
	}
}
