package transport

import (
	"cmp"
	"slices"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/transport/cc/uec"
	"weft/units"
)

// Section is a transport's section of a lab file: the parameters of its congestion control, and the
// other keys of its connections.
type Section interface {
	params.Section
	Control() cc.Params // parameters of the congestion control
	Retries() Timeouts
	Set(*Spec) // sets up a connection with the section's values
}

// Coordination configures the switches for coordinated congestion management (CCM).
type Coordination struct {
	Congested params.Size // a port whose queue is longer is congested
	Light     params.Size // a port whose queue is not longer is light (the draft's word)
	Every     units.Time  // minimum between two notices about a flow
	Refresh   units.Time  // interval of reminders until the release
	Strict    bool        // as the draft: no notice about marks if no light path exists
	Loss      float64     // share of notices lost on purpose, 0 to 1
}

// CongestedPath is the path in a lab of Coordination.Congested, whose default is where queues begin
// to mark.
const CongestedPath = "transport.ccm.congested"

// CoordinationOf returns the configuration of switches that take part in a transport's congestion
// management; nil: they do not.
func CoordinationOf(s Section) *Coordination {
	if c, ok := s.(interface{ coordination() *Coordination }); ok {
		return c.coordination()
	}
	return nil
}

// InsideOf returns the section of the congestion control inside another and its key there; s and ""
// if there is none inside.
func InsideOf(s Section) (key string, inside Section) {
	if c, ok := s.(interface{ inside() (string, Section) }); ok {
		return c.inside()
	}
	return "", s
}

// QueuePairs returns the queue pairs per connection, 0 if the transport has none. If whole is true,
// each message is split over all of them, as the key says.
func QueuePairs(s Section) (n int, whole bool, key string) {
	if q, ok := s.(interface{ queuePairs() (int, bool) }); ok {
		n, whole = q.queuePairs()
	}
	return n, whole, splitKey
}

const splitKey = "split"

// Repaths reports whether sources change paths by themselves.
func Repaths(s Section) bool {
	r, ok := s.Control().(interface{ Repaths() bool })
	return ok && r.Repaths()
}

// of returns the section of a transport without keys besides those of its congestion control, whose
// parameters are P.
func of[P cc.Params, D declared[P]]() Section { return new(plainSection[P, D]) }

// section returns a section of type S.
func section[S any, P interface {
	*S
	Section
}]() Section {
	return P(new(S))
}

func spraySection() Section { return &STrack{InTurn: true} }

// declared is a pointer to parameters P that declares their keys.
type declared[P cc.Params] interface {
	*P
	params.Section
}

// plainSection is the section that of returns.
type plainSection[P cc.Params, D declared[P]] struct {
	Params   P
	Recovery string // GoBackN, SelectiveRepeat
	Timeouts
}

// Keys implements params.Section.
func (s *plainSection[P, D]) Keys() []params.Key {
	return slices.Concat(D(&s.Params).Keys(), []params.Key{recovery(&s.Recovery)}, s.Timeouts.Keys())
}

// recovery returns the key of the loss recovery of NICs for RoCEv2.
func recovery(to *string) params.Key {
	return params.New("recovery", params.Word(to, GoBackN, SelectiveRepeat),
		"Loss recovery; packets that overtake each other need selective-repeat.").Default(GoBackN, "RoCEv2")
}

// Rules implements params.Ruled.
func (s *plainSection[P, D]) Rules(r params.Rules) {
	if ruled, ok := params.Section(D(&s.Params)).(params.Ruled); ok {
		ruled.Rules(r)
	}
}

// Control implements Section.
func (s *plainSection[P, D]) Control() cc.Params { return s.Params }

// Set implements Section. Every packet is acknowledged, under selective repeat too: these
// congestion controls act on what each packet measures.
func (s *plainSection[P, D]) Set(c *Spec) {
	c.CC, c.Recovery, c.RTOMin, c.Tries = s.Params, s.Recovery, s.RTOMin, s.Tries
	if s.Recovery == SelectiveRepeat {
		c.Selective.AckEvery = 1
	}
}

// Retries implements Section.
func (t Timeouts) Retries() Timeouts { return t }

// RoCE is the section of RoCEv2: DCQCN, queue pairs and recovery.
type RoCE struct {
	Params   dcqcn.Params
	QPs      int    // queue pairs per connection, each with its own source port, sequence and rate
	Split    string // messages: split each over all queue pairs; round-robin: send each on the next
	Recovery string // GoBackN, SelectiveRepeat
	Timeouts
}

// Keys implements params.Section.
func (s *RoCE) Keys() []params.Key {
	return slices.Concat(s.Params.Keys(), []params.Key{
		params.New("qps", params.Integer(&s.QPs, 1, 16),
			"Queue pairs per connection, each with port, sequence, rate.").
			Default("1", "NCCL: NCCL_IB_QPS_PER_CONNECTION"),
		params.New(splitKey, params.Word(&s.Split, "messages", "round-robin"),
			"Split messages over all queue pairs, or rotate.").
			Default("round-robin", "NCCL: NCCL_IB_SPLIT_DATA_ON_QPS, off"),
		recovery(&s.Recovery),
		s.Params.Repathing(),
	}, s.Timeouts.Keys())
}

// Rules rejects keys without effect. Without marks there are no notifications, and senders stay at
// line rate.
func (s *RoCE) Rules(r params.Rules) {
	if s.QPs == 1 {
		r.Idle("split", "qps", "there is one queue pair, and nothing to split; expected qps above 1, or leave it out")
	}
	if r.Off("queues.ecn") {
		for _, k := range append(s.Params.Keys(), s.Params.Repathing()) {
			r.Idle(k.Name, "queues.ecn",
				"queues.ecn is off, so that nothing is marked and DCQCN never acts; "+
					"leave it out, or expected queues.ecn: on")
		}
	}
}

// Control implements Section.
func (s *RoCE) Control() cc.Params { return s.Params }

func (s *RoCE) queuePairs() (n int, whole bool) { return s.QPs, s.Split == "messages" && s.QPs > 1 }

// Set implements Section.
func (s *RoCE) Set(c *Spec) {
	c.CC, c.Recovery, c.RTOMin, c.Tries = s.Params, s.Recovery, s.RTOMin, s.Tries
}

// STrack is the section of STrack and of spray: window, paths and recovery.
type STrack struct {
	Params strack.Params
	Selective
	Timeouts
	InTurn bool // paths are taken in turn (spray)
}

// Keys implements params.Section.
func (s *STrack) Keys() []params.Key {
	paths := s.Params.PathKeys()
	for i := range paths {
		paths[i] = paths[i].OnlyOf("strack", func() (bool, string) {
			return !s.InTurn, "spray takes paths in turn; leave it out"
		})
	}
	return slices.Concat(s.Params.WindowKeys(), paths, s.Selective.Keys(), s.Timeouts.Keys())
}

// Rules rejects keys without effect, and a number of paths that spray cannot take in turn.
func (s *STrack) Rules(r params.Rules) {
	s.Params.Rules(r)
	if n := s.Params.Paths; s.InTurn && n&(n-1) != 0 {
		r.Refuse("paths", "%d is not a power of two, which spray needs", n)
	}
}

// Control implements Section.
func (s *STrack) Control() cc.Params { return s.Params }

// Set implements Section.
func (s *STrack) Set(c *Spec) {
	c.CC, c.Selective, c.RTOMin, c.Tries = s.Params, s.Selective, s.RTOMin, s.Tries
}

// Keys returns the keys of selective repeat.
func (s *Selective) Keys() []params.Key {
	return []params.Key{
		ackEvery(&s.AckEvery).
			Default("auto", "ours: four packets of 4 KiB, as in UEC; the STrack paper leaves it open"),
		params.New("threshold", params.Integer(&s.Threshold, 1, 10_000),
			"Reordered packets before a loss is inferred.").
			Default("5", "STrack paper, section 3.3.2"),
		params.New("probe_after", params.Decimal(&s.ProbeAfter, 0.1, 1000),
			"Base RTTs without acknowledgement before a probe.").
			Default("3", "STrack paper, section 3.3.2"),
	}
}

// ackEvery returns the key of Selective.AckEvery.
func ackEvery(to *units.Bytes) params.Key {
	return params.New("ack_every", params.Bytes(to, 1, units.GB).Or("auto", 0),
		"Bytes per acknowledgement; auto: 16KiB, less for small windows.")
}

// UEC is the section of Ultra Ethernet.
type UEC struct {
	Params   uec.Params
	AckEvery units.Bytes // bytes on the wire per acknowledgement (uet-htsim, uec.cpp: _bytes_unacked_threshold)
	Timeouts
}

// Keys implements params.Section.
func (s *UEC) Keys() []params.Key {
	every := ackEvery(&s.AckEvery).Default("auto", "uet-htsim")
	return slices.Concat(s.Params.Keys(), []params.Key{every}, s.Timeouts.Keys())
}

// Rules implements params.Ruled.
func (s *UEC) Rules(r params.Rules) { s.Params.Rules(r) }

// Control implements Section.
func (s *UEC) Control() cc.Params { return s.Params }

// Set implements Section.
func (s *UEC) Set(c *Spec) {
	c.CC, c.Selective.AckEvery, c.RTOMin, c.Tries = s.Params, s.AckEvery, s.RTOMin, s.Tries
}

// CCM is the section of coordinated congestion management, for source hosts and all switches.
type CCM struct {
	Inner    string // name of the congestion control inside, of which one section below applies
	RoCE     RoCE
	Swift    plainSection[swift.Params, *swift.Params]
	PC4      plainSection[pc4.Params, *pc4.Params]
	Recovery string     // GoBackN, SelectiveRepeat
	Timeout  units.Time // validity of an incast notice at its source; 0: see ccm.Params
	Paths    int        // source ports that a source may change between
	Last     string     // ccm.Tag or ccm.Untagged: what a source does about a last resort
	Coordination
}

// defaultInner is the default congestion control inside ccm.
const defaultInner = "roce"

// Keys implements params.Section. The section of the congestion control inside has the keys and
// defaults that it has as a transport of its own.
func (s *CCM) Keys() []params.Key {
	const most, tick = 10 * units.Second, 100 * units.Nanosecond
	inside := func(name string, section params.Section, about string) params.Key {
		applies := func() (bool, string) {
			if s.Inner == "" {
				return false, "" // reported
			}
			return s.Inner == name, "the congestion control inside is " + s.Inner +
				"; leave it out, or expected inner: " + name
		}
		return params.Sub(name, func() params.Section { return section }, about).
			Same("transport." + name).Only(applies)
	}
	return []params.Key{
		params.New("inner", params.Word(&s.Inner, "roce", "swift", "pc4"),
			"Coordinated congestion control.").
			Default(defaultInner, "ours: the CCM draft leaves it open; DCQCN is its example"),
		inside("roce", &s.RoCE, "Inner DCQCN."),
		inside("swift", &s.Swift, "Inner Swift."),
		inside("pc4", &s.PC4, "Inner PC4."),
		params.New("recovery", params.Word(&s.Recovery, GoBackN, SelectiveRepeat),
			"Loss recovery; go-back-n takes path changes for losses.").
			Default(SelectiveRepeat, "ours: packets of a flow overtake each other when it takes another path"),
		params.New("timeout", params.Time(&s.Timeout, units.Microsecond, most).Or("auto", 0),
			"Validity of notices; auto: 1ms, at least 2 RTTs.").
			Default("auto", "ours: the CCM draft does not say what heals a lost notification"),
		params.New("paths", params.Integer(&s.Paths, 1, 256), "Source ports to switch between; 1: never asked to.").
			Default("1", "ours: hosts have one card, and switches choose"),
		params.New("last_resort", params.Word(&s.Last, ccm.Tag, ccm.Untagged),
			"Without a light path: tag packets, or only obey marks.").
			Default(ccm.Tag, "CCM draft, section 6"),
		params.New("congested", params.Amount(&s.Congested), "A host port above this has incast.").
			Default("25%bdp", "ours: where queues.ecn begins to mark"),
		params.New("light", params.Amount(&s.Light), "A port is light while at most this waits.").
			Following(func() (text, source string) { return s.Congested.Half().String(), "ours: half of congested" }),
		params.New("notify_every", params.Time(&s.Every, tick, most),
			"Minimum between incast notifications of a flow.").
			Default("50us", "ours: as often as a NIC sends CNPs for a flow"),
		params.New("refresh", params.Time(&s.Refresh, tick, most), "Interval of reminders until release.").
			Default("250us", "ours: a quarter of the default timeout"),
		params.New("strict", params.Flag(&s.Strict),
			"Send no notices without light paths.").
			Default("false", "ours: see docs/adr/0091"),
		params.New("notification_loss", params.Share(&s.Loss, 0, 1), "Notifications lost on purpose.").
			Default("0", "ours"),
	}
}

// Rules rejects contradictions, and keys of the congestion control inside that CCM decides itself.
func (s *CCM) Rules(r params.Rules) {
	if s.Inner == "roce" && s.RoCE.Params.Repath > 0 {
		r.Refuse("roce.repath",
			"the switches choose paths, and ask the source for another one by themselves; expected off")
	}
	for _, key := range []string{"roce.qps", "roce.split", "roce.recovery", "swift.recovery", "pc4.recovery"} {
		r.Idle(key, "", "the transport around it has paths and a recovery of its own; leave it out")
	}
	if r.Good("light", "congested") && s.Light.Comparable(s.Congested) && s.Light.Above(s.Congested) {
		r.Refuse("light", "%v is above congested, %v", s.Light, s.Congested)
	}
	if s.Strict {
		r.Idle("last_resort", "strict", "with strict: true no source is told of a last resort; leave it out")
	}
	if r.Good("timeout") && s.Refresh >= cmp.Or(s.Timeout, units.Millisecond) {
		r.Refuse("refresh", "%v is not below timeout, %v, after which sources forget", s.Refresh,
			cmp.Or(s.Timeout, units.Millisecond))
	}
}

func (s *CCM) coordination() *Coordination { return &s.Coordination }

// inside returns the name and the section of the congestion control inside.
func (s *CCM) inside() (string, Section) {
	switch s.Inner {
	case "swift":
		return s.Inner, &s.Swift
	case "pc4":
		return s.Inner, &s.PC4
	}
	return s.Inner, &s.RoCE
}

// Control implements Section.
func (s *CCM) Control() cc.Params {
	p := ccm.Params{Timeout: s.Timeout, Paths: s.Paths, LastResort: s.Last}
	_, inside := s.inside()
	switch inner := inside.Control().(type) {
	case dcqcn.Params:
		p.DCQCN = &inner
	case swift.Params:
		p.Swift = &inner
	case pc4.Params:
		p.PC4 = &inner
	}
	return p
}

// Retries implements Section.
func (s *CCM) Retries() Timeouts {
	_, inside := s.inside()
	return inside.Retries()
}

// Set implements Section.
func (s *CCM) Set(c *Spec) {
	t := s.Retries()
	c.CC, c.Recovery, c.RTOMin, c.Tries = s.Control(), s.Recovery, t.RTOMin, t.Tries
}
