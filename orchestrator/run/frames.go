package run

import (
	"slices"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology/render"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/sim"
	"weft/transport"
	"weft/units"
)

// Limits of the frames of a run. Our own choices.
const (
	minFrame   = 100 * units.Nanosecond // shortest automatic interval
	rttFrames  = 8                      // initial number of frames in a base RTT
	minFrames  = 400                    // initial number of frames in the shortest time that a run may take
	frameConns = 1 << 16                // with more connections, frames have only ports

	// freeRows is the number of rows of frames that a simulation may have, and one more for each
	// sentPerRow bytes that its ports send. A row costs some 0.5 us, from the network to
	// view.html, and to send that many bytes costs 25 us. So recording takes 3 % of the processor
	// time of a run of a second, and 7 to 18 ms of a shorter one: see BenchmarkFrames in cmd/weft.
	freeRows   = 1 << 14
	sentPerRow = 128 << 10

	// minFrameWall is the shortest interval in an emulation for each framePorts ports, in real
	// time: each frame takes the fabric process from its packets for some microseconds.
	minFrameWall = 2 * time.Millisecond
	framePorts   = 8192
)

// firstKept is the real time after which a run first writes its frames, in case it is killed. Our
// own choice: a shorter run is soon repeated.
const firstKept = 5 * time.Second

// keptShare is how many times as long as writing frames takes they are not written again. Our own
// choice.
const keptShare = 50

// frameKeeper writes the frames of a run in progress: after firstKept, and whenever the run has
// lasted twice as long and writing them has taken only a small share of the time.
type frameKeeper struct {
	dir   *store.Run
	ports []string
	began time.Time // zero before the first frame
	next  time.Time
}

// add writes all frames if it is time. The run reports an error at its end: see store.Run.
func (k *frameKeeper) add(all []frames.Frame) {
	now := time.Now()
	if k.began.IsZero() {
		k.began, k.next = now, now.Add(firstKept)
	}
	if now.Before(k.next) {
		return
	}
	_ = k.dir.KeepFrames(all, k.ports) // kept by dir
	k.next = now.Add(max(now.Sub(k.began), keptShare*time.Since(now)))
}

// minTime returns a time that the run takes at least: all messages to a host pass its links.
func minTime(x *experiment.Experiment, hosts []*host.Host) (longest units.Time) {
	rates := make([]units.Bandwidth, len(hosts))
	for i := range x.Fabric.Ports {
		if p := &x.Fabric.Ports[i]; int(p.To) < len(hosts) {
			rates[p.To] += p.Rate
		}
	}
	for i, h := range hosts {
		if _, total := h.Progress(); rates[i] > 0 {
			longest = max(longest, rates[i].TransmitTime(total))
		}
	}
	return longest
}

// newRecorder returns the recorder of an experiment's frames; nil: the lab wants none. least is the
// smallest interval that the engine can provide. A run takes at least the time lasts; 0: not known.
func newRecorder(x *experiment.Experiment, least, lasts units.Time) *frames.Recorder {
	from, ok := x.Workload.Begins()
	if !ok {
		from = 0
	}
	switch every := x.Lab.Measure.View; every {
	case 0:
		return nil
	case lab.ViewAuto:
		return frames.Auto(from, max(x.BaseRTT/rttFrames, minFrame, least, lasts/minFrames))
	default:
		return frames.Fixed(from, max(every, least))
	}
}

// framer records the frames of a simulated run.
type framer struct {
	*frames.Recorder
	show    func([]frames.Frame) // called after each frame; nil: nobody does
	hosts   []*host.Host         // whose connections are recorded; nil: there are too many
	sent    []units.Bytes        // by port: see fabric.Network.Survey
	total   units.Bytes          // sum of sent
	arrived []units.Bytes        // by connection
	windows []units.Bytes        // by connection: see observer
	before  []units.Bytes        // by connection: what had arrived at its last row
	known   []units.Bytes        // by connection: window in its last row

	ports []frames.Port // rows of the frame that is made, before they have a list of their own
	conns []frames.Conn
}

// newFramer returns the framer of a simulated experiment; nil: the lab wants no frames.
func newFramer(x *experiment.Experiment, hosts []*host.Host, o *observers, show func([]frames.Frame)) *framer {
	r := newRecorder(x, 0, minTime(x, hosts))
	if r == nil {
		return nil
	}
	f := &framer{Recorder: r, show: show, sent: make([]units.Bytes, len(x.Fabric.Ports))}
	if n := len(x.Conns); n <= frameConns {
		f.hosts = hosts
		f.arrived, f.windows = make([]units.Bytes, n), make([]units.Bytes, n)
		f.before, f.known = make([]units.Bytes, n), make([]units.Bytes, n)
		for _, p := range o.parts {
			p.last = f.windows
		}
	}
	return f
}

// all returns all frames; none without a framer.
func (f *framer) all() []frames.Frame {
	if f == nil {
		return nil
	}
	return f.Frames()
}

// record adds a frame of the run, and returns the instant of the next one.
func (f *framer) record(s *sim.Sim, now units.Time) (next units.Time) {
	survey := func(sent []units.Bytes, each func(port int, p fabric.PortState)) { s.Survey(now, sent, each) }
	return f.add(now, survey, arrivals(f.hosts), f.windows)
}

// add adds a frame with what survey says of ports, and arrived and windows of connections.
func (f *framer) add(
	now units.Time, survey func(sent []units.Bytes, each func(port int, p fabric.PortState)),
	arrived func(each func(c transport.ConnID, bytes units.Bytes)), windows []units.Bytes,
) (next units.Time) {
	f.ports, f.conns = f.ports[:0], f.conns[:0]
	survey(f.sent, func(port int, p fabric.PortState) {
		f.total += p.Sent - f.sent[port]
		f.ports = append(f.ports, frames.PortAt(port, p))
	})
	if f.hosts != nil {
		arrived(func(c transport.ConnID, bytes units.Bytes) { f.arrived[c] = bytes })
		for c, bytes := range f.arrived {
			if bytes != f.before[c] || windows[c] != f.known[c] {
				f.before[c], f.known[c] = bytes, windows[c]
				f.conns = append(f.conns, frames.Conn{Conn: uint32(c), Arrived: bytes, Window: windows[c]})
			}
		}
	}
	f.Limit(freeRows + int(f.total/sentPerRow))
	next = f.Add(frames.Frame{At: now, Ports: slices.Clone(f.ports), Conns: slices.Clone(f.conns)})
	if f.show != nil {
		f.show(f.Frames())
	}
	return next
}

// window returns the present window of a connection; 0 if nobody follows it.
func (f *framer) window(c transport.ConnID) units.Bytes {
	if f == nil || f.windows == nil {
		return 0
	}
	return f.windows[c]
}

// networkMap returns the network as weft view draws it.
func networkMap(x *experiment.Experiment) *record.NetworkMap {
	g := x.Graph
	at, width, height := render.Positions(g)
	m := &record.NetworkMap{
		Title: g.Title, Width: width, Height: height, BaseRTTUS: x.BaseRTT.Microseconds(),
		Nodes: make([]record.MapNode, len(g.Nodes)), Ports: make([]record.MapPort, len(x.Fabric.Ports)),
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		m.Nodes[i] = record.MapNode{Name: n.Name, Tier: n.Tier, Host: i < g.Hosts, X: at[i].X, Y: at[i].Y}
	}
	names := x.PortNames()
	for i := range x.Fabric.Ports {
		p := &x.Fabric.Ports[i]
		m.Ports[i] = record.MapPort{
			Name: names[i], From: int(p.From), To: int(p.To), RateBPS: int64(p.Rate), BufferBytes: int64(p.Buffer),
		}
		if p.ECN.On {
			m.Ports[i].KminBytes, m.Ports[i].KmaxBytes = int64(p.ECN.Kmin), int64(p.ECN.Kmax)
		}
	}
	return m
}
