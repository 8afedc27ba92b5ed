package view

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"weft/results/frames"
	"weft/results/names"
	"weft/results/record"
	"weft/results/store"
	"weft/transport"
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

// Model has the data of one run that the page needs. Times are in microseconds of lab time.
type Model struct {
	Title   string             `json:"title"` // tells the run from those beside it
	Lab     string             `json:"-"`
	Color   int                `json:"color"`  // of its transport: see transport.Facts
	About   string             `json:"-"`      // what the lab says of itself
	Status  string             `json:"status"` // how the run ended: see record.Outcome
	Grade   string             `json:"grade"`  // of the status: see record.Grade
	Facts   []string           `json:"facts"`
	BeginUS float64            `json:"begin_us"` // start of the workload; the page counts from there
	EndUS   float64            `json:"end_us"`
	Network *record.NetworkMap `json:"network"`
	Frames  packed             `json:"frames"`
	Conns   []*Conn            `json:"conns,omitempty"` // by connection; null: it carried nothing
	Parts   []Part             `json:"parts,omitempty"`
	Faults  []record.Fault     `json:"faults,omitempty"`
	Clocks  []ClockSeries      `json:"clocks,omitempty"`
	Links   []string           `json:"links,omitempty"` // names, for the actions of a deployed lab
}

// Conn is a connection.
type Conn struct {
	Src     string  `json:"src"`
	Dst     string  `json:"dst"`
	Bytes   int64   `json:"bytes"`
	StartUS float64 `json:"start_us"` // of its first message
}

// Part is a rank's part in one repetition of a collective.
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

// Source has the data that a model is made from.
type Source struct {
	Network *record.NetworkMap
	Frames  []frames.Frame
	Conns   []record.Conn // by connection
	Parts   []record.Part
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
	s := Source{Network: network}
	if s.Frames, err = loadFrames(dir, network); err != nil {
		return nil, err
	}
	if s.Conns, err = loadConns(dir); err != nil {
		return nil, err
	}
	if s.Parts, err = loadParts(dir); err != nil {
		return nil, err
	}
	summary, err := store.ReadSummary(dir)
	if err != nil {
		summary = nil // the run is damaged, or has not ended: what it wrote can be seen
	}
	m, failed := Make(dir, manifest, summary, s)
	if failed == nil && err != nil && (!errors.Is(err, store.ErrNoSummary) || manifest.Status == record.OK) {
		m.ended(record.Outcome{Status: record.Damaged})
		m.Facts = append(m.Facts, err.Error())
	}
	return m, failed
}

// Make returns the model of a run from what was recorded of it. It reads only clocks from the run's
// directory. summary is nil for a run that has none.
func Make(dir string, manifest *record.Manifest, summary *record.Summary, s Source) (*Model, error) {
	if len(s.Frames) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoFrames)
	}
	m := &Model{
		Title: title(dir, manifest), Lab: manifest.Lab, Network: s.Network, Faults: manifest.Faults,
	}
	m.ended(manifest.Outcome())
	m.Color = transport.FactsOf(manifest.Transport()).Color
	for _, v := range manifest.Settings {
		if v.Path == "about" {
			m.About = v.Value
		}
	}
	if summary != nil {
		m.EndUS, m.Facts = summary.End(), facts(summary)
		m.ended(summary.Outcome())
		t := record.Sender(names.Transport(summary.Transport, manifest.Control), summary.Carried)
		if !strings.Contains(m.Title, t) {
			m.Facts = append([]string{t}, m.Facts...)
		}
	}
	m.addConns(s.Conns)
	for i := range s.Parts[:min(len(s.Parts), maxParts)] {
		p := &s.Parts[i]
		m.Parts = append(m.Parts, Part{
			Item: int32(p.Item), Repeat: int32(p.Repeat), Collective: p.Collective, Rank: int32(p.Rank), Host: p.Host,
			StartUS: p.Start.Microseconds(), EndUS: p.End.Microseconds(),
		})
	}
	if err := m.loadClocks(dir); err != nil {
		return nil, err
	}
	m.begin(s.Frames)
	m.Frames = pack(s.Frames, len(s.Network.Ports))
	return m, nil
}

// ended sets how the run ended.
func (m *Model) ended(o record.Outcome) { m.Status, m.Grade = o.String(), o.Grade().String() }

// addConns adds the first connections.
func (m *Model) addConns(all []record.Conn) {
	n := min(len(all), MaxConns)
	for n > 0 && all[n-1].Messages == 0 {
		n--
	}
	for i := range all[:n] {
		c := &all[i]
		if c.Messages == 0 {
			m.Conns = append(m.Conns, nil)
			continue
		}
		m.Conns = append(m.Conns, &Conn{
			Src: c.Src, Dst: c.Dst, Bytes: int64(c.Bytes), StartUS: c.Start.Microseconds(),
		})
	}
}

// NewModel returns the model of a run that goes on, from its network and its frames so far.
func NewModel(title string, n *record.NetworkMap, all []frames.Frame) *Model {
	m := &Model{Title: title, Network: n, Frames: pack(all, len(n.Ports))}
	m.ended(record.Outcome{Status: record.Running})
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
	if point := names.Point(m); point != "" {
		return point
	}
	if m.Lab == "" {
		return filepath.Base(dir)
	}
	name := m.Lab + " " + m.Engine
	if kind := m.Transport(); kind != "" {
		name += ", " + record.Sender(names.Transport(kind, m.Control), m.Carried)
	}
	return name
}

// Name returns the title of a run on its own: its lab, and its point of a sweep.
func (m *Model) Name() string {
	if strings.HasPrefix(m.Title, m.Lab) {
		return m.Title
	}
	return m.Lab + ": " + m.Title
}

// facts returns what a viewer wants to know beside the network.
func facts(s *record.Summary) []string {
	var out []string
	for _, c := range s.Collectives[:min(len(s.Collectives), 2)] {
		out = append(out, c.Name+": "+units.Shown(c.TimeUS, "us"))
	}
	t := units.Shown(s.Flows.FCT.P99, "us")
	if s.Flows.Count > 0 && (len(s.Collectives) != 1 || t != units.Shown(s.Collectives[0].TimeUS, "us")) {
		out = append(out, "p99 FCT "+t)
	}
	if q := s.Network.MaxQueue; q > 0 {
		out = append(out, "longest queue "+units.Shown(float64(q), "B"))
	}
	if s.Network.Drops > 0 {
		out = append(out, units.Count(s.Network.Drops)+" dropped")
	}
	if s.Fidelity != nil && !strings.HasPrefix(s.Outcome().String(), "fidelity") { // else the status says so
		out = append(out, "fidelity "+s.Outcome().Fidelity)
	}
	return out
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
	if err != nil {
		return nil, store.IfPresent(err)
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
	if err := store.IfPresent(err); err != nil {
		return nil, err
	}
	return b.sorted(), nil
}

// loadConns reads the ends of connections from the messages on them.
func loadConns(dir string) (all []record.Conn, err error) {
	type row struct {
		Src   string `parquet:"src"`
		Dst   string `parquet:"dst"`
		Conn  int64  `parquet:"conn"`
		Bytes int64  `parquet:"bytes"`
		Start int64  `parquet:"start_ps"`
	}
	err = store.Scan(dir, store.FlowsFile, func(rows []row) error {
		for _, r := range rows {
			if r.Conn < 0 || r.Conn >= MaxConns {
				continue
			}
			if n := int(r.Conn) + 1; n > len(all) {
				all = append(all, make([]record.Conn, n-len(all))...)
			}
			c := &all[r.Conn]
			if c.Messages == 0 {
				c.Src, c.Dst, c.Start = strings.Clone(r.Src), strings.Clone(r.Dst), units.Time(r.Start)
			}
			c.Messages++
			c.Bytes += units.Bytes(r.Bytes)
			c.Start = min(c.Start, units.Time(r.Start))
		}
		return nil
	})
	return all, store.IfPresent(err)
}

// loadParts reads what each rank did.
func loadParts(dir string) (all []record.Part, err error) {
	type row struct {
		Item       int32  `parquet:"item"`
		Repeat     int32  `parquet:"repeat"`
		Collective string `parquet:"collective"`
		Rank       int32  `parquet:"rank"`
		Host       string `parquet:"host"`
		Start      int64  `parquet:"start_ps"`
		End        int64  `parquet:"end_ps"`
	}
	err = store.Scan(dir, store.CollectivesFile, func(rows []row) error {
		for _, r := range rows[:min(len(rows), maxParts-len(all))] {
			all = append(all, record.Part{
				Item: int(r.Item), Repeat: int(r.Repeat), Collective: strings.Clone(r.Collective), Rank: int(r.Rank),
				Host: strings.Clone(r.Host), Start: units.Time(r.Start), End: units.Time(r.End),
			})
		}
		return nil
	})
	return all, store.IfPresent(err)
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
			point := [2]float64{units.Time(r.Time).Microseconds(), float64(r.Error) / 1e3}
			m.Clocks[i].Points = append(m.Clocks[i].Points, point)
		}
		return nil
	})
	for i := range m.Clocks {
		m.Clocks[i].Points = thin(m.Clocks[i].Points)
	}
	return store.IfPresent(err)
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
