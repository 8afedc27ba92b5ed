package deploy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"time"

	"weft/fabric"
	"weft/internal/control"
	"weft/orchestrator/deploy/probe"
	"weft/orchestrator/runtime"
	"weft/orchestrator/topology"
	"weft/units"
)

// Check asks for measurements.
type Check struct {
	Links int `json:"links"` // the most links that are measured, drawn evenly from all; 0: all
}

// Measured is a link and the way between two hosts on which it was measured: asked is what the lab file says of the whole
// way, got what packets found there. Times and rates are the lab's.
type Measured struct {
	Link  string `json:"link"`
	From  string `json:"from"`
	To    string `json:"to"`
	Hops  int    `json:"hops"`             // links of the way
	Why   string `json:"why,omitempty"`    // it could not be measured
	Tried bool   `json:"measured"`         // false: see Why
	OK    bool   `json:"ok"`               // all three are as asked, within tolerance
	Bad   string `json:"missed,omitempty"` // which are not
	Tries int    `json:"tries"`            // how often the way was measured until it was as asked, or given up
	Bound bool   `json:"bound,omitempty"`  // the link is faster than its way: RateBPS is what it has carried at least

	LinkRateBPS  float64 `json:"link_rate_bps,omitempty"` // with Bound, what the lab file says of the link itself
	AskedRateBPS float64 `json:"asked_rate_bps"`
	RateBPS      float64 `json:"rate_bps"`
	AskedDelayUS float64 `json:"asked_delay_us"`
	DelayUS      float64 `json:"delay_us"`
	AskedLoss    float64 `json:"asked_loss"`
	Loss         float64 `json:"loss"`
	Probes       int64   `json:"loss_probes"` // packets that loss was counted on
}

// Checked is the end of a check.
type Checked struct {
	Links int `json:"links"` // of the lab, absent ones not counted
}

// Tolerances of a check. Ours: a rate is of some hundred packets, a delay the shortest of several, and what a wake-up of
// the machine takes is no fault of the lab's.
const (
	rateTolerance  = 0.03
	delayTolerance = 0.05
	wakeUp         = 200 * time.Microsecond // of real time
	lossSigmas     = 4
)

// Ports that probes use, and how many source ports are tried to get a flow onto a link.
const (
	probePort   = 40_000
	firstSource = 41_000
	sources     = 64
)

// way is how a link is measured: from one host to another, by ports of the fabric.
type way struct {
	src, dst topology.NodeID
	source   uint16
	ports    []int
}

// check measures links, one way at a time, and tells the client as it goes.
func (s *supervisor) check(conn *control.Conn, c Check) error {
	look, err := s.lab.Look()
	if err != nil {
		return err
	}
	if s.switched() {
		return s.checkKernel(conn, s.sample(c.Links), look)
	}
	down := func(port int) bool { return !look.Ports[port].Up }
	links := s.sample(c.Links)
	ways := s.ways(links, down)
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	go func() {
		defer cancel() // the client has gone
		_, _, _ = conn.Recv()
	}()
	done := map[*way]Measured{}
	for _, id := range links {
		m := Measured{Link: s.x.Graph.Links[id].Name}
		w := ways[id]
		switch known, measured := done[w]; {
		case w == nil && down(2*int(id)):
			m.Why = "it is down"
		case w == nil:
			m.Why = "no flow between two hosts goes over it alone for sure"
		case measured:
			known.Link = m.Link
			m = known
			s.bound(id, &m)
		default:
			if err := s.insist(ctx, w, &m); err != nil {
				return fmt.Errorf("%s: %w", m.Link, err)
			}
			done[w] = m
			s.bound(id, &m)
		}
		if err := conn.SendValue(kindMeasured, m); err != nil {
			return err
		}
	}
	return conn.SendValue(kindChecked, Checked{Links: len(s.sample(0))})
}

// sample is at most so many links that exist, spread evenly over all; 0: all.
func (s *supervisor) sample(most int) []topology.LinkID {
	var all []topology.LinkID
	for i := range s.x.Graph.Links {
		if !s.x.Graph.Links[i].Down {
			all = append(all, topology.LinkID(i))
		}
	}
	if most <= 0 || most >= len(all) {
		return all
	}
	var some []topology.LinkID
	for i := range most {
		some = append(some, all[i*len(all)/most])
	}
	return some
}

// ways finds a short way over each link. One way may do for several.
func (s *supervisor) ways(links []topology.LinkID, down func(int) bool) map[topology.LinkID]*way {
	wanted := map[topology.LinkID]bool{}
	for _, id := range links {
		wanted[id] = true
	}
	found := map[topology.LinkID]*way{}
	hosts := s.x.Graph.Hosts
	for step := 1; step < hosts && len(found) < len(wanted); step++ {
		for src := 0; src < hosts && len(found) < len(wanted); src++ {
			s.waysBetween(topology.NodeID(src), topology.NodeID((src+step)%hosts), wanted, found, down)
		}
	}
	return found
}

// waysBetween adds the ways of flows between two hosts that go over links of which none is known.
func (s *supervisor) waysBetween(src, dst topology.NodeID, wanted map[topology.LinkID]bool, found map[topology.LinkID]*way, down func(int) bool) {
	for source := uint16(firstSource); source < firstSource+sources; source++ {
		hash := fabric.FlowHash(fabric.HostID(src), fabric.HostID(dst), source, probePort)
		ports, ok := s.x.Fabric.Path(fabric.HostID(src), fabric.HostID(dst), hash, down)
		if !ok {
			return
		}
		w := &way{src: src, dst: dst, source: source, ports: ports}
		news := false
		for _, p := range ports {
			if id := topology.LinkID(p / 2); wanted[id] && found[id] == nil {
				found[id], news = w, true
			}
		}
		if !news && len(ports) <= 2 {
			return // whatever the source port, the way is the same
		}
	}
}

// asked is what the lab file says of a way, for packets of a size on the wire.
func (s *supervisor) asked(w *way, size units.Bytes) (rate units.Bandwidth, delay units.Time, loss float64) {
	spared := 1.0
	for i, p := range w.ports {
		l := &s.x.Graph.Links[p/2]
		delay += l.Delay + l.Rate.TransmitTime(size)
		if i == 0 || l.Rate < rate {
			rate = l.Rate
		}
		spared *= (1 - l.Loss) * math.Pow(1-l.BitErrors, float64(8*size))
	}
	return rate, delay, 1 - spared
}

// frame is what a UDP payload of n bytes is on the wire: UDP, IPv4, Ethernet and its check.
func frame(n int) units.Bytes { return units.Bytes(n) + 8 + 20 + 14 + 4 }

// bound notes whether a link is faster than the slowest of the way on which it was measured, which then is all that is known
// of its rate.
func (s *supervisor) bound(id topology.LinkID, m *Measured) {
	m.Bound = m.Tried && float64(s.x.Graph.Links[id].Rate) > m.AskedRateBPS
	if m.Bound {
		m.LinkRateBPS = float64(s.x.Graph.Links[id].Rate)
	}
}

// tries is how often a way that misses is measured. Ours: a program that takes the processors for some milliseconds
// makes a way look slower for once; a way that is not as asked for misses each time.
const tries = 3

// insist measures a way until it is as asked for, or has missed too often.
func (s *supervisor) insist(ctx context.Context, w *way, m *Measured) error {
	for m.Tries < tries {
		m.Tries++
		if err := s.measure(ctx, w, m); err != nil || m.OK || !m.Tried {
			return err
		}
	}
	return nil
}

// measure sends probes over a way.
func (s *supervisor) measure(ctx context.Context, w *way, m *Measured) error {
	g, d := s.x.Graph, s.deployment.Dilation
	m.From, m.To, m.Hops, m.Tried = g.Nodes[w.src].Name, g.Nodes[w.dst].Name, len(w.ports), true
	for _, name := range []string{m.From, m.To} {
		if why, err := s.idle(name); err != nil || why != "" {
			m.Tried, m.Why = false, why
			return err
		}
	}
	const small = 64
	full := int(s.x.Lab.Topology.MTU)
	rate, _, _ := s.asked(w, frame(full))
	_, delay, loss := s.asked(w, frame(small))
	packet := time.Duration(float64(rate.TransmitTime(frame(full)).Duration()) * d) // real
	short := time.Duration(float64(rate.TransmitTime(frame(small)).Duration()) * d)
	train := int(min(max(trainTime/max(packet, 1), 24), 4000))
	probes := 300
	if loss > 0 {
		probes = int(min(max(40/loss, 300), 4000))
	}
	plan := &probe.Plan{
		To: netip.AddrPortFrom(s.deployment.Subnet.HostAddr(w.dst), probePort), Source: w.source,
		Phases: []probe.Phase{
			{Count: 12, Size: small, GapNS: int64(max(5*time.Millisecond, 2*short))},
			{Count: probes, Size: small, GapNS: int64(max(50*time.Microsecond, 4*short))},
			{Count: train, Size: full}, // last: where a link is slower than it should be, it fills queues
		},
	}
	results, err := s.probe(ctx, m.From, m.To, plan)
	if err != nil {
		return err
	}
	m.AskedRateBPS, m.AskedDelayUS, m.AskedLoss, m.Probes = float64(rate), delay.Microseconds(), loss, int64(probes)
	m.DelayUS = float64(results[0].LeastNS) / 1e3 / d
	m.Loss = 1 - float64(results[1].Received)/float64(probes)
	if k := results[2]; k.Received > 1 && k.LastNS > k.FirstNS && m.Loss < 1 {
		bits := float64(8 * (k.Bytes + (k.Received-1)*int64(frame(0))))
		m.RateBPS = bits / (1 - m.Loss) / (float64(k.LastNS-k.FirstNS) / 1e9) * d // what lines lose they have carried
	}
	m.judge(time.Duration(float64(wakeUp) / d))
	return nil
}

// trainTime is how long the packets take, in real time, by which a rate is measured.
const trainTime = 250 * time.Millisecond

// judge compares what was measured with what was asked for. floor is, in lab time, what wake-ups may take.
func (m *Measured) judge(floor time.Duration) {
	var bad []string
	if math.Abs(m.RateBPS-m.AskedRateBPS) > rateTolerance*m.AskedRateBPS {
		bad = append(bad, "rate")
	}
	late := max(delayTolerance*m.AskedDelayUS, float64(floor.Nanoseconds())/1e3)
	if m.DelayUS <= 0 || m.DelayUS < 0.98*m.AskedDelayUS || m.DelayUS > m.AskedDelayUS+late {
		bad = append(bad, "delay")
	}
	sigma := math.Sqrt(m.AskedLoss * (1 - m.AskedLoss) / float64(max(1, m.Probes)))
	if math.Abs(m.Loss-m.AskedLoss) > lossSigmas*sigma+1e-12 {
		bad = append(bad, "loss")
	}
	m.Bad, m.OK = strings.Join(bad, ", "), len(bad) == 0
}

// probe runs a receiver in one node and a sender in another, and returns what the receiver got.
func (s *supervisor) probe(ctx context.Context, from, to string, p *probe.Plan) ([]probe.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	var words bytes.Buffer
	received := make(chan error, 1)
	go func() {
		err := s.lab.Cluster().Exec(ctx, to, runtime.Command{
			Args: []string{runtime.ThisProgram, "probe", "receive", fmt.Sprint(p.To.Port()), fmt.Sprint(len(p.Phases))}, Stdout: write, Stderr: &words,
		})
		write.CloseWithError(io.EOF)
		received <- err
	}()
	out := bufio.NewReader(read)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		cancel()
		read.Close()
		return nil, fmt.Errorf("the receiver in %s: %w: %s", to, errors.Join(<-received, err), strings.TrimSpace(words.String()))
	}
	var wrong bytes.Buffer
	if err := s.lab.Cluster().Exec(ctx, from, runtime.Command{Args: []string{runtime.ThisProgram, "probe", "send", string(plan)}, Stderr: &wrong}); err != nil {
		cancel()
		read.Close()
		<-received
		return nil, fmt.Errorf("the sender in %s: %w: %s", from, err, strings.TrimSpace(wrong.String()))
	}
	var results []probe.Result
	err = json.NewDecoder(out).Decode(&results)
	read.Close()
	if err := errors.Join(<-received, err); err != nil {
		return nil, fmt.Errorf("the receiver in %s: %w: %s", to, err, strings.TrimSpace(words.String()))
	}
	if len(results) != len(p.Phases) {
		return nil, fmt.Errorf("the receiver in %s reports %d phases of %d", to, len(results), len(p.Phases))
	}
	return results, nil
}

// Check measures links of the lab and calls f with each, and returns how many there are.
func (h *Handle) Check(ctx context.Context, c Check, f func(Measured) error) (Checked, error) {
	d, err := dial(h.root, h.name)
	if err != nil {
		return Checked{}, err
	}
	defer d.Close()
	stop := context.AfterFunc(ctx, func() { d.Close() })
	defer stop()
	if err := d.conn.SendValue(kindCheck, c); err != nil {
		return Checked{}, err
	}
	for {
		m, _, err := d.conn.Recv()
		if ctx.Err() != nil {
			return Checked{}, ctx.Err()
		}
		if err != nil {
			return Checked{}, fmt.Errorf("lab %s: %w", h.name, err)
		}
		switch m.Kind {
		case kindMeasured:
			var k Measured
			if err := m.Decode(&k); err != nil {
				return Checked{}, err
			}
			if err := f(k); err != nil {
				return Checked{}, err
			}
		case kindChecked:
			var all Checked
			return all, m.Decode(&all)
		case control.KindError:
			var text string
			_ = m.Decode(&text)
			return Checked{}, &control.RemoteError{Text: text}
		default:
			return Checked{}, fmt.Errorf("%q was not expected", m.Kind)
		}
	}
}
