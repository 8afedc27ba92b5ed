package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/clocksync"
	"weft/clocksync/clock"
	clocks "weft/clocksync/node"
	"weft/clocksync/noise"
	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Clocks is the clocks section: the errors of the hosts' clocks, and the protocol that synchronizes
// them.
type Clocks struct {
	Sync   string      // perfect, none, ptp, huygens
	Preset string      // of clock.Presets: the oscillator that Skew and Wander default to
	Offset units.Time  // each clock starts with an offset drawn uniformly from ±Offset
	Skew   float64     // each clock has a frequency error drawn uniformly from ±Skew, as a ratio
	Wander float64     // standard deviation of the frequency's random walk after 1 s, in 1/sqrt(s)
	Stamp  noise.Stamp // errors of timestamps
	Noise  noise.Delay // added to measured one-way delays

	Reference string // host whose clock the others follow; "": the first
	Control   bool   // switches serve synchronization messages before data
	Switches
	Sample units.Time // interval between two samples of the true error; 0: none are taken
	Limit  units.Time // clocks have converged when they stay this close to each other
	For    units.Time // minimum duration of the run; 0: none

	// Warmup is the time of synchronization before the workload begins. 0: the run chooses;
	// negative: none.
	Warmup units.Time

	clocks.Protocols
}

// Switches says how switches take part in synchronization.
type Switches struct {
	Transparent bool // they add their residence time to PTP's event messages
	PeerToPeer  bool // and also the delay of the link that a message came by; implies Transparent
}

func (c *Clocks) sync() clocks.Sync { return clocks.Sync(c.Sync) }

// Kind returns the facts of the synchronization protocol.
func (c *Clocks) Kind() clocks.Facts { return clocks.FactsOf(c.sync()) }

// Boundary returns the boundary clocks.
func (c *Clocks) Boundary() clocksync.Boundary { return c.Protocols.Boundary(c.sync()) }

// Serves reports whether a host is one of several servers with a source of time of its own.
func (c *Clocks) Serves(host clocksync.Setup) bool { return c.Protocols.Serves(c.sync(), host) }

// Votes reports whether hosts vote over several servers.
func (c *Clocks) Votes() bool { return c.Serves(clocksync.Setup{Nodes: 1}) }

// NoVote is why nobody counts votes if hosts do not.
const NoVote = "no host votes over several time servers"

// LinkInterval is the interval at which switches measure links as peer-to-peer transparent clocks.
func (c *Clocks) LinkInterval() units.Time { return c.Protocols.LinkInterval(c.sync()) }

// Alone returns how long clocks are measured without a workload, unless the lab says.
func (c *Clocks) Alone() units.Time {
	node := clocks.Config{Sync: c.sync(), Protocols: c.Protocols}
	return node.Alone()
}

// Imperfect reports whether a host has a clock that is not lab time, or measures with noise.
func (c *Clocks) Imperfect() bool {
	return !c.Kind().Perfect || c.Stamp != (noise.Stamp{}) || c.Noise != (noise.Delay{})
}

// Bounds of the clocks section. A measured delay may be wrong by two offsets, which fits into an
// acknowledgement of STrack.
const (
	maxOffset = units.Second
	maxSkew   = 0.001 // as a ratio: 1000 ppm
	maxWander = 0.001 // in 1/sqrt(s)
	maxJitter = units.Millisecond
	maxFor    = 10_000 * units.Second // over a hundred samples at PTP's longest usual interval, 16 s
)

// Keys implements params.Section. Perfect clocks have no defaults for their errors. Errors that are
// written are read anyway, so that a sweep can compare perfect clocks with others.
func (c *Clocks) Keys() []params.Key {
	given := func(k params.Key, text, source string) params.Key {
		return k.OrNone().Following(func() (string, string) {
			if c.Kind().Perfect {
				return "", ""
			}
			return text, source
		})
	}
	preset := func(k params.Key, text func(clock.Preset) string) params.Key {
		return k.OrNone().Following(func() (string, string) {
			if c.Kind().Perfect {
				return "", ""
			}
			p, _ := clock.PresetOf(c.Preset)
			return text(p), "preset " + c.Preset
		})
	}
	keys := []params.Key{
		params.New("sync", params.Word(&c.Sync, clocks.Kinds()...),
			"No clock errors, no synchronization, PTP or Huygens.").
			Default("perfect", "ours"),
		given(params.New("preset", params.Word(&c.Preset, clock.Presets()...),
			"Oscillator class; sets skew and wander."), "server", "ours: what NICs have"),
		given(params.New("offset", params.Deviation(&c.Offset, maxOffset), "Initial offset, uniform."), "off",
			"ours: clocks start without an error"),
		preset(params.New("skew", params.Ratio(&c.Skew, "±", "", maxSkew, "±20ppm"), "Frequency error, uniform."),
			func(p clock.Preset) string { return "±" + params.ShowRatio(p.Skew) }),
		preset(params.New("wander", params.Ratio(&c.Wander, "", "/√s", maxWander, "0.01ppm/√s"),
			"Random walk of the frequency."),
			func(p clock.Preset) string { return params.ShowRatio(p.Wander) + "/√s" }),
		given(params.New("jitter", params.Deviation(&c.Stamp.Jitter, maxJitter),
			"Standard deviation of a timestamp."), "5ns", "ours: hardware timestamps"),
		given(params.New("granularity", params.Deviation(&c.Stamp.Quantum, maxJitter), "Timestamp resolution."),
			"1ns", "ours: hardware timestamps"),
		params.New("stalls", params.Share(&c.Stamp.Stalled, 0, 1).Or("off", 0), "Share of packets stamped late.").
			OrNone(),
		params.New("stall", params.Deviation(&c.Stamp.Stall, maxJitter), "Mean lateness, exponential.").OrNone().
			Following(func() (text, source string) {
				if c.Stamp.Stalled > 0 {
					return "200ns", "ours: of the order of what Huygens saw"
				}
				return "", ""
			}),
		params.New("noise", delayNoise(&c.Noise),
			"Added to measured one-way delays: uniform, normal or exponential.").OrNone(),
		params.New("reference", params.Text(&c.Reference, "the name of a host"),
			"Host the others follow; default: the first.").OrNone(),
		given(params.New("priority", params.Choice(&c.Control, "data", "control"),
			"Queue sync messages with data, or ahead of it."),
			"data", "ours: no switch is set up for synchronization"),
		given(params.New("transparent", transparent(&c.Switches),
			"Switches are transparent clocks: they report residence time. peer: they also measure link delays "+
				"(ptp.delay: peer)."),
			"false", "ours: most switches are not"),
		given(params.New("sample", interval(&c.Sample), "Interval of recording true errors."), "10us", "ours"),
		given(params.New("limit", params.Time(&c.Limit, units.Nanosecond, units.Second),
			"Converged when all clocks stay this close."),
			"100ns", "PC4 paper, section III-B: what its clocks cannot tell apart"),
		given(params.New("warmup", params.Time(&c.Warmup, units.Nanosecond, maxStart).Or("auto", 0).Or("off", -1),
			"Synchronization before the workload; lab times count from its end. auto: "+clocks.WarmUps()+"."),
			"auto", "ours: "+clocks.WarmUps()),
	}
	protocols := c.Protocols.Keys(c.sync, func() bool { return c.PeerToPeer })
	return append(append(keys, protocols...),
		params.New("for", params.Time(&c.For, 0, maxFor), "Minimum duration of the run.").OrNone())
}

// Rules rejects clocks whose frequency errors exceed what the protocol's servos can correct.
func (c *Clocks) Rules(r params.Rules) {
	if k := c.Kind(); k.MaxRate > 0 && c.Skew > k.MaxRate/2 {
		r.Refuse("skew", "two clocks may differ by twice that, and %s's servos correct up to %s; expected up to "+
			"±%s, or sync: %s",
			k.Title, params.ShowRatio(k.MaxRate), params.ShowRatio(k.MaxRate/2), clocks.With(clocks.Facts.AnyRate))
	}
}

// clocks reads the section of a lab with the given hosts.
func (d *decoder) clocks(s *section, known hosts) (c Clocks) {
	d.hosts = known
	r := s.read(&c)
	reference := c.Reference
	switch f := r.field("reference"); {
	case reference == "" && known.count > 0 && !f.written():
		reference = known.at(0)
	case reference != "" && known.count > 0 && !known.has(reference):
		f.problem("no host is named %q%s", clip.Text(reference), known.hint(d, reference))
		c.Reference, reference = "", ""
	}
	if of := r.inner(c.Sync); of != nil {
		of.follow(c.Boundary(), reference)
	}
	d.hosts = hosts{}
	other := new(clocks.Protocols)
	for _, k := range other.Keys(nil, func() bool { return c.PeerToPeer }) {
		r.aside(k.Name, k.Open())
		if c.Sync != k.Name {
			r.field(k.Name).unused(r.field("sync"), "nothing runs it with sync: %s; expected sync: %s", c.Sync, k.Name)
		}
	}
	c.noteErrors(r)
	s.close()
	return c
}

// noteErrors notes errors of clocks that are written and that clocks without errors do not have:
// they are for runs with another sync. So is the lateness of late packets where none are late.
func (c *Clocks) noteErrors(r *keyReader) {
	if c.Stamp.Stall != 0 && c.Stamp.Stalled == 0 {
		r.field("stall").unused(r.field("stalls"), "no packet is stamped late with stalls: off; expected a share, "+
			"stalls: 1%%")
	}
	if !c.Kind().Perfect {
		return
	}
	for _, e := range []struct {
		key string
		has bool
	}{{"preset", c.Preset != ""}, {"offset", c.Offset != 0}, {"skew", c.Skew != 0}, {"wander", c.Wander != 0}} {
		if e.has {
			r.field(e.key).unused(r.field("sync"), "clocks show lab time with sync: %s; expected sync: %s", c.Sync,
				clocks.With(func(f clocks.Facts) bool { return !f.Perfect }))
		}
	}
}

// aside checks the section of a protocol that this run does not use: other points of the sweep do.
func (r *keyReader) aside(name string, of params.Section) {
	if f := r.field(name); f.written() && r.inner(name) == nil {
		f.d.aside++
		f.open().all(of)
		f.d.aside--
	}
}

// follow rejects the reference as a boundary clock. reference is "" if it is not known.
func (r *keyReader) follow(b clocksync.Boundary, reference string) {
	for i, name := range b.Hosts {
		if name != "" && name == reference {
			r.field("boundary").items(maxNames)[i].problem("%s is the reference and follows no other clock", name)
		}
	}
}

// transparent is true or false, or peer, which is true for both fields.
func transparent(to *Switches) params.Value {
	return params.Custom(to, func(text string) (Switches, error) {
		var s Switches
		if _, err := params.Flag(&s.Transparent).Set(text, false); err != nil {
			return s, fmt.Errorf("%q is none of true, false and peer", clip.Text(text))
		}
		return s, nil
	}, func(s Switches) string { return strconv.FormatBool(s.Transparent) }, "true, false or peer",
		func() params.Form { return params.Form{Flag: true} }).Or("peer", Switches{true, true})
}

// delayNoise is off, uniform ±100ns, normal 100ns (a standard deviation) or exponential 100ns (a
// mean). ±100ns alone is uniform.
func delayNoise(to *noise.Delay) params.Value {
	return params.Custom(to, func(text string) (noise.Delay, error) {
		kind, amount, two := strings.Cut(text, " ")
		if !two {
			kind, amount = string(noise.Uniform), text
		}
		t, err := units.ParseTime(strings.TrimPrefix(amount, "±"))
		switch {
		case !slices.Contains([]string{"uniform", "normal", "exponential"}, kind):
			return noise.Delay{}, fmt.Errorf("%q is not understood; expected off, uniform ±100ns, normal 100ns or "+
				"exponential 100ns", clip.Text(text))
		case err != nil:
			return noise.Delay{}, err
		case t < 0 || t > maxJitter:
			return noise.Delay{}, fmt.Errorf("%q is out of range; expected up to %v", clip.Text(text), maxJitter)
		case t == 0:
			return noise.Delay{}, nil
		case kind == "uniform":
			return noise.Delay{Kind: noise.Uniform, Low: -t, High: t}, nil
		}
		return noise.Delay{Kind: noise.Kind(kind), High: t}, nil
	}, showNoise, "off or noise such as uniform ±100ns", func() params.Form {
		return params.Form{Patterns: []string{`((uniform|normal|exponential) )?±?` + units.TimePattern()},
			Example: "uniform ±100ns"}
	}).Or("off", noise.Delay{})
}

func showNoise(d noise.Delay) string {
	switch d.Kind {
	case "":
		return "off"
	case noise.Uniform:
		return "uniform ±" + d.High.String()
	}
	return string(d.Kind) + " " + d.High.String()
}
