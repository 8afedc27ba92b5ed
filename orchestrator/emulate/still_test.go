package emulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/internal/quiettest"
	"weft/transport"
	"weft/units"
)

// Hosts that compute for longer than anything may stand still, and begin late, are not stuck.
func TestPrivComputingIsNoStall(t *testing.T) {
	x := allToAll(3, 2, 2, 1000)
	x.Stall = 300 * time.Millisecond
	for i := range x.Plans {
		x.Plans[i].Items[0].Start = 700 * units.Microsecond
		x.Plans[i].Items[0].Compute = 700 * units.Microsecond // 0.7 s of real time
	}
	quiettest.Check(t, 3, func() error { // a machine that stands still for so long stalls the run
		o, err := runChecked(t, x)
		if err == nil && len(o.Dones) != 6 {
			t.Errorf("%d dones, want 6", len(o.Dones))
		}
		return err
	})
}

// A host that the lab kills is reported when nothing but it is waited for, long before the limit of
// other stalls.
func TestPrivKilledHostIsReportedAtOnce(t *testing.T) { bothNICs(t, checkKilledHostIsReportedAtOnce) }

func checkKilledHostIsReportedAtOnce(t *testing.T, bypass bool) {
	x := allToAll(4, 500, 1000, 1000)
	x.Processes.Bypass = bypass
	x.Stall = time.Minute
	x.Plans[2].Halts = []host.Halt{{At: 300 * units.Microsecond, Until: units.Never}}
	began := quiettest.Start()
	o, err := Run(t.Context(), x)
	if err == nil || !strings.Contains(err.Error(), "the remaining hosts wait for h2 forever") ||
		!strings.Contains(err.Error(), "host h1: item 0") {
		t.Errorf("%v; want that h2 is waited for", err)
	}
	began.AtMost(t, 20*time.Second, "the run")
	for h, n := range o.Results { // retransmissions to it at least, which its node takes and loses
		if n == nil || n.Unreceived > 0 != (h == 2) {
			t.Errorf("h%d: results %+v, with packets that it did not receive; want those of h2 alone", h, n)
		}
	}
}

// awaitingRun returns a run of hosts, each of which waits for others.
func awaitingRun(awaits ...[]transport.HostID) *run {
	x := star(len(awaits), 1)
	r := &run{session: &session{x: &x}, nodes: make([]nodeState, len(awaits))}
	for i, a := range awaits {
		r.nodes[i].progress.Awaits = a
	}
	return r
}

func TestBereft(t *testing.T) {
	type ids = []transport.HostID
	for _, c := range []struct {
		name   string
		awaits []ids
		done   int // host that is; -1: none
		want   []string
	}{
		{"a ring without its last", []ids{{3}, {0}, {1}, nil}, -1, []string{"h3"}},
		{"two that wait for each other only", []ids{{1}, {0}, {3}, nil}, -1, nil},
		{"one that gets on", []ids{nil, {3}, {3}, nil}, -1, nil},
		{"one that is done", []ids{nil, {3}, {3}, nil}, 0, []string{"h3"}},
		{"nobody waits for it", []ids{{1}, {2}, {0}, nil}, -1, nil},
	} {
		r := awaitingRun(c.awaits...)
		r.x.Plans[3].Halts = []host.Halt{{At: 5, Until: units.Never}}
		r.nodes[3].done = true
		if c.done >= 0 {
			r.nodes[c.done].done = true
		}
		if got := r.bereft(5); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := r.bereft(4); got != nil {
			t.Errorf("%s, before it is killed: %q", c.name, got)
		}
	}
}

// A link comes up between two attempts of a connection that are further apart than the limit for a
// run without progress: the run continues, as in the simulator.
func TestPrivRetriesAreWaitedFor(t *testing.T) {
	x := allToAll(3, 50, 1, 50)
	x.Stall = 300 * time.Millisecond
	down, up := false, true
	x.Changes = []fabric.Change{
		{At: 20 * units.Microsecond, Ports: []int{0, 1}, Up: &down},
		// attempts are made after 31 and 63 ms; 32 ms are 1.6 s
		{At: 35 * units.Millisecond, Ports: []int{0, 1}, Up: &up},
	}
	quiettest.Check(t, 3, func() error {
		o, err := runChecked(t, x)
		if err == nil && (len(o.Dones) != 3 || o.Elapsed < 60*units.Millisecond) {
			err = fmt.Errorf("%d dones, the last after %v; want 3, and the connections' attempt after 63 ms",
				len(o.Dones), o.Elapsed)
		}
		return err
	})
}

func TestRetries(t *testing.T) {
	r := awaitingRun(nil, nil)
	r.nodes[0].progress.Retries = transport.Retries{Tried: 60, Due: 100}
	if r.retries(99) {
		t.Error("a retry is waited for that nothing has changed for")
	}
	r.x.Changes = []fabric.Change{{At: 70}, {At: 200}}
	if r.retries(69) || !r.retries(70) || !r.retries(99) || r.retries(100) {
		t.Error("a retry at 100 after a change at 70")
	}
	r.x.Changes = r.x.Changes[1:]
	r.x.Plans[1].Halts = []host.Halt{{At: 10, Until: 80}}
	if r.retries(79) || !r.retries(80) {
		t.Error("a retry after a host went on at 80")
	}
	r.x.Plans[1].Halts = nil
	r.x.Fabric.Ports[0].Loss = 0.5
	if !r.retries(0) {
		t.Error("a retry on lines that lose packets at random")
	}
	if r.nodes[0].done = true; r.retries(0) {
		t.Error("a retry of a host that is done")
	}
}

// What GivenUp says of a run is what its transports and getsOn come to.
func TestGivenUp(t *testing.T) {
	x := star(2, 1000)
	const ms = units.Millisecond
	if got := x.GivenUp(3 * ms); got != 23*ms {
		t.Errorf("nothing changes: %v, want 20 ms after 3 ms", got)
	}
	x.Plans[0].Conns = []transport.Spec{{RTOMin: ms}}
	x.Changes = []fabric.Change{{At: 10 * ms}}
	if got := x.GivenUp(3 * ms); got != 38*ms {
		t.Errorf("a change at 10 ms: %v, want that an attempt by 18 ms is waited for", got)
	}
	x.Fabric.Ports[0].Loss = 0.5
	if got := x.GivenUp(3 * ms); got != units.Never {
		t.Errorf("random losses: %v", got)
	}
}

func TestResumes(t *testing.T) {
	r := awaitingRun(nil, nil)
	if r.resumes(0) {
		t.Error("nothing is to come, and it is waited for")
	}
	r.nodes[1].progress.Resumes = 100
	if !r.resumes(99) || r.resumes(100) {
		t.Error("a host that computes until 100")
	}
	r.nodes[1].done = true
	if r.resumes(99) {
		t.Error("a host that is done computes")
	}
	r.x.Changes = []fabric.Change{{At: 50}}
	if !r.resumes(49) || r.resumes(50) {
		t.Error("a network that changes at 50")
	}
}
