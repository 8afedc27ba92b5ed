package emulate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/host"
	"weft/internal/control"
	"weft/orchestrator/runtime"
)

// dying is a cluster of two hosts whose processes end when the test says so.
type dying struct {
	runtime.Cluster
	exits chan runtime.Exit
}

func (d *dying) Exits() <-chan runtime.Exit { return d.exits }
func (d *dying) Fabric() *runtime.Proc      { return &runtime.Proc{} }
func (d *dying) Agents() int                { return 0 }
func (d *dying) Nodes() int                 { return 1 }
func (d *dying) Node(int) *runtime.Proc     { return &runtime.Proc{Name: "h0", PID: 7} }
func (d *dying) die(name string, pid int) {
	d.exits <- runtime.Exit{Name: name, PID: pid, Err: killed(name)}
}
func killed(name string) *runtime.ExitError {
	return &runtime.ExitError{Name: name, State: "signal: killed"}
}

// standing returns a lab that stays up, and the other end of the connection to its carrier.
func standing(t *testing.T, cluster runtime.Cluster, c *carrier) (s *Deployment, end *control.Conn) {
	t.Helper()
	ours, end, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	c.conn = ours
	s = &Deployment{session: &session{cluster: cluster, carrier: c, ends: endsOf(cluster),
		x: &Experiment{Plans: []host.Plan{{Name: "h0"}, {Name: "h1"}}}},
		broken: make(chan struct{}), exits: make(chan runtime.Exit, 8), life: t.Context(),
		answers: make(chan control.Message, 1)}
	go s.follow()
	go s.listen(ours)
	t.Cleanup(func() { end.Close() })
	return s, end
}

// However the connection to the network's process and the news of its end follow each other, a lab
// says how that ended, also to who asks it for something meanwhile.
func TestLabSaysHowItsNetworkEnded(t *testing.T) {
	for _, late := range []time.Duration{-1, 0, 50 * time.Millisecond} {
		d := &dying{exits: make(chan runtime.Exit, 8)}
		s, end := standing(t, d, &carrier{name: "fabric", who: "the fabric process"})
		d.die("h1", 8)
		d.die(runtime.KeeperName, 9)
		if late < 0 {
			d.die(runtime.Fabric, 1)
		}
		end.Close()
		asked := make(chan error, 1)
		go func() {
			_, err := s.Look()
			asked <- err
		}()
		if late >= 0 {
			time.Sleep(late) // the connection ends first
			d.die(runtime.Fabric, 1)
		}
		<-s.Broken()
		for _, err := range []error{s.Why(), <-asked} {
			if !strings.Contains(err.Error(), "fabric died: signal: killed") {
				t.Errorf("%v: %v", late, err)
			}
		}
		close(d.exits)
		var names []string
		for e := range s.Exits() {
			names = append(names, e.Name)
		}
		if len(names) != 3 {
			t.Errorf("told of %v", names)
		}
	}
}

// A network on several machines breaks with the connection between two, though all its processes
// live.
func TestLabBreaksWithAConnection(t *testing.T) {
	m := &machines{exits: make(chan runtime.Exit, 8)}
	c := &carrier{name: "fabric", who: "the fabric", joint: true, ended: make(chan struct{}), why: errors.New("m2: its connection ended")}
	s, end := standing(t, m, c)
	go func() { // as Join does
		for _, _, err := end.Recv(); err == nil; _, _, err = end.Recv() {
		}
		close(c.ended)
	}()
	const what = "the connection to m1 of m2"
	m.exits <- runtime.Exit{Name: "h1", Err: killed("h1")}
	m.exits <- runtime.Exit{Name: what, Err: killed(what)}
	<-s.Broken()
	if err := s.Why(); !strings.Contains(err.Error(), what) {
		t.Error(err)
	}
	if err := s.Change(fabric.Change{}); err == nil || !strings.Contains(err.Error(), what) {
		t.Error(err)
	}
}

// A node that ends while it is started again is named with how it ended, and not as the process
// before it.
func TestRestartedNodeThatEnds(t *testing.T) {
	d := &dying{exits: make(chan runtime.Exit, 8)}
	s, _ := standing(t, d, &carrier{name: "fabric", who: "the fabric process"})
	d.die("h0", 6) // the one before
	explained := make(chan error, 1)
	go func() {
		explained <- s.explain(func(e *runtime.Exit) bool { return e.Name == "h0" && e.PID == 7 }, unix.EPIPE)
	}()
	select {
	case err := <-explained:
		t.Error(err)
	case <-time.After(50 * time.Millisecond):
	}
	d.die("h0", 7)
	if err := <-explained; err.Error() != "h0 died: signal: killed" {
		t.Error(err)
	}
}
