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

// Voter is an ordinary clock in several domains, with a time server in each, that follows the
// majority of the servers (package vote). It implements clocksync.Protocol. PTP itself cannot
// detect a grandmaster that announces good attributes and lies. IEEE 802.1AS-2020 therefore has
// several grandmasters in domains of their own.
//
// A source is the clock of one domain. It claims its time plus or minus its typical offset. It does
// not claim its published bound, which grows while a liar pulls it away. Synchronized time is the
// median of the sources that agree, which a minority of liars cannot pull outside of the honest
// ones. Without a majority the clock keeps its frequency, and its bound grows.
type Voter struct {
	cfg     VoterConfig
	sources []*Clock // by domain, from 0
	next    int      // the source that may send next
	sender  int      // the source whose message left last

	hardMinusMono units.Time // hardware clock minus monotonic clock, when last compared
	rate          float64    // the agreed rate, without what is slewed
	slewEnd       units.Time // when slewing ends, by the monotonic clock; Never if it does not slew
	correction    clocksync.Correction
	contradiction bool // sources contradict each other and there is no majority
	states        []sourceState
	claims        []vote.Claim
	rates         [rememberedRates]float64 // the rates agreed upon last, as a ring
	nrates        int                      // number of rates agreed upon so far
	counters      clocksync.Counters
}

// rememberedRates is the number of votes from which the frequency is taken once there is no
// majority. It is our choice: with five servers, more than twice the votes that liars can take part
// in before they are detected.
const rememberedRates = 64

// sourceState is the voter's state of a source.
type sourceState struct {
	seen     int64      // updates, losses and resets of the source at the last vote
	margin   units.Time // half of the width of its claim
	claim    vote.Claim
	outvoted bool // it contradicted the last majority
}

// estimate is the correction of a source, and its rate without the part that corrects an offset.
type estimate struct {
	clocksync.Correction
	rate float64
}

// VoterConfig configures a Voter.
type VoterConfig struct {
	// Servers are the configurations of the sources in domains 0, 1 and so on. Each is a slave of
	// one server.
	Servers []Config
	// Agree is added to the margin of every source. Sources that are no further apart do not
	// contradict each other, however narrow their offsets are. It is of the order of unknown
	// asymmetries.
	Agree units.Time
}

// MaxServers is the maximum number of servers.
const MaxServers = 16

var _ clocksync.Protocol = (*Voter)(nil)

// NewVoter returns a clock that has not started. There is a setup for each domain, with its server
// as the reference.
func NewVoter(s []clocksync.Setup, cfg VoterConfig) (*Voter, error) {
	if len(cfg.Servers) < 2 || len(cfg.Servers) > MaxServers || len(s) != len(cfg.Servers) || cfg.Agree < 0 {
		return nil, fmt.Errorf("ptp: a vote over %d servers, with %d setups, that agree within %v; expected 2 to %d",
			len(cfg.Servers), len(s), cfg.Agree, MaxServers)
	}
	v := &Voter{
		cfg: cfg, slewEnd: units.Never, states: make([]sourceState, len(s)), claims: make([]vote.Claim, len(s)),
	}
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
	v.hardMinusMono = now.Hard - now.Mono
	for _, c := range v.sources {
		c.Start(now)
	}
}

// domainAt is the offset of domainNumber in a message (IEEE 1588-2019, clause 13.3.1).
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

// Counters implements clocksync.Protocol. Steps and Updates count those of the vote, all others the
// sum over all domains.
func (v *Voter) Counters() clocksync.Counters {
	sum := v.counters
	for _, c := range v.sources {
		k := c.Counters()
		k.Steps, k.Updates = 0, 0
		sum.Add(k)
	}
	return sum
}

// decide votes if a source has published a new correction, lost its server or started again. A
// source that is not locked abstains: its claim is an empty interval.
func (v *Voter) decide(now clocksync.Now) {
	changed := false
	voters := 0
	for i, c := range v.sources {
		s := &v.states[i]
		if n := c.counters.Updates + c.counters.Lost + c.counters.Resets; n != s.seen {
			s.seen, s.margin, changed = n, c.bound.Typical()+v.cfg.Agree, true
		}
		s.claim = vote.Claim{Low: 1}
		if k := c.correction; k.State == clocksync.Locked {
			at := k.At(now.Hard)
			s.claim = vote.Claim{Low: at - s.margin, High: at + s.margin}
			voters++
		}
		v.claims[i] = s.claim
	}
	if !changed {
		return
	}
	low, high, count := vote.Most(v.claims)
	if 2*count <= len(v.sources) {
		abstained := len(v.sources) - voters
		v.holdOver(now, 2*(count+abstained) <= len(v.sources)) // no majority even with those
		return
	}
	v.contradiction = false
	var estimates []estimate
	for i, c := range v.sources {
		s := &v.states[i]
		agrees := s.claim.Shares(low, high)
		if agrees {
			estimates = append(estimates, estimate{c.correction, c.servo.Holdover()})
		}
		// A source that is not locked yet, or no longer, is no falseticker for it.
		contradicts := !agrees && c.correction.State == clocksync.Locked
		if contradicts && !s.outvoted {
			v.counters.Falsetickers++
		}
		s.outvoted = contradicts
	}
	v.follow(now, estimates)
}

// holdOver continues without a majority, at the median of the rates agreed upon before. The bound
// then grows by four standard deviations of those rates, which 4*median/normalMedian estimates.
// contradiction is true if the sources contradict each other; otherwise too few of them are locked,
// which is not counted.
func (v *Voter) holdOver(now clocksync.Now, contradiction bool) {
	if contradiction && !v.contradiction {
		v.counters.NoMajority++
	}
	v.contradiction = contradiction
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

// normalMedian is the median of the absolute value of a normal variable, in standard deviations.
const normalMedian = 0.6745

// median returns the median of x, which it sorts.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// follow moves synchronized time to the median of the estimates that agree: by slewing over one
// sync interval, or by a step if the difference is beyond the limit.
func (v *Voter) follow(now clocksync.Now, estimates []estimate) {
	slices.SortStableFunc(estimates, func(a, b estimate) int { return cmp.Compare(a.At(now.Hard), b.At(now.Hard)) })
	below, above := estimates[(len(estimates)-1)/2].At(now.Hard), estimates[len(estimates)/2].At(now.Hard)
	target := below + (above-below)/2
	var growth float64
	rates, bounds := make([]float64, len(estimates)), make([]units.Time, len(estimates))
	for i, k := range estimates {
		rates[i] = k.rate
		growth = max(growth, k.Drift)
		bounds[i] = abs(target-k.At(now.Hard)) + k.BoundAt(now.Hard)
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
	if limit > 0 && abs(gap) > limit {
		k.Offset += gap
		v.counters.Steps++
		v.slewEnd, gap = units.Never, 0
	} else {
		limit := cfg.Limits.MaxRate
		k.Rate += max(-limit, min(limit, float64(gap)/float64(cfg.Interval)))
		v.slewEnd = now.Mono + cfg.Interval
	}
	// More than half of all sources are within this distance, so at least one honest one is.
	k.Bound = bounds[len(v.sources)/2] + abs(gap)
	k.Drift, k.State = growth, clocksync.Locked
	v.publish(k)
}

// publish replaces the correction, unless the new one is invalid.
func (v *Voter) publish(k clocksync.Correction) { v.counters.Publish(&v.correction, k) }

// watch is like Clock.watch, for the correction of the vote. It also makes all sources check for a
// step at once, so that all of them refer to the same clock.
func (v *Voter) watch(now clocksync.Now) {
	for _, c := range v.sources {
		c.watch(now)
	}
	alarm := v.cfg.Servers[0].StepAlarm
	step := now.Hard - now.Mono - v.hardMinusMono
	if alarm == 0 || abs(step) <= alarm {
		return
	}
	v.hardMinusMono += step
	v.correction.From += step
	v.correction.Offset -= step
	v.correction.Bound += alarm
	if v.correction.State == clocksync.Locked {
		v.correction.State = clocksync.Holdover
	}
}

// abs returns the absolute value of t.
func abs(t units.Time) units.Time { return max(t, -t) }
