package sim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/fabric"
	"weft/internal/state"
	"weft/results/stats"
	"weft/units"
)

// Steps of a workload. A step begins when a host begins a repetition of its work while nothing is
// in the network and no host is in the middle of one. From then on ties are broken by the time
// since (an epoch of the event queue), so that what happens in a step depends on the state at its
// beginning and not on the instant (docs/adr/0003).
//
// So a step need not be executed again that began in the same state, relative to its instant, and
// is followed by the same work. Training repeats its layers: after a few of them the state is the
// same at the beginning of every layer, and the rest is recorded without being executed. In detail,
// when a step begins and the state is that at the beginning of an earlier one, the steps in between
// are a cycle. If hosts go on with the same work, everything is moved to the end of as many whole
// cycles as follow: instants, positions of hosts, results. A last step is always left, whose events
// end the run.
//
// What a state is, types say: package state. What cannot be compared is never the same as before.

// Stepping is a Host that can skip what it did before.
type Stepping interface {
	Host
	// Begins returns when the host begins its next step; units.Never: it has none left, or what it
	// waits for is in the middle of one.
	Begins() units.Time
	// Between reports whether the host is not in the middle of a step.
	Between() bool
	// Rest forgets what does not matter any more between steps.
	Rest(now units.Time)
	// Where returns where the host is in its work, for the other methods.
	Where() any
	// Again returns how often the work since a place, where the host was at an instant and which
	// took a time, follows again with something after it; at most most.
	Again(since any, at, took units.Time, most int) int
	// Skip records that the work since a place was done several times more, and moves on.
	Skip(since any, times int, took units.Time) error
}

// Memo is what a run remembers of steps, and what became of them.
type Memo struct {
	// Never is why no state of the run can be one that was before. The run then has no steps. New
	// sets it for what it finds itself. "": it can.
	Never string
	// Off is why steps are executed that were executed before; "": they are skipped.
	Off string

	// Results returns what was measured outside of the simulation since the last call, for Repeat;
	// nil if that is too much to be repeated.
	Results func() any
	// Repeat records that what Results returned for each step of a cycle was measured several times
	// more, every time that the cycle took.
	Repeat  func(cycle []any, times int, took units.Time)
	Samples Samples // nil: there are none

	Steps   int            // steps that have begun or were skipped
	Skipped int            // those of them that were not executed
	Misses  map[string]int // the others, by the reason why they were executed
}

// Samples are the callbacks of Options that are made at instants of their own. A cycle is executed
// once more for them, with a look at every time since its beginning at which a sample of the cycles
// that follow falls.
type Samples interface {
	// Instants calls f for the instants of samples after one instant, up to another.
	Instants(after, until units.Time, f func(at units.Time))
	// Begin begins the recording of a cycle.
	Begin()
	// Look records what samples can see of the run, at a time since the beginning.
	Look(now, since units.Time)
	// Make makes the samples of the next cycles, from the recorded one on, which has just ended,
	// and returns the instant of the frame after them.
	Make(now, took units.Time, times int) (frame units.Time)
}

// miss counts a step that is executed.
func (m *Memo) miss(why string) {
	if m.Misses == nil {
		m.Misses = map[string]int{}
	}
	m.Misses[why]++
}

// Reasons to execute a step.
const (
	missFirst = "the first of all"
	missWork  = "the last, or other work follows"
	missSoon  = "before measure.from, a fault or the limit"

	missRefused = "hosts refused packets"
	missLook    = "for samples of those that are skipped"
	missRows    = "too many rows in a step"
	missSamples = "too many samples"
	missGivenUp = "no state came back before"
)

// steps is the part of a Sim that begins steps.
type steps struct {
	hosts  []Stepping
	memo   *Memo
	epoch  units.Time // when the last step began
	busy   int        // the host that was found in the middle of a step last
	log    []begun
	missed int // steps that were compared since one was skipped

	// looked is the cycle that is or was recorded for samples, and looks what is left of the times
	// since its beginning at which to look.
	looked struct{ at, took units.Time }
	looks  []units.Time
	size   int // bytes that log takes, about
}

// begun is the beginning of a step.
type begun struct {
	at      units.Time
	number  int // of steps before it
	state   *state.State
	where   []any         // by host
	events  []int64       // by partition
	refused int64         // packets that hosts refused
	delays  []stats.Delta // by partition: queueing delays until the next step of the log began
	outside any           // Memo.Results until then
	bytes   int
}

// Limits of the memory for beginnings of steps. Our own choices.
const (
	maxLog   = 64 << 20 // bytes
	maxSteps = 256      // beginnings; after as many without a state that was there before, no more are compared
	maxLooks = 1 << 20  // times in a cycle at which samples are recorded
	maxTold  = 8        // beginnings with which a state is compared to say what is different
)

// addSteps makes the run begin steps, unless they are not requested or its state can never be
// compared.
func (s *Sim) addSteps() error {
	m := s.opts.Memo
	if m == nil || m.Never != "" {
		return nil
	}
	k := &steps{memo: m, epoch: -1}
	for h := range s.hosts {
		stepping, ok := s.hosts[h].host.(Stepping)
		if !ok {
			return fmt.Errorf("sim: %s has no steps", s.name(h))
		}
		k.hosts = append(k.hosts, stepping)
	}
	if err := state.Check(s.roots()...); err != nil {
		m.Never = err.Error()
		var u *state.Uncompared
		if errors.As(err, &u) {
			m.Never = "the state of " + u.Part + " is not compared between steps"
		}
		return nil
	}
	s.steps = k
	return nil
}

// forget forgets all beginnings of steps: the network has changed.
func (k *steps) forget() {
	if k != nil {
		k.log, k.size = nil, 0
	}
}

// begins reports whether a step begins at now, when the timer of a host fires in a network in one
// piece.
func (k *steps) begins(s *Sim, now units.Time, host int) bool {
	if k.hosts[host].Begins() != now || now <= k.epoch {
		return false
	}
	at, ok := k.due(s, now)
	return ok && at == now
}

// due returns when the next step begins, if that can be said. Nothing happens before next. The
// network must have been silent for the delay of a link: so partitions have worked through all that
// was before.
func (k *steps) due(s *Sim, next units.Time) (at units.Time, ok bool) {
	if k == nil || next < k.epoch {
		return 0, false
	}
	held := int64(0)
	for _, p := range s.partitions {
		if held += p.net.Held(); p.posted {
			return 0, false
		}
	}
	if held > 0 {
		return 0, false
	}
	at = units.Never
	for n := range k.hosts {
		i := (k.busy + n) % len(k.hosts)
		if !k.hosts[i].Between() {
			k.busy = i
			return 0, false
		}
		at = min(at, k.hosts[i].Begins())
	}
	since, delay, ok := s.net.Silent()
	return at, ok && at != units.Never && at > k.epoch && at-since >= delay && at < s.nextLook
}

// begin begins a step at an instant, and skips what has been executed before.
func (k *steps) begin(s *Sim, at units.Time) error {
	k.epoch = at
	for _, p := range s.partitions {
		p.queue.Begin(at, 0)
	}
	k.memo.Steps++
	if k.memo.Off != "" {
		return nil
	}
	if k.missed == maxSteps {
		k.forget()
		k.memo.miss(missGivenUp)
		return nil
	}
	k.missed++
	now, err := k.look(s, at)
	if err != nil {
		k.forget()
		k.memo.miss(err.Error())
		return nil
	}
	if n := len(k.log); n > 0 {
		now.number = k.log[n-1].number + 1
	}
	from, times, why := k.find(s, now)
	k.add(s, now)
	if times > 0 && k.memo.Samples != nil {
		if why = k.record(s, at, at-k.log[from].at, times); why != "" {
			times = 0
		}
	}
	if times == 0 {
		k.memo.miss(why)
		return nil
	}
	return k.skip(s, from, times)
}

// record has the next cycle recorded for the samples of those after it. It returns "" if that was
// the cycle before now.
func (k *steps) record(s *Sim, now, took units.Time, times int) (why string) {
	end := k.looked.at + k.looked.took
	switch {
	case k.looked.took == took && now == end:
		k.memo.Samples.Look(now, took)
		return ""
	case now < end:
		return missLook // it is being recorded
	case times < 2:
		return missWork
	}
	at := map[units.Time]bool{0: true}
	k.memo.Samples.Instants(now+took, now+took*units.Time(times), func(t units.Time) {
		if len(at) <= maxLooks {
			at[(t-now)%took] = true
		}
	})
	if len(at) > maxLooks {
		return missSamples
	}
	k.looked.at, k.looked.took, k.looks = now, took, slices.Sorted(maps.Keys(at))
	k.memo.Samples.Begin()
	k.glance(s, now)
	return missLook
}

// glance looks at the run for samples, and schedules the next look.
func (k *steps) glance(s *Sim, now units.Time) {
	k.memo.Samples.Look(now, now-k.looked.at)
	k.looks = k.looks[1:]
	if s.nextRecord = units.Never; len(k.looks) > 0 {
		s.nextRecord = k.looked.at + k.looks[0]
	}
	s.schedule()
}

// look returns the beginning of a step. The error says what there is about the state that cannot be
// compared.
func (k *steps) look(s *Sim, at units.Time) (*begun, error) {
	b := &begun{at: at, where: make([]any, len(k.hosts))}
	for i, h := range k.hosts {
		h.Rest(at)
		b.where[i] = h.Where()
	}
	for _, p := range s.partitions {
		b.events = append(b.events, p.events)
		b.refused += p.refused
	}
	var err error
	b.state, err = state.Capture(at, s.roots()...)
	if err == nil {
		b.bytes = len(b.state.Counts)*8 + len(k.hosts)*48
	}
	return b, err
}

// roots returns what the state of the run consists of.
func (s *Sim) roots() []any {
	e := &engine{}
	all := []any{s.net, e}
	for _, p := range s.partitions[1:] {
		e.totals = append(e.totals, p.net.Totals())
	}
	for i := range s.hosts {
		e.hosts = append(e.hosts, &s.hosts[i].waiting)
		all = append(all, s.hosts[i].host)
	}
	return all
}

// engine is the state of the engine itself.
type engine struct {
	hosts  []*waiting         `state:",timers of hosts"`
	totals []*fabric.Counters `state:"count"` // of all partitions but the first
}

// find returns the latest step that began in the same state as now and after which the same work
// follows, and how often it does; or why there is none.
func (k *steps) find(s *Sim, now *begun) (from, times int, why string) {
	why = missFirst
	least := math.MaxInt
	for i := len(k.log) - 1; i >= 0; i-- {
		b := &k.log[i]
		if now.state.Sum != b.state.Sum {
			if changed := now.state.Changed(b.state); len(k.log)-i <= maxTold && len(changed) < least {
				least, why = len(changed), "another state: "+strings.Join(changed, ", ")
			}
			continue
		}
		took := now.at - b.at
		most := int(min((min(s.nextAction, s.opts.Limit)-1-now.at)/took, math.MaxInt32))
		if why, least = missSoon, 0; b.at < s.opts.From || most < 1 {
			continue
		}
		if why = missRefused; b.refused != now.refused {
			continue
		}
		if why = missRows; slices.ContainsFunc(k.log[i:len(k.log)-1], func(b begun) bool { return b.outside == nil }) {
			continue
		}
		for h := range k.hosts {
			if most = k.hosts[h].Again(b.where[h], b.at, took, most); most == 0 {
				break
			}
		}
		if most > 0 {
			return i, most, ""
		}
		why = missWork
	}
	return 0, 0, why
}

// add appends the beginning of a step to the log.
func (k *steps) add(s *Sim, now *begun) {
	delays, outside := k.measured(s)
	if n := len(k.log); n > 0 {
		k.log[n-1].delays, k.log[n-1].outside = delays, outside
	}
	k.log = append(k.log, *now)
	for k.size += now.bytes; len(k.log) > 1 && (k.size > maxLog || len(k.log) > maxSteps); k.log = k.log[1:] {
		k.size -= k.log[0].bytes
	}
}

// measured returns what was measured since the last call.
func (k *steps) measured(s *Sim) (delays []stats.Delta, outside any) {
	for _, p := range s.partitions {
		delays = append(delays, p.delay.Since(&p.marked))
	}
	return delays, k.memo.Results()
}

// skip moves the run on by a number of cycles from an element of the log to the last.
func (k *steps) skip(s *Sim, from, times int) error {
	last := len(k.log) - 1
	a, b := &k.log[from], &k.log[last]
	took := b.at - a.at
	by := took * units.Time(times)
	cycle := k.log[from:last]
	for i, p := range s.partitions {
		for c := range cycle {
			p.delay.Repeat(cycle[c].delays[i], int64(times))
		}
	}
	outside := make([]any, len(cycle))
	for c := range cycle {
		outside[c] = cycle[c].outside
	}
	k.memo.Repeat(outside, times, took)
	if k.memo.Samples != nil {
		s.nextFrame = k.memo.Samples.Make(b.at, took, times)
	}
	for i, p := range s.partitions {
		p.events += int64(times) * (b.events[i] - a.events[i])
	}
	if err := state.Repeat(a.state, b.state, int64(times), by, s.roots()...); err != nil {
		return err
	}
	for h := range k.hosts {
		if err := k.hosts[h].Skip(a.where[h], times, took); err != nil {
			return err
		}
	}
	k.epoch = b.at + by
	for _, p := range s.partitions {
		p.queue.Begin(k.epoch, by)
	}
	for next, every := range map[*units.Time]units.Time{
		&s.nextStall: s.opts.Stall, &s.nextSample: s.opts.SampleEvery, &s.nextTick: s.opts.TickEvery,
	} {
		if *next <= k.epoch {
			*next += ((k.epoch-*next)/every + 1) * every
		}
	}
	s.schedule()
	k.missed = 0
	skipped := times * (b.number - a.number)
	k.memo.Steps += skipped
	k.memo.Skipped += skipped
	now, err := k.look(s, k.epoch)
	if err != nil {
		return err
	}
	if changed := now.state.Changed(b.state); len(changed) > 0 {
		return fmt.Errorf("sim: skipped steps changed %s", strings.Join(changed, ", "))
	}
	now.number = b.number + skipped
	k.add(s, now)
	k.memo.miss(missWork)
	return nil
}
