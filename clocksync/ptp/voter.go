package ptp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weft/clocksync"
	"weft/clocksync/vote"
	"weft/units"
)

// Voter is an ordinary clock in several domains, with a server of time in each, that believes what more than half of them
// say (package vote). It is a clocksync.Protocol. Nothing in PTP finds a grandmaster that announces itself well and lies;
// several grandmasters in domains of their own are what IEEE 802.1AS-2020 has.
//
// A source claims its line, give or take what its offsets usually are: not the bound that it states, which grows while a
// liar pulls it away. Time is the median of the lines that can all be right, which liars that are fewer than half cannot
// pull beyond those that are. Without a majority the clock goes on as it is, and its bound grows.
type Voter struct {
	cfg     VoterConfig
	sources []*Clock // by domain, from 0
	next    int      // whose turn it is to send
	sender  int      // whose message left last

	apart      units.Time // hardware clock minus monotonic clock
	rate       float64    // without what is slewed
	slewEnd    units.Time // by the monotonic clock; Never: nothing is slewed
	correction clocksync.Correction
	refusing   bool
	views      []view
	claims     []vote.Claim
	rates      [rememberedRates]float64 // that were agreed upon last
	nrates     int
	counters   clocksync.Counters
}

// rememberedRates is how many votes a frequency is taken from when there is no majority any more: more than twice as many
// as liars can have been in before they are found, with five servers. Ours.
const rememberedRates = 64

// view is what the voter makes of a source.
type view struct {
	seen     int64      // of its updates
	within   units.Time // how far its line is from what its server says
	claim    vote.Claim
	outvoted bool // it contradicted the majority when there was one
}

// line is a source's correction, and its rate without what is correcting an offset.
type line struct {
	clocksync.Correction
	rate float64
}

// VoterConfig says whom a Voter listens to.
type VoterConfig struct {
	// Servers are the clocks' configurations: of domain 0, 1 and so on, each a slave of one server.
	Servers []Config
	// Agree is added to what servers' lines are within: those that are no farther apart do not contradict each other,
	// however narrow their bounds are. It is of the order of asymmetries that nobody knows.
	Agree units.Time
}

// DefaultAgree is ours: what the transports here cannot tell apart (PC4 paper, section III-B).
const DefaultAgree = 100 * units.Nanosecond

// MostServers is how many domains there are for servers.
const MostServers = 16

var _ clocksync.Protocol = (*Voter)(nil)

// NewVoter returns a clock that has not begun. The setups are those of each domain: with its server as the reference.
func NewVoter(s []clocksync.Setup, cfg VoterConfig) (*Voter, error) {
	if len(cfg.Servers) < 2 || len(cfg.Servers) > MostServers || len(s) != len(cfg.Servers) || cfg.Agree < 0 {
		return nil, fmt.Errorf("ptp: a vote over %d servers, with %d setups, that agree within %v; expected 2 to %d", len(cfg.Servers), len(s), cfg.Agree, MostServers)
	}
	v := &Voter{cfg: cfg, slewEnd: units.Never, views: make([]view, len(s)), claims: make([]vote.Claim, len(s))}
	for i, c := range cfg.Servers {
		c.Domain = uint8(i)
		clock, err := New(s[i], c)
		if err != nil {
			return nil, fmt.Errorf("domain %d: %w", i, err)
		}
		v.sources = append(v.sources, clock)
	}
	return v, nil
}

// Start implements clocksync.Protocol.
func (v *Voter) Start(now clocksync.Now) {
	v.apart = now.Hard - now.Mono
	for _, c := range v.sources {
		c.Start(now)
	}
}

// domainAt is where a message says its domain (IEEE 1588-2019, clause 13.3.1).
const domainAt = 4

// Receive implements clocksync.Protocol.
func (v *Voter) Receive(now clocksync.Now, m *clocksync.Message) error {
	v.watch(now)
	if len(m.Data) <= domainAt {
		v.counters.Malformed++
		return ErrShort
	}
	if d := int(m.Data[domainAt]); d < len(v.sources) {
		err := v.sources[d].Receive(now, m)
		v.decide(now)
		return err
	}
	v.counters.Foreign++
	return ErrForeign
}

// Transmit implements clocksync.Protocol. Domains take turns.
func (v *Voter) Transmit(now clocksync.Now, out *clocksync.Outgoing) bool {
	v.watch(now)
	for range v.sources {
		v.sender = v.next
		v.next = (v.next + 1) % len(v.sources)
		if v.sources[v.sender].Transmit(now, out) {
			return true
		}
	}
	return false
}

// Sent implements clocksync.Protocol.
func (v *Voter) Sent(now clocksync.Now, id uint32, stamp units.Time) {
	v.watch(now)
	v.sources[v.sender].Sent(now, id, stamp)
}

// Deadline implements clocksync.Protocol.
func (v *Voter) Deadline() (units.Time, bool) {
	at := v.slewEnd
	for _, c := range v.sources {
		if d, ok := c.Deadline(); ok {
			at = min(at, d)
		}
	}
	return at, at != units.Never
}

// Advance implements clocksync.Protocol.
func (v *Voter) Advance(now clocksync.Now) {
	v.watch(now)
	for _, c := range v.sources {
		if at, ok := c.Deadline(); ok && now.Mono >= at {
			c.Advance(now)
		}
	}
	if now.Mono >= v.slewEnd {
		v.slewEnd = units.Never
		k := v.correction.Rebase(now.Hard)
		k.Rate = v.rate
		v.publish(k)
	}
	v.decide(now)
}

// Correction implements clocksync.Protocol.
func (v *Voter) Correction() clocksync.Correction { return v.correction }

// Counters implements clocksync.Protocol. Steps and updates are those of the vote; all else is of all domains.
func (v *Voter) Counters() clocksync.Counters {
	sum := v.counters
	for _, c := range v.sources {
		k := c.Counters()
		k.Steps, k.Updates = 0, 0
		sum.Add(k)
	}
	return sum
}

// decide votes once a source has changed its mind.
func (v *Voter) decide(now clocksync.Now) {
	changed := false
	speak := 0
	for i, c := range v.sources {
		s := &v.views[i]
		if n := c.counters.Updates + c.counters.Lost + c.counters.Resets; n != s.seen {
			s.seen, s.within, changed = n, c.bound.Typical()+v.cfg.Agree, true
		}
		s.claim = vote.Claim{Low: 1} // says nothing
		if k := c.correction; k.State == clocksync.Locked {
			at := k.At(now.Hard)
			s.claim = vote.Claim{Low: at - s.within, High: at + s.within}
			speak++
		}
		v.claims[i] = s.claim
	}
	if !changed {
		return
	}
	low, high, count := vote.Most(v.claims)
	if 2*count <= len(v.sources) {
		v.refuse(now, 2*(count+len(v.sources)-speak) <= len(v.sources))
		return
	}
	v.refusing = false
	var lines []line
	for i, c := range v.sources {
		s := &v.views[i]
		agrees := s.claim.Shares(low, high)
		if agrees {
			lines = append(lines, line{c.correction, c.servo.Holdover()})
		}
		// Who is about to say something, or has fallen silent, is no liar for it.
		contradicts := !agrees && c.correction.State == clocksync.Locked
		if contradicts && !s.outvoted {
			v.counters.Falsetickers++
		}
		s.outvoted = contradicts
	}
	v.follow(now, lines)
}

// refuse goes on without a vote, by the frequency that was agreed upon before it was in doubt.
func (v *Voter) refuse(now clocksync.Now, contradiction bool) {
	if contradiction && !v.refusing {
		v.counters.NoMajority++
	}
	v.refusing = contradiction
	if v.correction.State != clocksync.Locked {
		return
	}
	rates := slices.Clone(v.rates[:min(v.nrates, len(v.rates))])
	middle := median(rates)
	for i := range rates {
		rates[i] = math.Abs(rates[i] - middle)
	}
	k := v.correction.Rebase(now.Hard)
	k.Rate, k.State = middle, clocksync.Holdover
	k.Drift = min(1, max(k.Drift, 4*median(rates)/normalMedian))
	v.slewEnd, v.rate = units.Never, middle
	v.publish(k)
}

// normalMedian is the median size of what is normally distributed, in standard deviations.
const normalMedian = 0.6745

// median returns that of numbers, which it sorts.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// follow goes to the median of lines that may all be right: a slew over a sync interval, or a step when that is far.
func (v *Voter) follow(now clocksync.Now, lines []line) {
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.At(now.Hard), b.At(now.Hard)) })
	below, above := lines[(len(lines)-1)/2].At(now.Hard), lines[len(lines)/2].At(now.Hard)
	target := below + (above-below)/2
	var growth float64
	rates, bounds := make([]float64, len(lines)), make([]units.Time, len(lines))
	for i, k := range lines {
		rates[i] = k.rate
		growth = max(growth, k.Drift)
		bounds[i] = magnitude(target-k.At(now.Hard)) + k.BoundAt(now.Hard)
	}
	slices.Sort(bounds)
	v.rate = median(rates)
	v.rates[v.nrates%len(v.rates)] = v.rate
	v.nrates++

	cfg := &v.cfg.Servers[0]
	k := v.correction.Rebase(now.Hard)
	k.Rate = v.rate
	gap := target - k.At(now.Hard)
	limit := cfg.Limits.Step
	if k.State == clocksync.Free {
		limit = cfg.Limits.FirstStep
	}
	if limit > 0 && magnitude(gap) > limit {
		k.Offset += gap
		v.counters.Steps++
		v.slewEnd, gap = units.Never, 0
	} else {
		most := cfg.Limits.MaxRate
		k.Rate += max(-most, min(most, float64(gap)/float64(cfg.SyncInterval)))
		v.slewEnd = now.Mono + cfg.SyncInterval
	}
	// More than half of the servers are within this, and so one that is right.
	k.Bound = bounds[len(v.sources)/2] + magnitude(gap)
	k.Drift, k.State = growth, clocksync.Locked
	v.publish(k)
}

// publish replaces the correction, unless it is no line that can be used.
func (v *Voter) publish(k clocksync.Correction) {
	if k.Check() != nil {
		v.counters.Filtered++
		return
	}
	v.correction = k
	v.counters.Updates++
}

// watch is Clock.watch for the line that is published: sources see a step as well, when they are next called, and are
// called at once so that all speak of the same clock.
func (v *Voter) watch(now clocksync.Now) {
	for _, c := range v.sources {
		c.watch(now)
	}
	alarm := v.cfg.Servers[0].StepAlarm
	step := now.Hard - now.Mono - v.apart
	if alarm == 0 || magnitude(step) <= alarm {
		return
	}
	v.apart += step
	v.correction.From += step
	v.correction.Offset -= step
	v.correction.Bound += alarm
	if v.correction.State == clocksync.Locked {
		v.correction.State = clocksync.Holdover
	}
}

func magnitude(t units.Time) units.Time { return max(t, -t) }
