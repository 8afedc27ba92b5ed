package lab

import (
	"fmt"
	"strings"

	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/units"
)

// Bounds of the faults section.
const (
	maxFaults = 10_000
	maxStep   = 1000 * units.Second // of a clock
)

// ClockFault is a fault of a host's clock or of its synchronization. One of Step, Skew, Down and
// Lies is set.
type ClockFault struct {
	Host string
	Step units.Time // change of the hardware clock
	Skew float64    // change of the frequency, as a ratio
	Over units.Time // duration of the change of frequency; 0: it is instant
	Down bool       // synchronization does not run on the host, for Fault.For
	Lies bool       // the time that the host serves to others is wrong by Lie, until the next such fault
	Lie  units.Time
}

// faults reads the faults section.
type faults struct {
	d     *decoder // nil: the keys are only listed
	hosts hosts
	at    []int // position of each fault in the file; holes count
	read  []faultReader
}

// key declares the section.
func (f *faults) key() params.Key {
	k := params.List("faults", &params.Items{
		Most: maxFaults, Make: func(n int) { f.read = make([]faultReader, n) }, Len: func() int { return len(f.read) },
		Item: func(i int) params.Key {
			f.read[i] = faultReader{d: f.d, hosts: f.hosts}
			if f.at != nil {
				f.read[i].Index = f.at[i]
			}
			return params.Each(&f.read[i])
		},
	}, "What happens to links, hosts and clocks.")
	k.Words = []string{"off"}
	return k
}

// all returns the faults in the order of the file.
func (f *faults) all() (all []Fault) {
	for i := range f.read {
		all = append(all, f.read[i].Fault)
	}
	return all
}

// A faultReader reads one fault.
type faultReader struct {
	Fault
	d     *decoder
	hosts hosts
	clock ClockFault
	sync  string // the value of sync, off; it sets clock.Down

	written func(key string) bool // reports whether the fault has a key
	lasts   string                // the text of for
}

// Prescan implements params.Prescanner.
func (f *faultReader) Prescan(written func(path string) (text string, ok bool)) {
	f.written = func(key string) bool {
		_, ok := written(key)
		return ok
	}
	f.lasts, _ = written("for")
}

// clockEvents are the keys of what can happen to a clock. A fault has exactly one of them.
var clockEvents = []string{"step", "skew", "sync", "lies"}

// Keys implements params.Section. A fault is of a link, a host or a clock, or it corrupts a byte.
// The keys of the other sorts are Elsewhere.
func (f *faultReader) Keys() []params.Key {
	if f.d == nil {
		f.written = func(string) bool { return false }
	}
	corrupt, clock, host, down := f.written("corrupt"), f.written("clock"), f.written("host"), f.written("down")
	events := 0
	for _, key := range clockEvents {
		if f.written(key) {
			events++
		}
	}
	// of is a key of one sort of fault.
	of := func(sort bool, what string, k params.Key) params.Key {
		switch {
		case f.d == nil || sort:
			return k
		case corrupt:
			return k.Elsewhere("given together with corrupt, which allows only at beside it")
		case clock:
			return k.Elsewhere("given together with clock; a fault is about a clock or a " + what)
		}
		return k.Elsewhere("applies to a " + what + "; expected a host, such as " + what + ": h3")
	}
	link := func(k params.Key) params.Key {
		if host && !clock && !corrupt {
			const why = "given together with host; a fault is about a link or a host"
			return k.Only(func() (bool, string) { return false, why })
		}
		return of(!corrupt && !clock, "link", k)
	}
	when := func(k params.Key, applies bool, why string) params.Key {
		return k.Only(func() (bool, string) { return f.d == nil || applies, why })
	}
	onHost := func(k params.Key) params.Key {
		return of(!corrupt && !clock, "host", when(k.OrNone(), host, "applies to a host; expected a host such as "+
			"host: h3"))
	}
	reroute := when(params.New("reroute", span(&f.Reroute, "off"),
		"Delay until all switches route around the link (docs/faults.md); off: only its own ends do, at once.").
		Default("off", "ours"),
		down, "applies to a link that goes down")
	at := params.New("link", params.LinkName(&f.Link), "Link by its ends.")
	at.Optional = f.d == nil
	over := params.New("over", params.Time(&f.clock.Over, 0, maxStart), "Duration of the frequency change.").
		Default("0s", "ours: at once")
	return []params.Key{
		params.New("at", params.Time(&f.At, 0, maxStart), "When."),
		link(at),
		link(params.New("down", ever(&f.For), "Duration; true: until the end.").OrNone()),
		link(params.New("rate", params.Maybe(&f.Rate, "", params.Bandwidth), "New rate.").OrNone()),
		link(when(params.New("queues", params.Choice(&f.Scaled, "kept", "scaled"),
			"scaled: buffers and marks change with the rate.").
			Default("kept", "ours"), f.written("rate"), "applies to a new rate")),
		link(params.New("delay", params.Maybe(&f.Delay, "",
			func(to *units.Time) params.Of[units.Time] { return params.Time(to, 0, topology.MaxDelay) }),
			"New delay.").OrNone()),
		link(params.New("loss", params.Maybe(&f.Loss, "", params.Probability), "New loss.").OrNone()),
		link(params.New("bit_errors", params.Maybe(&f.BitErrors, "", params.Probability), "New bit error rate.").
			OrNone()),
		link(reroute),
		params.New("corrupt", f.hosts.name(&f.Corrupt, f.d),
			"Host whose next data packet gets a wrong byte, unnoticed by the transport.").
			OrNone().Before(),
		of(!corrupt && !clock, "host", params.New("host", f.hosts.name(&f.Host, f.d), "Host, instead of a link.").
			OrNone()),
		link(params.New("toward", params.Matching(&f.Toward, params.NameText, "h0", "the name of one end of the link",
			"%q is not the name of one end of the link"), "Change only the direction to this end.").OrNone()),
		of(!corrupt, "clock", params.New("clock", f.hosts.name(&f.clock.Host, f.d),
			"Host whose clock or synchronization fails.").OrNone().Before()),
		of(clock, "clock", params.New("step", shift(&f.clock.Step, "-1us"), "Clock step, such as -1us.").OrNone()),
		of(clock, "clock", params.New("skew", signedRatio(&f.clock.Skew), "Frequency change, such as 5ppm.").OrNone()),
		of(clock, "clock", params.New("lies", shift(&f.clock.Lie, "10us"),
			"Error of the time the host serves; 0s: none again.").OrNone()),
		of(clock, "clock", when(over, f.written("skew"), whyNot(events > 0, "applies to skew"))),
		of(clock, "clock", params.New("sync", params.Word(&f.sync, "off"),
			"Synchronization stops; it restarts after for.").OrNone()),
		f.lasting(corrupt, clock, host, down, events > 0),
		onHost(params.New("kill", params.Flag(&f.Kill), "The host ends.")),
		onHost(params.New("pause", params.Time(&f.For, units.Nanosecond, maxStart),
			"The host freezes and loses arriving packets.")),
	}
}

// whyNot returns why, or "" if the condition fails: another error explains the problem then.
func whyNot(explains bool, why string) string {
	if explains {
		return why
	}
	return ""
}

// lasting returns the key for: how long a change lasts.
func (f *faultReader) lasting(corrupt, clock, host, down, event bool) params.Key {
	k := params.New("for", ever(&f.For), "Duration of a changed setting; true: until the end.")
	forever := k.Following(func() (string, string) { return "true", "ours: to the end of the run" })
	no := func(why string) params.Key { return k.Only(func() (bool, string) { return false, why }) }
	switch {
	case f.d == nil:
		return k.OrNone()
	case corrupt:
		return k.Elsewhere("given together with corrupt, which allows only at beside it")
	case clock && f.written("sync"):
		return forever
	case clock:
		return no(whyNot(event, "applies to sync: off; a step of a clock is permanent"))
	case host:
		return no("given together with host; a fault is about a link or a host")
	case down:
		return no("given together with down; expected down: " + clip.Text(f.lasts) + " instead")
	}
	return forever
}

// Rules implements params.Ruled.
func (f *faultReader) Rules(r params.Rules) {
	switch {
	case r.Written("corrupt"):
	case r.Written("clock"):
		f.settleClock(r)
	case r.Written("host"):
		f.settleHost(r)
	default:
		f.settleLink(r)
	}
}

// settleClock completes a fault of a clock, and rejects one with none or several events.
func (f *faultReader) settleClock(r params.Rules) {
	events := 0
	for _, key := range clockEvents {
		if r.Written(key) {
			events++
		}
	}
	if events != 1 {
		r.Refuse("clock", "expected exactly one of step: 1us, skew: 5ppm, lies: 10us and sync: off")
	}
	f.clock.Down, f.clock.Lies = r.Written("sync"), r.Written("lies")
	f.Clock = &f.clock
}

// settleHost completes a fault of a host, and rejects one that does nothing or contradicts itself.
func (f *faultReader) settleHost(r params.Rules) {
	kill, pause := r.Written("kill"), r.Written("pause")
	switch {
	case !kill && !pause && !r.Misspelt():
		r.Refuse("host", "the fault changes nothing; expected kill: true, or a pause such as 1ms")
	case kill && pause:
		r.Refuse("pause", "given together with kill; a killed host cannot pause")
	case kill && r.Good("kill") && !f.Kill:
		r.Refuse("kill", "the fault changes nothing; expected kill: true, or no fault")
	}
	f.Pause = pause
}

// settleLink completes a fault of a link, and rejects one that does nothing or contradicts itself.
func (f *faultReader) settleLink(r params.Rules) {
	changed := ""
	for _, key := range []string{"bit_errors", "loss", "delay", "rate"} {
		if r.Written(key) {
			changed = key
		}
	}
	f.Down = r.Written("down")
	if r.Written("toward") && changed == "" {
		r.Refuse("toward", "applies to a link whose rate, delay, loss or bit_errors change")
	}
	switch {
	case f.Down && changed != "":
		r.Refuse(changed, "given together with down; a link that is down has no rate, delay or loss")
	case !f.Down && changed == "" && r.Written("link") && !r.Misspelt(): // a misspelt key explains it
		r.Refuse("link", "the fault changes nothing; expected down, or another rate, delay, loss or bit_errors")
	}
}

// span is a duration, or a word for 0.
func span(to *units.Time, word string) params.Of[units.Time] {
	var t units.Time
	time := params.Time(&t, units.Nanosecond, maxStart)
	return params.Custom(to, func(text string) (units.Time, error) {
		if _, err := time.Set(text, false); err != nil {
			return 0, fmt.Errorf("%w, or %s", err, word)
		}
		return t, nil
	}, units.Time.String, time.Expected(),
		func() params.Form { return params.Form{Patterns: []string{units.TimePattern()}, Example: "10us"} }).Or(word, 0)
}

// ever is a duration. true, or no value, means to the end of the run, which is stored as 0.
func ever(to *units.Time) params.Value { return toTheEnd{span(to, "true")} }

// toTheEnd is the value of ever.
type toTheEnd struct{ params.Of[units.Time] }

// Form implements params.Value.
func (e toTheEnd) Form() params.Form {
	return params.Form{Patterns: []string{units.TimePattern()}, Example: "1ms", Null: true}
}

// shift is a time that may be negative.
func shift(to *units.Time, example string) params.Value {
	return params.Time(to, -maxStep, maxStep).Like("-?"+units.TimePattern(), example)
}

// signedRatio is a change of a frequency such as 5ppm or -5ppm.
func signedRatio(to *float64) params.Value {
	var v float64
	ratio := params.Ratio(&v, "", "", maxSkew, "5ppm")
	return params.Custom(to, func(text string) (float64, error) {
		unsigned, negative := strings.CutPrefix(text, "-")
		if _, err := ratio.Set(unsigned, false); err != nil {
			return 0, err
		}
		if negative {
			v = -v
		}
		return v, nil
	}, func(v float64) string {
		if v < 0 {
			return "-" + params.ShowRatio(-v)
		}
		return params.ShowRatio(v)
	}, ratio.Expected(), func() params.Form {
		return params.Form{Patterns: []string{"-?" + ratio.Form().Patterns[0]}, Example: "5ppm"}
	})
}
