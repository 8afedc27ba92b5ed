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
	"weft/realtime"
	"weft/units"
)

// Check asks for measurements.
type Check struct {
	Links int `json:"links"` // maximum number of links, spread evenly over all; 0: all
}

// Measured is a link and the path between two hosts on which it was measured. The asked values are
// those of the lab file for the whole path; the others were measured there. Times and rates are in
// lab time.
type Measured struct {
	Link  string `json:"link"`
	From  string `json:"from"`
	To    string `json:"to"`
	Hops  int    `json:"hops"`             // links of the path
	Why   string `json:"why,omitempty"`    // why it could not be measured
	Tried bool   `json:"measured"`         // false: see Why
	OK    bool   `json:"ok"`               // rate, delay and loss are as asked, within tolerance; no Changes
	Bad   string `json:"missed,omitempty"` // those that are not, and settings if Changes has any
	// Unjudged has what could not be judged if nothing is missed: "loss" if the asked loss is too
	// small to be told from none with Probes packets, "rate" and "delay" if packets overtake each
	// other, or their jitter is long against the time in which they came or hides the delay.
	Unjudged string `json:"unjudged,omitempty"`
	// Changes has the settings of the link that differ from the lab file, as LinkState has them.
	Changes []string `json:"changes,omitempty"`

	Tries int  `json:"tries"`           // number of measurements
	Bound bool `json:"bound,omitempty"` // the link is faster than its path: RateBPS is a lower bound

	LinkRateBPS  float64 `json:"link_rate_bps,omitempty"` // with Bound, the rate of the link itself in the lab file
	AskedRateBPS float64 `json:"asked_rate_bps"`
	RateBPS      float64 `json:"rate_bps,omitempty"` // absent: packets overtook each other, or none came
	AskedDelayUS float64 `json:"asked_delay_us"`
	DelayUS      float64 `json:"delay_us,omitempty"` // absent: no packet came
	AskedLoss    float64 `json:"asked_loss"`
	Loss         float64 `json:"loss"`
	Probes       int64   `json:"loss_probes"` // packets that loss was measured with, in all tries

	lost     int64         // of Probes
	unsteady time.Duration // by how much jitter and reordering move a packet of the path; 0: none
	train    time.Duration // in which the packets came whose rate was measured
}

// MarshalJSON leaves out the values of a link that was not measured: zeros would be taken for them.
func (m Measured) MarshalJSON() ([]byte, error) {
	type all Measured // without this method
	if m.Tried {
		return json.Marshal(all(m))
	}
	return json.Marshal(struct {
		Link  string `json:"link"`
		From  string `json:"from,omitempty"`
		To    string `json:"to,omitempty"`
		Why   string `json:"why"`
		Tried bool   `json:"measured"`
		OK    bool   `json:"ok"`
		Tries int    `json:"tries"`
	}{m.Link, m.From, m.To, m.Why, m.Tried, m.OK, m.Tries})
}

// Checked is the end of a check.
type Checked struct {
	Links int `json:"links"` // of the lab, without absent ones; the kernel's are measured in each direction
}

// Tolerances of a check. Our own choice: a rate is measured with some hundred packets, a delay is
// the shortest of several, and the machine's wake-up latency is not the lab's fault.
const (
	rateTolerance  = 0.03
	delayTolerance = 0.05
	wakeUp         = 200 * time.Microsecond // real time
	lossSigmas     = 4
)

// UDP ports of probes. Up to sources source ports are tried to get a flow onto a link.
const (
	probePort   = 40_000
	firstSource = 41_000
	sources     = 64
)

// probePath is a path from one host to another on which a link is measured.
type probePath struct {
	src, dst topology.NodeID
	source   uint16
	ports    []int // of the fabric, in order
}

// check measures links, one path at a time, and sends each result to the client.
func (s *supervisor) check(conn *control.Conn, c *Check) error {
	look, err := s.lab.Look()
	if err != nil {
		return err
	}
	if s.switched() {
		return s.checkKernelLinks(conn, s.sample(c.Links), look)
	}
	down := func(port int) bool { return !look.Ports[port].Up }
	links := s.sample(c.Links)
	paths := s.findPaths(links, down)
	ctx, cancel := s.connected(conn)
	defer cancel()
	done := map[*probePath]Measured{}
	for _, id := range links {
		m := Measured{Link: s.x.Graph.Links[id].Name}
		path := paths[id]
		switch known, measured := done[path]; {
		case path == nil && down(2*int(id)):
			m.Why = "it is down"
		case path == nil:
			m.Why = "no flow between two hosts is certain to cross it"
		case measured:
			known.Link = m.Link
			m = known
		default:
			if err := s.measureRepeatedly(ctx, path, &m); err != nil {
				return fmt.Errorf("%s: %w", m.Link, err)
			}
			done[path] = m
		}
		s.compare(id, &m, &look.Ports[2*int(id)])
		if err := conn.SendValue(kindMeasured, m); err != nil {
			return err
		}
	}
	return conn.SendValue(kindChecked, Checked{Links: len(s.sample(0))})
}

// sample returns up to limit of the links that exist, spread evenly over all; 0: all.
func (s *supervisor) sample(limit int) []topology.LinkID {
	var all []topology.LinkID
	for i := range s.x.Graph.Links {
		if !s.x.Graph.Links[i].Down {
			all = append(all, topology.LinkID(i))
		}
	}
	if limit <= 0 || limit >= len(all) {
		return all
	}
	var some []topology.LinkID
	for i := range limit {
		some = append(some, all[i*len(all)/limit])
	}
	return some
}

// findPaths returns a short path over each link. Several links may share one.
func (s *supervisor) findPaths(links []topology.LinkID, down func(int) bool) map[topology.LinkID]*probePath {
	wanted := map[topology.LinkID]bool{}
	for _, id := range links {
		wanted[id] = true
	}
	found := map[topology.LinkID]*probePath{}
	hosts := s.x.Graph.Hosts
	for step := 1; step < hosts && len(found) < len(wanted); step++ {
		for src := 0; src < hosts && len(found) < len(wanted); src++ {
			s.findPathsBetween(topology.NodeID(src), topology.NodeID((src+step)%hosts), wanted, found, down)
		}
	}
	return found
}

// findPathsBetween adds the paths of flows between two hosts that cross a wanted link without a
// path.
func (s *supervisor) findPathsBetween(src, dst topology.NodeID, wanted map[topology.LinkID]bool,
	found map[topology.LinkID]*probePath, down func(int) bool) {
	for source := uint16(firstSource); source < firstSource+sources; source++ {
		hash := fabric.FlowHash(fabric.HostID(src), fabric.HostID(dst), source, probePort)
		ports, ok := s.x.Fabric.Path(fabric.HostID(src), fabric.HostID(dst), hash, down)
		if !ok {
			return
		}
		path := &probePath{src: src, dst: dst, source: source, ports: ports}
		useful := false
		for _, p := range ports {
			if id := topology.LinkID(p / 2); wanted[id] && found[id] == nil {
				found[id], useful = path, true
			}
		}
		if !useful && len(ports) <= 2 {
			return // the path is the same for every source port
		}
	}
}

// unsteady returns by how much what the lab file says of a path moves a packet at random.
func (s *supervisor) unsteady(path *probePath) (by units.Time) {
	for _, p := range path.ports {
		l := &s.x.Graph.Links[p/2]
		if by += l.Jitter; l.Reorder > 0 {
			by += l.ReorderBy
		}
	}
	return by
}

// expected returns what the lab file says of a path, for packets of a size on the wire, but for
// jitter.
func (s *supervisor) expected(path *probePath, size units.Bytes) (rate units.Bandwidth, delay units.Time,
	loss float64) {
	delivered := 1.0
	for i, p := range path.ports {
		l := &s.x.Graph.Links[p/2]
		delay += l.Delay + l.Rate.TransmitTime(size)
		if i == 0 || l.Rate < rate {
			rate = l.Rate
		}
		delivered *= (1 - l.Loss) * math.Pow(1-l.BitErrors, float64(8*size))
	}
	return rate, delay, 1 - delivered
}

// frame returns the size on the wire of a UDP payload of n bytes: with UDP, IPv4, Ethernet and its
// checksum.
func frame(n int) units.Bytes { return units.Bytes(n) + 8 + 20 + 14 + 4 }

// compare adds to the measurement of a link's path what is known of the link itself. It sets
// m.Bound if the link is faster than the slowest of its path: then the measured rate is only a
// lower bound of the link's. A link whose settings (p) are not those of the lab file is never ok:
// there are some that no probe can tell.
func (s *supervisor) compare(id topology.LinkID, m *Measured, p *realtime.PortState) {
	if !m.Tried {
		return
	}
	link := &s.x.Graph.Links[id]
	if m.Bound = m.Hops > 1 && float64(link.Rate) > m.AskedRateBPS; m.Bound {
		m.LinkRateBPS = float64(link.Rate)
	}
	if m.Changes = linkState(link, p).Changes; len(m.Changes) > 0 {
		m.Bad, m.Unjudged, m.OK = strings.TrimPrefix(m.Bad+", "+settings, ", "), "", false
	}
}

// settings is in Measured.Bad if the link was changed.
const settings = "settings"

// tries is the maximum number of measurements of a path. Our own choice: a program that uses the
// processors for some milliseconds slows one measurement; a path whose rate or delay is really
// different misses it in all of them. It loses no packet, so that losses of all count.
const tries = 3

// measureRepeatedly measures a path until rate and delay are not missed, at most tries times.
func (s *supervisor) measureRepeatedly(ctx context.Context, path *probePath, m *Measured) error {
	for m.Tries < tries {
		m.Tries++
		if err := s.measure(ctx, path, m); err != nil || m.Bad == "" || !m.Tried {
			return err
		}
	}
	return nil
}

// measure sends probes over a path.
func (s *supervisor) measure(ctx context.Context, path *probePath, m *Measured) error {
	g, d := s.x.Graph, s.deployment.Dilation
	m.From, m.To, m.Hops, m.Tried = g.Nodes[path.src].Name, g.Nodes[path.dst].Name, len(path.ports), true
	for _, name := range []string{m.From, m.To} {
		if why, err := s.unavailable(name); err != nil || why != "" {
			m.Tried, m.Why = false, why
			return err
		}
	}
	const small = 64
	full := int(s.x.Lab.Topology.MTU)
	rate, _, _ := s.expected(path, frame(full))
	_, delay, loss := s.expected(path, frame(small))
	packet := time.Duration(float64(rate.TransmitTime(frame(full)).Duration()) * d) // real
	short := time.Duration(float64(rate.TransmitTime(frame(small)).Duration()) * d)
	m.unsteady = s.unsteady(path).Duration()
	span := min(max(trainTime, time.Duration(steady*float64(m.unsteady)*d)), longTrain)
	train := int(min(max(span/max(packet, 1), 24), maxProbes))
	gap := max(100*time.Microsecond, 4*short)
	probes := int(min(max(lossTime/gap, 300), maxProbes))
	if loss > 0 {
		probes = int(min(max(40/loss, float64(probes)), maxProbes))
	}
	plan := &probe.Plan{
		To: netip.AddrPortFrom(s.deployment.Subnet.HostAddr(path.dst), probePort), Source: path.source,
		Phases: []probe.Phase{
			{Count: 12, Size: small, GapNS: int64(max(5*time.Millisecond, 2*short))},
			{Count: probes, Size: small, GapNS: int64(gap)},
			{Count: train, Size: full}, // last: it fills queues if a link is too slow
		},
	}
	results, err := s.probe(ctx, m.From, m.To, plan)
	if err != nil {
		return err
	}
	m.AskedRateBPS, m.AskedDelayUS, m.AskedLoss = float64(rate), delay.Microseconds(), loss
	m.take(results, int64(probes), d)
	m.judge(time.Duration(float64(wakeUp) / d))
	return nil
}

// take takes what one try measured, with some packets for loss, at a dilation.
func (m *Measured) take(results []probe.Result, probes int64, dilation float64) {
	m.DelayUS = shortest(results[:2]) / 1e3 / dilation
	m.Probes, m.lost = m.Probes+probes, m.lost+probes-results[1].Received
	m.Loss = float64(m.lost) / float64(m.Probes)
	m.RateBPS, m.train = 0, 0
	if k := results[2]; k.Received > 1 && k.LastNS > k.FirstNS && results[1].Received > 0 {
		bits := float64(8 * (k.Bytes + (k.Received-1)*int64(frame(0))))
		here := float64(results[1].Received) / float64(probes) // lost packets took time on the links as well
		took := float64(k.LastNS-k.FirstNS) / dilation
		m.train, m.RateBPS = time.Duration(took), bits/here/(took/1e9)
	}
}

// shortest returns the shortest delay of the packets of some phases, in real nanoseconds; 0: none
// came.
func shortest(phases []probe.Result) (ns float64) {
	for _, r := range phases {
		if r.Received > 0 && (ns == 0 || float64(r.MinNS) < ns) {
			ns = float64(r.MinNS)
		}
	}
	return ns
}

// Sizes of a measurement. Our own choice: 3000 packets of lossTime, on fast links, tell a loss of
// 0.1 % from none with a probability of 95 %. The largest of maxProbes jitters is 8 times their
// mean, and moves a rate by less than rateTolerance if packets come for steady times the mean.
const (
	maxProbes = 4000
	lossTime  = 300 * time.Millisecond // real, but for links on which 300 packets take longer
	steady    = 300
)

// trainTime is the real time that the packet train of a rate measurement takes, and longTrain at
// most where packets have jitter.
const (
	trainTime = 250 * time.Millisecond
	longTrain = time.Second
)

// judge compares the measured values with the asked ones. floor is the wake-up latency of the
// machine in lab time.
func (m *Measured) judge(floor time.Duration) {
	var bad, open []string
	switch {
	case m.Loss < 1 && m.train < steady*m.unsteady:
		open = append(open, "rate")
	case math.Abs(m.RateBPS-m.AskedRateBPS) > rateTolerance*m.AskedRateBPS:
		bad = append(bad, "rate")
	}
	late := max(delayTolerance*m.AskedDelayUS, float64(floor.Nanoseconds())/1e3)
	switch over := m.DelayUS - m.AskedDelayUS; {
	case m.DelayUS <= 0 || m.DelayUS < 0.98*m.AskedDelayUS || over > late+float64(m.unsteady.Nanoseconds())/1e3:
		bad = append(bad, "delay")
	case over > late: // as the shortest of some hundred packets with jitter may be
		open = append(open, "delay")
	}
	sigma := math.Sqrt(m.AskedLoss * (1 - m.AskedLoss) / float64(max(1, m.Probes)))
	switch {
	case math.Abs(m.Loss-m.AskedLoss) > lossSigmas*sigma+1e-12:
		bad = append(bad, "loss")
	case m.AskedLoss > 0 && lossSigmas*sigma >= m.AskedLoss: // a link without loss would not have missed it
		open = append(open, "loss")
	}
	m.conclude(strings.Join(bad, ", "), strings.Join(open, ", "))
}

// conclude sets the verdict. bad is what is missed, and open what could not be judged.
func (m *Measured) conclude(bad, open string) {
	if m.Bad, m.Unjudged = bad, ""; bad == "" {
		m.Unjudged = open
	}
	m.OK = m.Bad == "" && m.Unjudged == ""
}

// probe runs a receiver in one node and a sender in another, and returns the receiver's results.
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
			Args: []string{runtime.ThisProgram, "probe", "receive", fmt.Sprint(p.To.Port()),
				fmt.Sprint(len(p.Phases))}, Stdout: write, Stderr: &words,
		})
		write.CloseWithError(io.EOF)
		received <- err
	}()
	out := bufio.NewReader(read)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		cancel()
		read.Close()
		return nil, fmt.Errorf("the receiver in %s: %w: %s", to, errors.Join(<-received, err),
			strings.TrimSpace(words.String()))
	}
	var wrong bytes.Buffer
	if err := s.lab.Cluster().Exec(ctx, from, runtime.Command{Args: []string{runtime.ThisProgram, "probe", "send",
		string(plan)}, Stderr: &wrong}); err != nil {
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

// Check measures links of the lab and calls f with each result. It returns the number of links of
// the lab.
func (h *Handle) Check(ctx context.Context, c Check, f func(Measured) error) (all Checked, err error) {
	err = stream(ctx, h, kindCheck, c, kindMeasured, f, kindChecked, &all)
	return all, err
}
