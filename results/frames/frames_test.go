package frames

import (
	"math/rand/v2"
	"slices"
	"testing"

	"weft/units"
)

// A port's counters after merging are those of the last frame in which it did something, whatever
// the number of frames, and a queue that emptied is empty.
func TestMergingKeepsCounters(t *testing.T) {
	const ports = 7
	rng := rand.New(rand.NewPCG(1, 2))
	r := Auto(0, units.Microsecond)
	var sent [ports]units.Bytes
	var queued [ports]units.Bytes
	truth := map[units.Time][ports][2]units.Bytes{}
	for at := r.First(); at < 40*units.Millisecond; {
		f := Frame{At: at}
		for p := range ports {
			was := queued[p]
			if queued[p] = 0; rng.IntN(3) == 0 {
				queued[p] = units.Bytes(rng.IntN(5) * 1000)
			}
			grew := rng.IntN(4) == 0
			if grew {
				sent[p] += 1500
			}
			if grew || queued[p] > 0 || was > 0 {
				f.Ports = append(f.Ports, Port{Port: int32(p), Queued: queued[p], Sent: sent[p]})
			}
		}
		now := [ports][2]units.Bytes{}
		for p := range ports {
			now[p] = [2]units.Bytes{queued[p], sent[p]}
		}
		truth[at] = now
		at = r.Add(f)
	}
	frames := r.Frames()
	if len(frames) < maxFrames/2-1 || len(frames) > maxFrames {
		t.Fatalf("%d frames; expected %d to %d", len(frames), maxFrames/2, maxFrames)
	}
	var state [ports][2]units.Bytes
	for i, f := range frames {
		if i > 0 && f.At <= frames[i-1].At {
			t.Fatalf("frame %d at %v follows %v", i, f.At, frames[i-1].At)
		}
		for p := range ports {
			state[p][0] = 0
		}
		for _, p := range f.Ports {
			state[p.Port] = [2]units.Bytes{p.Queued, p.Sent}
		}
		if state != truth[f.At] {
			t.Fatalf("frame at %v: %v; expected %v", f.At, state, truth[f.At])
		}
	}
}

// The number of rows is bounded, whether the interval is fixed or not.
func TestRowsAreBounded(t *testing.T) {
	for name, r := range map[string]*Recorder{"auto": Auto(0, 1), "fixed": Fixed(0, 1)} {
		at := r.First()
		for range 300 {
			f := Frame{At: at, Ports: make([]Port, 1<<14)}
			for p := range f.Ports {
				f.Ports[p].Port = int32(p)
			}
			at = r.Add(f)
			if r.rows > maxRows+1<<14 {
				t.Fatalf("%s: %d rows", name, r.rows)
			}
		}
		sum := 0
		for i := range r.frames {
			sum += r.frames[i].rows()
		}
		if sum != r.rows {
			t.Errorf("%s: %d rows are counted as %d", name, sum, r.rows)
		}
	}
}

// A recorder with a limit that grows keeps more frames, and some however large they are.
func TestLimitOfRows(t *testing.T) {
	record := func(ports, limit, grows int) *Recorder {
		r := Auto(0, 1)
		at := r.First()
		for range 400 {
			f := Frame{At: at, Ports: make([]Port, ports)}
			for p := range f.Ports {
				f.Ports[p].Port = int32(p)
			}
			r.Limit(limit)
			limit += grows
			at = r.Add(f)
		}
		return r
	}
	if n := len(record(10, 1000, 0).Frames()); n < 50 || n > 100 {
		t.Errorf("%d frames of 10 rows with a limit of 1,000", n)
	}
	if n := len(record(10, 1000, 10).Frames()); n != 400 {
		t.Errorf("%d frames with a limit that grows by a frame's rows", n)
	}
	if n := len(record(1000, 1, 0).Frames()); n < minFrames/2 || n > minFrames {
		t.Errorf("%d frames with hardly any rows; expected %d to %d", n, minFrames/2, minFrames)
	}
}

// A fixed interval keeps all frames.
func TestFixedKeepsAll(t *testing.T) {
	r := Fixed(5*units.Microsecond, 2*units.Microsecond)
	at := r.First()
	for range 5 * maxFrames {
		at = r.Add(Frame{At: at})
	}
	if n := len(r.Frames()); n != 5*maxFrames {
		t.Errorf("%d frames; expected %d", n, 5*maxFrames)
	}
	if want := units.Time(5+2*(5*maxFrames+1)) * units.Microsecond; at != want {
		t.Errorf("the next frame is at %v; expected %v", at, want)
	}
}

// An engine without the recorder makes frames at the recorder's instants.
func TestAfterAgreesWithRecorder(t *testing.T) {
	const from, interval = 3 * units.Millisecond, 7 * units.Microsecond
	r := Auto(from, interval)
	s := r.Schedule()
	at := r.First()
	if got := s.After(from); got != at {
		t.Fatalf("the first frame is at %v; the recorder wants %v", got, at)
	}
	for range 10 * maxFrames {
		next := r.Add(Frame{At: at})
		if got := s.After(at); got != next && got != next-(next-at)/2 {
			t.Fatalf("after %v: %v; the recorder wants %v", at, got, next)
		}
		at = next
	}
}

// An engine without the recorder keeps a fixed interval too, however many frames there are.
func TestFixedScheduleStays(t *testing.T) {
	const from, interval = 3 * units.Millisecond, 7 * units.Microsecond
	r := Fixed(from, interval)
	s := r.Schedule()
	at := r.First()
	for range 3 * maxFrames {
		next := r.Add(Frame{At: at})
		if got := s.After(at); got != next {
			t.Fatalf("after %v: %v; the recorder wants %v", at, got, next)
		}
		at = next
	}
}

// Frames that come more often than wanted, as from another process that does not know the interval,
// are merged.
func TestExtraFramesAreMerged(t *testing.T) {
	r := Auto(0, 10)
	for at := units.Time(5); at <= 100; at += 5 {
		r.Add(Frame{At: at, Conns: []Conn{{Conn: uint32(at), Arrived: 1}}})
	}
	if n := len(r.Frames()); n != 10 {
		t.Fatalf("%d frames; expected 10", n)
	}
	for _, f := range r.Frames() {
		if len(f.Conns) != 2 {
			t.Errorf("frame at %v has %d connections; expected 2", f.At, len(f.Conns))
		}
	}
}

// States of connections that arrive apart from the network's frames end up in the first frame at or
// after their instant, whether they come late or early, and partial ones complete each other.
func TestConnectionsApart(t *testing.T) {
	r := Auto(0, 10)
	for at := units.Time(10); at <= 40; at += 10 {
		r.Add(Frame{At: at})
	}
	r.AddConns(10, []Conn{{Conn: 1, Arrived: 100}, {Conn: 3, Arrived: 5}})
	r.AddConns(60, []Conn{{Conn: 1, Arrived: 600}})                    // early
	r.AddConns(10, []Conn{{Conn: 1, Window: 7}, {Conn: 2, Window: 8}}) // late, of the other end
	r.AddConns(20, []Conn{{Conn: 1, Arrived: 200}})
	r.AddConns(50, []Conn{{Conn: 1, Window: 9}})
	for at := units.Time(50); at <= 70; at += 10 {
		r.Add(Frame{At: at})
	}
	want := map[units.Time][]Conn{
		10: {{1, 100, 7}, {2, 0, 8}, {3, 5, 0}}, 20: {{1, 200, 0}}, 50: {{1, 0, 9}}, 60: {{1, 600, 0}},
	}
	check := func(want map[units.Time][]Conn) {
		t.Helper()
		rows := 0
		for _, f := range r.Frames() {
			if !slices.Equal(f.Conns, want[f.At]) {
				t.Errorf("at %v: %v; expected %v", f.At, f.Conns, want[f.At])
			}
			rows += f.rows()
		}
		if rows != r.rows {
			t.Errorf("%d rows are counted as %d", rows, r.rows)
		}
	}
	check(want)
	r.thin()
	check(map[units.Time][]Conn{20: {{1, 200, 7}, {2, 0, 8}, {3, 5, 0}}, 60: {{1, 600, 9}}})
	r.AddConns(30, []Conn{{Conn: 4, Window: 1}}) // its frame is no longer there
	check(map[units.Time][]Conn{20: {{1, 200, 7}, {2, 0, 8}, {3, 5, 0}}, 40: {{4, 0, 1}}, 60: {{1, 600, 9}}})
}

// Whoever sends states of the future is bounded.
func TestConnectionsAheadAreBounded(t *testing.T) {
	r := Auto(0, 10)
	for at := range units.Time(10 * maxAhead) {
		r.AddConns(1000+at, []Conn{{Conn: 1, Window: 1 + units.Bytes(at)}})
	}
	if len(r.ahead) > maxAhead {
		t.Errorf("%d frames wait", len(r.ahead))
	}
}
