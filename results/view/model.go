package view

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

// MaxConns is the number of connections that a page knows; those with higher numbers are left out.
const MaxConns = 1 << 16

// Limits of what a page shows of a run. Our own choices.
const (
	maxParts  = 20_000
	maxClocks = 64      // hosts
	maxPoints = 2000    // of one clock
	maxLoaded = 2 << 20 // rows of frames
)

// ErrNoFrames is returned for a run that kept nothing to watch.
var ErrNoFrames = errors.New("the run kept no frames")

// Model is what the page needs of one run. Times are in microseconds of lab time.
type Model struct {
	Title   string             `json:"title"` // tells the run from those beside it
	About   string             `json:"-"`     // what the lab says of itself
	Status  string             `json:"status"`
	Facts   []string           `json:"facts"`
	BeginUS float64            `json:"begin_us"` // start of the workload; the page counts from there
	EndUS   float64            `json:"end_us"`
	Network *record.NetworkMap `json:"network"`
	Frames  columns            `json:"frames"`
	Conns   []*Conn            `json:"conns,omitempty"` // by connection; null: it carried nothing
	Parts   []Part             `json:"parts,omitempty"`
	Faults  []record.Fault     `json:"faults,omitempty"`
	Clocks  []ClockSeries      `json:"clocks,omitempty"`
}

// Conn is a connection.
type Conn struct {
	Src     string  `json:"src"`
	Dst     string  `json:"dst"`
	Bytes   int64   `json:"bytes"`
	StartUS float64 `json:"start_us"` // of its first message
}

// Part is what a rank did in one repetition of a collective.
type Part struct {
	Item       int32   `json:"item"`
	Repeat     int32   `json:"repeat"`
	Collective string  `json:"collective"`
	Rank       int32   `json:"rank"`
	Host       string  `json:"host"`
	StartUS    float64 `json:"start_us"`
	EndUS      float64 `json:"end_us"`
}

// ClockSeries is the error of a host's clock: pairs of microseconds and nanoseconds.
type ClockSeries struct {
	Host   string       `json:"host"`
	Points [][2]float64 `json:"points"`
}

// Load reads the model of a run directory.
func Load(dir string) (*Model, error) {
	manifest, err := store.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	network, err := store.ReadNetwork(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w; its lab needs measure.view: auto", dir, ErrNoFrames, err)
	}
	if err := checkNetwork(network); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, store.NetworkFile), err)
	}
	m := &Model{
		Title: title(dir, manifest), Status: manifest.Status, Network: network, Faults: manifest.Faults,
	}
	for _, s := range manifest.Settings {
		if s.Path == "about" {
			m.About = s.Value
		}
	}
	if s, err := store.ReadSummary(dir); err == nil {
		m.EndUS, m.Facts = s.LabTimeUS, facts(s)
	}
	all, err := loadFrames(dir, network)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoFrames)
	}
	if err := errors.Join(m.loadConns(dir), m.loadParts(dir), m.loadClocks(dir)); err != nil {
		return nil, err
	}
	m.begin(all)
	m.Frames = newColumns(all, len(network.Ports))
	return m, nil
}

// NewModel returns the model of a run that goes on, from its network and its frames so far.
func NewModel(title string, n *record.NetworkMap, all []frames.Frame) *Model {
	m := &Model{Title: title, Status: record.Running, Network: n, Frames: newColumns(all, len(n.Ports))}
	m.begin(all)
	return m
}

// begin finds the start of the workload.
func (m *Model) begin(all []frames.Frame) {
	if len(all) > 0 {
		m.BeginUS = all[0].At.Microseconds()
		if len(all) > 1 {
			m.BeginUS -= (all[1].At - all[0].At).Microseconds()
		}
	}
	for _, c := range m.Conns {
		if c != nil {
			m.BeginUS = min(m.BeginUS, c.StartUS)
		}
	}
	m.BeginUS = max(m.BeginUS, 0)
}

// checkNetwork returns an error if a network refers to nodes that it does not have.
func checkNetwork(n *record.NetworkMap) error {
	for _, p := range n.Ports {
		if p.From < 0 || p.To < 0 || p.From >= len(n.Nodes) || p.To >= len(n.Nodes) || p.RateBPS < 0 {
			return fmt.Errorf("damaged: port %q leads from node %d to %d of %d", p.Name, p.From, p.To, len(n.Nodes))
		}
	}
	for _, k := range n.Nodes {
		if math.IsNaN(k.X+k.Y) || math.IsInf(k.X+k.Y, 0) {
			return fmt.Errorf("damaged: node %q has no place", k.Name)
		}
	}
	return nil
}

// title returns what tells a run from those beside it: its point of a sweep, or its lab, engine and
// transport.
func title(dir string, m *record.Manifest) string {
	name := m.Lab + " " + m.Engine
	if len(m.Point) > 0 {
		var parts []string
		for _, s := range m.Settings {
			if _, ok := m.Point[s.Path]; ok {
				key := s.Path[strings.LastIndex(s.Path, ".")+1:]
				parts = append(parts, strings.TrimPrefix(key+" "+s.Value, "kind "))
			}
		}
		if len(parts) > 0 {
			return strings.Join(parts, ", ")
		}
	}
	if m.Lab == "" {
		return filepath.Base(dir)
	}
	for _, s := range m.Settings {
		if s.Path == "transport.kind" {
			name += ", " + s.Value
		}
	}
	return name
}

// facts returns what a viewer wants to know beside the network.
func facts(s *record.Summary) []string {
	out := []string{s.Transport}
	for _, c := range s.Collectives {
		out = append(out, fmt.Sprintf("%s of %d ranks: %s", c.Name, c.Ranks, short(c.TimeUS)))
		if len(out) > 2 {
			break
		}
	}
	if s.Flows.Count > 0 {
		out = append(out, fmt.Sprintf("p99 FCT %s", short(s.Flows.FCT.P99)))
	}
	if s.Network.Drops > 0 {
		out = append(out, fmt.Sprintf("%d dropped", s.Network.Drops))
	}
	if s.Fidelity != nil {
		out = append(out, "fidelity "+s.Fidelity.Verdict)
	}
	return out
}

// short writes microseconds with four digits and a unit.
func short(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.4g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.4g ms", us/1e3)
	}
	return fmt.Sprintf("%.4g us", us)
}

// loadFrames reads the frames of a run.
func loadFrames(dir string, n *record.NetworkMap) ([]frames.Frame, error) {
	type portRow struct {
		Time   int64  `parquet:"time_ps"`
		Port   string `parquet:"port"`
		Queued int64  `parquet:"queued_bytes"`
		Sent   int64  `parquet:"sent_bytes"`
		Marks  int64  `parquet:"ce_marks"`
		Drops  int64  `parquet:"drops"`
		Paused bool   `parquet:"paused"`
	}
	type connRow struct {
		Time    int64 `parquet:"time_ps"`
		Conn    int64 `parquet:"conn"`
		Arrived int64 `parquet:"arrived_bytes"`
		Window  int64 `parquet:"cwnd_bytes"`
	}
	index := make(map[string]int32, len(n.Ports))
	for i := range n.Ports {
		index[n.Ports[i].Name] = int32(i)
	}
	b := builder{of: map[units.Time]int{}}
	err := store.Scan(dir, store.FramesFile, func(rows []portRow) error {
		for _, r := range rows {
			p, ok := index[r.Port]
			if !ok {
				return fmt.Errorf("%s: port %q is not in %s", store.FramesFile, r.Port, store.NetworkFile)
			}
			f, err := b.at(units.Time(r.Time))
			if err != nil {
				return err
			}
			f.Ports = append(f.Ports, frames.Port{
				Port: p, Queued: units.Bytes(r.Queued), Sent: units.Bytes(r.Sent), Marks: r.Marks, Drops: r.Drops,
				Paused: r.Paused,
			})
		}
		return nil
	})
	if errors.Is(err, store.ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = store.Scan(dir, store.FrameConnsFile, func(rows []connRow) error {
		for _, r := range rows {
			f, err := b.at(units.Time(r.Time))
			if err != nil {
				return err
			}
			f.Conns = append(f.Conns, frames.Conn{
				Conn: uint32(r.Conn), Arrived: units.Bytes(r.Arrived), Window: units.Bytes(r.Window),
			})
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNoTable) {
		return nil, err
	}
	return b.sorted(), nil
}

// loadConns reads the ends of connections from the messages on them.
func (m *Model) loadConns(dir string) error {
	type row struct {
		Src   string `parquet:"src"`
		Dst   string `parquet:"dst"`
		Conn  int64  `parquet:"conn"`
		Bytes int64  `parquet:"bytes"`
		Start int64  `parquet:"start_ps"`
	}
	err := store.Scan(dir, store.FlowsFile, func(rows []row) error {
		for _, r := range rows {
			if r.Conn < 0 || r.Conn >= MaxConns {
				continue
			}
			for int64(len(m.Conns)) <= r.Conn {
				m.Conns = append(m.Conns, nil)
			}
			if c := m.Conns[r.Conn]; c != nil {
				c.Bytes += r.Bytes
				c.StartUS = min(c.StartUS, micros(r.Start))
				continue
			}
			m.Conns[r.Conn] = &Conn{
				Src: strings.Clone(r.Src), Dst: strings.Clone(r.Dst), Bytes: r.Bytes, StartUS: micros(r.Start),
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNoTable) {
		return nil
	}
	return err
}

// loadParts reads what each rank did.
func (m *Model) loadParts(dir string) error {
	type row struct {
		Item       int32  `parquet:"item"`
		Repeat     int32  `parquet:"repeat"`
		Collective string `parquet:"collective"`
		Rank       int32  `parquet:"rank"`
		Host       string `parquet:"host"`
		Start      int64  `parquet:"start_ps"`
		End        int64  `parquet:"end_ps"`
	}
	err := store.Scan(dir, store.CollectivesFile, func(rows []row) error {
		for _, r := range rows {
			if len(m.Parts) >= maxParts {
				return nil
			}
			m.Parts = append(m.Parts, Part{
				Item: r.Item, Repeat: r.Repeat, Collective: strings.Clone(r.Collective), Rank: r.Rank,
				Host: strings.Clone(r.Host), StartUS: micros(r.Start), EndUS: micros(r.End),
			})
		}
		return nil
	})
	if errors.Is(err, store.ErrNoTable) {
		return nil
	}
	return err
}

// loadClocks reads the errors of the first clocks, thinned.
func (m *Model) loadClocks(dir string) error {
	type row struct {
		Time  int64  `parquet:"time_ps"`
		Host  string `parquet:"host"`
		Error int64  `parquet:"error_ps"`
	}
	index := map[string]int{}
	err := store.Scan(dir, store.ClocksFile, func(rows []row) error {
		for _, r := range rows {
			i, ok := index[r.Host]
			if !ok {
				if len(m.Clocks) >= maxClocks {
					continue
				}
				i = len(m.Clocks)
				host := strings.Clone(r.Host)
				index[host] = i
				m.Clocks = append(m.Clocks, ClockSeries{Host: host})
			}
			m.Clocks[i].Points = append(m.Clocks[i].Points, [2]float64{micros(r.Time), float64(r.Error) / 1e3})
		}
		return nil
	})
	for i := range m.Clocks {
		m.Clocks[i].Points = thin(m.Clocks[i].Points)
	}
	if errors.Is(err, store.ErrNoTable) {
		return nil
	}
	return err
}

// thin keeps the largest error of each of maxPoints stretches.
func thin(points [][2]float64) [][2]float64 {
	if len(points) <= maxPoints {
		return points
	}
	out := make([][2]float64, maxPoints)
	for i := range out {
		part := points[i*len(points)/maxPoints : (i+1)*len(points)/maxPoints]
		out[i] = part[0]
		for _, p := range part {
			if math.Abs(p[1]) > math.Abs(out[i][1]) {
				out[i] = p
			}
		}
	}
	return out
}
