// Package monitor turns snapshots of a deployed lab into what a page shows of it.
//
// In go states of the lab, at intervals. Out comes a view.Model: the network as links and switches,
// frames of its ports that count from the first snapshot, and faults that begin and end with the
// states of links and hosts. It is pure: the caller asks the lab's supervisor, and serves the page.
package monitor

import (
	"cmp"
	"slices"
	"time"

	"weft/orchestrator/deploy"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/view"
	"weft/units"
)

// Monitor holds what the snapshots of a deployed lab showed.
type Monitor struct {
	network  *record.NetworkMap
	links    []string
	before   []deploy.PortState // counters in the first snapshot
	recorder *frames.Recorder
	last     units.Time
	faults   []record.Fault
	open     map[string]int // fault that lasts, by link or host
}

// New returns a monitor with a first snapshot. Others follow at the given interval.
func New(s *deploy.State, every time.Duration) *Monitor {
	w := &Monitor{open: map[string]int{}, last: -1}
	m := &record.NetworkMap{Title: s.Lab}
	index := map[string]int{}
	for i, n := range s.Nodes {
		index[n.Name] = i
		m.Nodes = append(m.Nodes, record.MapNode{Name: n.Name, Tier: n.Tier, Host: n.Tier == hostTier})
	}
	for _, k := range s.Links {
		w.links = append(w.links, k.Name)
		ends := [2]int{index[k.A], index[k.B]}
		for i, p := range k.Ports {
			m.Ports = append(m.Ports, record.MapPort{
				Name: p.Name, From: ends[i&1], To: ends[1-i&1], RateBPS: k.RateBPS,
			})
			w.before = append(w.before, p)
		}
	}
	placeNodes(m)
	w.network = m
	w.recorder = frames.Auto(instant(s), units.FromDuration(every)/8)
	return w
}

// Distances of a drawing of a deployed lab. Our own choice.
const (
	columnStep = 90
	rowStep    = 140
)

// placeNodes places hosts in the lowest row, and every switch as many rows above as it is links
// away from a host, above the nodes that it is linked with.
func placeNodes(m *record.NetworkMap) {
	near := make([][]int, len(m.Nodes))
	for _, p := range m.Ports {
		near[p.From] = append(near[p.From], p.To)
	}
	row := make([]int, len(m.Nodes))
	var queue []int
	for i := range m.Nodes {
		if row[i] = -1; m.Nodes[i].Host {
			row[i] = 0
			queue = append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, n := range near[queue[0]] {
			if row[n] < 0 {
				row[n] = row[queue[0]] + 1
				queue = append(queue, n)
			}
		}
	}
	rows := make([][]int, max(1, slices.Max(append([]int{0}, row...))+1))
	widest := 1
	for i, r := range row {
		r = max(r, 0) // linked with no host
		rows[r] = append(rows[r], i)
		widest = max(widest, len(rows[r]))
	}
	m.Width, m.Height = float64(widest)*columnStep, float64(len(rows))*rowStep
	for r, nodes := range rows {
		mean := func(i int) float64 { // of the nodes below
			sum, n := 0.0, 0
			for _, k := range near[i] {
				if row[k] == r-1 {
					sum, n = sum+m.Nodes[k].X, n+1
				}
			}
			return sum / float64(max(n, 1))
		}
		if r > 0 {
			slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(mean(a), mean(b)) })
		}
		for k, i := range nodes {
			m.Nodes[i].X = m.Width * (float64(k) + 0.5) / float64(len(nodes))
			m.Nodes[i].Y = m.Height - (float64(r)+0.5)*rowStep
		}
	}
}

// hostTier is the tier of a host in a deploy.State.
const hostTier = "host"

// instant returns the lab time of a state.
func instant(s *deploy.State) units.Time { return units.Time(s.NowUS * float64(units.Microsecond)) }

// Add adds a snapshot. One with other ports than the first is ignored.
func (w *Monitor) Add(s *deploy.State) {
	at := instant(s)
	f := frames.Frame{At: at}
	p := 0
	for _, k := range s.Links {
		for _, now := range k.Ports {
			if p == len(w.before) {
				return
			}
			b := &w.before[p]
			f.Ports = append(f.Ports, frames.Port{
				Port: int32(p), Queued: units.Bytes(now.QueuedBytes), Sent: units.Bytes(now.Bytes - b.Bytes),
				Marks: now.Marks - b.Marks, Drops: now.Drops + now.Lost + now.Cut - b.Drops - b.Lost - b.Cut,
			})
			p++
		}
		w.fault(record.Fault{Link: k.Name, What: k.State}, k.State != "up", at)
	}
	for _, n := range s.Nodes {
		w.fault(record.Fault{Host: n.Name, What: n.State}, n.State == "paused" || n.State == "dead", at)
	}
	if at > w.last {
		w.last = at
		w.recorder.Add(f)
	}
}

// fault begins or ends a fault of a link or a host; is reports whether it has the fault at the
// instant.
func (w *Monitor) fault(f record.Fault, is bool, at units.Time) {
	name := f.Link + f.Host
	i, lasts := w.open[name]
	if lasts && (!is || w.faults[i].What != f.What) {
		w.faults[i].UntilUS = at.Microseconds()
		delete(w.open, name)
		lasts = false
	}
	if is && !lasts {
		f.FromUS = at.Microseconds()
		w.open[name] = len(w.faults)
		w.faults = append(w.faults, f)
	}
}

// Model returns what a page shows after the last snapshot.
func (w *Monitor) Model(s *deploy.State) *view.Model {
	m := view.NewModel(s.Lab, w.network, w.recorder.Frames())
	m.Links, m.Faults = w.links, w.faults
	m.Status, m.Grade = "up", record.Good.String()
	if s.Broken != "" {
		m.Status, m.Grade = "broken", record.Bad.String()
	}
	m.Facts = append([]string{s.Runtime}, s.Notes...)
	return m
}
