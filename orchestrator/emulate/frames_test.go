package emulate

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/results/frames"
	"weft/units"
)

// Frames have the connections of all hosts, whose bytes are those of the flows, and arrive within a
// second of what they show, so that a page of a run in progress shows a queue that soon.
func TestPrivFramesOfConnections(t *testing.T) { bothNICs(t, checkFramesOfConnections) }

func checkFramesOfConnections(t *testing.T, bypass bool) {
	testenv.NeedNamespaces(t)
	const n, packets, repeat = 4, 40, 4
	x := allToAll(n, packets, repeat, 10_000)
	x.Processes.Bypass = bypass
	quiettest.Check(t, 4, func() error {
		recorder := frames.Auto(0, units.Microsecond)
		x.FrameSchedule = recorder.Schedule()
		began := time.Time{} // of lab time, as progress reports have it
		var late time.Duration
		queued := 0
		x.Progress = func(p Progress) {
			if at := time.Now().Add(-time.Duration(p.At.Nanoseconds() * x.Dilation)); began.IsZero() || at.Before(began) {
				began = at
			}
		}
		x.Frames = func(all []frames.Frame) {
			for _, f := range all {
				recorder.Add(f)
				for _, p := range f.Ports {
					if p.Queued > 0 {
						queued++
						if shown := time.Since(began.Add(time.Duration(f.At.Nanoseconds() * x.Dilation))); !began.IsZero() {
							late = max(late, shown)
						}
					}
				}
			}
		}
		x.Conns = func(all []frames.Frame) {
			for _, f := range all {
				recorder.AddConns(f.At, f.Conns)
			}
		}
		o := mustRun(t, x)
		arrived, windows := map[uint32]units.Bytes{}, map[uint32]units.Bytes{}
		for _, f := range recorder.Frames() {
			for _, c := range f.Conns {
				if c.Arrived > 0 && c.Arrived < arrived[c.Conn] {
					t.Errorf("the bytes of connection %d fall from %v to %v at %v", c.Conn, arrived[c.Conn], c.Arrived, f.At)
				}
				arrived[c.Conn], windows[c.Conn] = max(arrived[c.Conn], c.Arrived), max(windows[c.Conn], c.Window)
			}
		}
		var all units.Bytes
		for _, bytes := range arrived {
			all += bytes
		}
		sent := units.Bytes(len(o.Flows) * packets * benchMTU)
		if len(arrived) != n*(n-1) || all < sent*8/10 || all > sent { // not of the last interval
			t.Errorf("%v have arrived by %d connections, of %v by %d", all, len(arrived), sent, n*(n-1))
		}
		for c, w := range windows {
			if w == 0 {
				t.Errorf("connection %d has no window", c)
			}
		}
		if queued == 0 {
			t.Error("no frame has a queue")
		}
		if late > time.Second {
			return fmt.Errorf("a queue was shown %v late", late)
		}
		return nil
	})
}
