package emulate

import (
	"errors"
	"testing"
	"time"

	"weft/orchestrator/runtime"
)

// sleepers is a cluster of processes that wait for no processor.
type sleepers struct{ namedCluster }

func (sleepers) Fabric() *runtime.Proc  { return &runtime.Proc{} }
func (sleepers) Node(int) *runtime.Proc { return &runtime.Proc{} }
func (sleepers) Agents() int            { return 0 }

// Time in which this process did not look for messages is nobody's silence, however it is divided.
// The rest is.
func TestLateLooksBlameNobody(t *testing.T) {
	for _, late := range []time.Duration{watchEvery / 2, time.Second, time.Minute} {
		r := &run{session: &session{cluster: sleepers{}, crew: &crew{}, carrier: &carrier{who: "the fabric process"}},
			nodes: make([]nodeState, 1), outcome: newOutcome(1)}
		now := time.Now()
		r.allHeard(now)
		looks := int(patience() / watchEvery)
		for i := range looks {
			now = now.Add(watchEvery + late)
			if err := r.hung(now); err != nil {
				t.Errorf("looks that are %v late: silence after %d: %v", late, i, err)
				break
			}
		}
		now = now.Add(watchEvery + late)
		if err := r.hung(now); !errors.Is(err, errSilent) {
			t.Errorf("looks that are %v late: got %v after %d, want %v", late, err, looks+1, errSilent)
		}
	}
}
