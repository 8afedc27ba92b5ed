package realtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/control"
	"weft/results/frames"
	"weft/units"
)

// Member is the process of one part of a network.
type Member struct {
	Name string // for messages
	Conn *control.Conn
}

// Join is a fabric process to the orchestrator at the other end of conn, and the orchestrator to
// the processes of the parts of a network. It passes on what it is told to the parts that it
// concerns, and makes one answer of theirs. Config.Part has the parts; its Me is not used. Join
// makes the streams between parts, unless they are on other machines (far), where somebody else
// does. It returns when conn or the connection to a part ends, when a part has said nothing for
// patience after the start, and after the report; it closes conn.
func Join(conn *control.Conn, members []Member, patience time.Duration, far bool) error {
	connect := pairs
	if far {
		connect = func(n int) ([][]int, error) { return make([][]int, n), nil }
	}
	return (&joint{conn: conn, members: members, patience: patience, connect: connect}).join()
}

// join implements Join.
func (j *joint) join() error {
	defer j.conn.Close()
	j.quit = make(chan struct{})
	defer close(j.quit)
	err := j.run()
	if err != nil && !errors.Is(err, errEnded) {
		_ = j.conn.SendError(err) // the peer may be what failed
	}
	return err
}

// errEnded says that the connection to a part ended. Whoever started its process knows more about
// it.
var errEnded = errors.New("its connection ended")

// joint is the state of Join.
type joint struct {
	conn    *control.Conn
	members []Member
	cfg     Config
	quit    chan struct{}
	said    []partSaid // by part

	patience time.Duration
	started  bool
	connect  func(n int) ([][]int, error) // pairs, replaced in tests
}

// partSaid is what a part has said and has not been passed on.
type partSaid struct {
	heard   time.Time // when it last said something
	alive   *Alive
	frames  []frames.Frame
	samples []Sample
	steps   []fabric.Step
	did     *Did
	state   *State
	report  *Report
}

// orchestrated marks what the orchestrator says among what parts say.
const orchestrated = -1

// heard is a message from a part or from the orchestrator.
type heard struct {
	from int
	m    control.Message
	fds  []int
	err  error
}

func (j *joint) run() error {
	if err := j.configure(); err != nil {
		return err
	}
	news := make(chan heard)
	listen := func(from int, conn *control.Conn) {
		for {
			m, fds, err := conn.Recv()
			select {
			case news <- heard{from, m, fds, err}:
			case <-j.quit:
				control.CloseAll(fds)
				return
			}
			if err != nil || from != orchestrated && m.Kind == KindReport {
				return
			}
		}
	}
	go listen(orchestrated, j.conn)
	for k := range j.members {
		go listen(k, j.members[k].Conn)
	}
	tick := time.NewTicker(j.patience / 8)
	defer tick.Stop()
	looked := time.Now()
	for {
		select {
		case n := <-news:
			over, err := j.take(n)
			if over || err != nil {
				return err
			}
		case now := <-tick.C:
			if err := j.silent(now, now.Sub(looked) > j.patience/2); err != nil {
				return err
			}
			looked = now
		}
	}
}

// silent returns an error if a part has said nothing for too long. stood says that this process
// itself did not run: that time does not count.
func (j *joint) silent(now time.Time, stood bool) error {
	for k := range j.said {
		s := &j.said[k]
		if stood || !j.started {
			s.heard = now
		}
		if quiet := now.Sub(s.heard); quiet > j.patience && s.report == nil {
			return fmt.Errorf("%s does not answer: it has sent nothing for %.1f s; is it stopped?", j.members[k].Name,
				quiet.Seconds())
		}
	}
	return nil
}

// configure gives every part its configuration and the streams to the others, and waits until all
// are ready.
func (j *joint) configure() error {
	if _, err := j.conn.Expect(KindConfigure, &j.cfg); err != nil {
		return err
	}
	p := j.cfg.Part
	if p == nil || len(p.Of) == 0 || int(slices.Max(p.Of)) != len(j.members)-1 {
		return fmt.Errorf("parts for %d processes were expected", len(j.members))
	}
	j.said = make([]partSaid, len(j.members))
	streams, err := j.connect(len(j.members))
	defer func() {
		for _, s := range streams {
			control.CloseAll(s)
		}
	}()
	if err != nil {
		return err
	}
	for k, m := range j.members {
		cfg := j.cfg
		cfg.Part = &Part{Me: k, Of: p.Of}
		err := m.Conn.SendValue(KindConfigure, cfg)
		for fds := streams[k]; err == nil && len(fds) > 0; {
			some := min(len(fds), control.MaxFDs)
			err = m.Conn.SendValue(KindPeers, nil, fds[:some]...)
			fds = fds[some:]
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	for _, m := range j.members {
		if _, err := m.Conn.Expect(KindReady, nil); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return j.conn.SendValue(KindReady, nil)
}

// pairs returns a stream between each two of n processes: by process, the ends of the streams to
// the others, in their order.
func pairs(n int) (ends [][]int, err error) {
	ends = make([][]int, n)
	for a := range n {
		for b := a + 1; b < n; b++ {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ends, os.NewSyscallError("socketpair", err)
			}
			ends[a], ends[b] = append(ends[a], fds[0]), append(ends[b], fds[1])
		}
	}
	return ends, nil
}

// take handles a message. over says that it was the last.
func (j *joint) take(n heard) (over bool, err error) {
	defer control.CloseAll(n.fds)
	if n.from == orchestrated {
		if n.err != nil {
			return true, fmt.Errorf("the orchestrator is gone: %w", n.err)
		}
		return false, j.ask(n.m, n.fds)
	}
	name := j.members[n.from].Name
	j.said[n.from].heard = time.Now()
	switch {
	case n.err != nil:
		return true, fmt.Errorf("%s: %w: %w", name, errEnded, n.err)
	case n.m.Kind == control.KindError:
		return true, fmt.Errorf("%s: %w", name, n.m.Is("", nil))
	}
	over, err = j.tell(n.m, &j.said[n.from])
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return over, err
}

// ask passes a request on to the parts that it concerns.
func (j *joint) ask(m control.Message, fds []int) error {
	host := func(h int) (part int, err error) {
		if h < 0 || h >= len(j.cfg.Hosts) {
			return 0, fmt.Errorf("host %d of %d", h, len(j.cfg.Hosts))
		}
		return int(j.cfg.Part.Of[h]), nil
	}
	var one int
	var err error
	switch m.Kind {
	case KindStart, KindStop, KindChange, KindLook:
		j.started = m.Kind != KindStop // a part says nothing more before its report
		for k, p := range j.members {
			j.said[k].did, j.said[k].state = nil, nil
			if err := p.Conn.Send(m); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	case KindHalt:
		var h Halt
		if err = m.Decode(&h); err == nil {
			one, err = host(h.Host)
		}
	case KindPlug:
		var p Plug
		if err = m.Decode(&p); err == nil {
			one, err = host(p.Host)
		}
	case KindCapture:
		var c Capture
		if err = m.Decode(&c); err != nil {
			break
		}
		if c.Port >= 0 && c.Port < len(j.cfg.Network.Ports) {
			one = int(j.cfg.Part.Of[j.cfg.Network.Ports[c.Port].From])
		} else {
			one, err = host(c.Host)
		}
	default:
		err = fmt.Errorf("unexpected message %q from the orchestrator", m.Kind)
	}
	if err != nil {
		return err
	}
	for k := range j.said {
		j.said[k].did = &Did{} // the others have nothing to do
	}
	j.said[one].did = nil
	return j.members[one].Conn.Send(m, fds...)
}

// tell passes on what a part says, once all have said it if it is about the whole network.
func (j *joint) tell(m control.Message, s *partSaid) (over bool, err error) {
	switch m.Kind {
	case KindAlive:
		s.alive = new(Alive)
		if err := m.Decode(s.alive); err != nil || !j.all(func(s *partSaid) bool { return s.alive != nil }) {
			return false, err
		}
		until := units.Never
		for k := range j.said {
			until = min(until, j.said[k].alive.At)
			j.said[k].alive = nil
		}
		if err := j.release(until); err != nil {
			return false, err
		}
		return false, j.conn.Send(m)
	case KindSamples:
		return false, decodeMore(m, &s.samples)
	case KindFrames:
		return false, decodeMore(m, &s.frames)
	case KindSteps:
		return false, decodeMore(m, &s.steps)
	case KindGone:
		return false, j.conn.Send(m)
	case KindDid:
		s.did = new(Did)
		if err := m.Decode(s.did); err != nil {
			return false, err
		}
		if j.all(func(s *partSaid) bool { return s.did != nil }) {
			return false, j.conn.SendValue(KindDid, j.did())
		}
	case KindState:
		s.state = new(State)
		if err := m.Decode(s.state); err != nil {
			return false, err
		}
		if j.all(func(s *partSaid) bool { return s.state != nil }) {
			return false, j.conn.SendValue(KindState, j.state())
		}
	case KindReport:
		s.report = new(Report)
		if err := m.Decode(s.report); err != nil {
			return false, err
		}
		if j.all(func(s *partSaid) bool { return s.report != nil }) {
			if err := j.release(units.Never); err != nil {
				return true, err
			}
			return true, j.conn.SendValue(KindReport, j.report())
		}
	default:
		return false, fmt.Errorf("unexpected message %q", m.Kind)
	}
	return false, nil
}

// all reports whether f is true of every part.
func (j *joint) all(f func(*partSaid) bool) bool {
	for k := range j.said {
		if !f(&j.said[k]) {
			return false
		}
	}
	return true
}

// decodeMore appends what a message has to all.
func decodeMore[T any](m control.Message, all *[]T) error {
	var more []T
	err := m.Decode(&more)
	*all = append(*all, more...)
	return err
}

// first removes what is due until an instant from each part's list, and returns it ordered by time,
// then by number, then by part. key returns both of an element.
func first[T any](j *joint, list func(*partSaid) *[]T, until units.Time, key func(*T) (units.Time, int)) (all []T) {
	for k := range j.said {
		l := list(&j.said[k])
		n := 0
		for ; n < len(*l); n++ {
			if at, _ := key(&(*l)[n]); at > until {
				break
			}
		}
		all = append(all, (*l)[:n]...)
		*l = slices.Delete(*l, 0, n)
	}
	slices.SortStableFunc(all, func(a, b T) int {
		at, number := key(&a)
		then, other := key(&b)
		return cmp.Or(cmp.Compare(at, then), cmp.Compare(number, other))
	})
	return all
}

// release passes on what parts have recorded until an instant that all have passed, in order of
// time.
func (j *joint) release(until units.Time) error {
	samples := first(j, func(s *partSaid) *[]Sample { return &s.samples }, until,
		func(s *Sample) (units.Time, int) { return s.At, s.Port })
	all := first(j, func(s *partSaid) *[]frames.Frame { return &s.frames }, until,
		func(f *frames.Frame) (units.Time, int) { return f.At, 0 })
	steps := first(j, func(s *partSaid) *[]fabric.Step { return &s.steps }, until,
		func(s *fabric.Step) (units.Time, int) { return s.At, 0 })
	return errors.Join(sendChunks(j.conn, KindSamples, samples), sendChunks(j.conn, KindFrames, joinFrames(all)),
		sendChunks(j.conn, KindSteps, steps))
}

// sendChunks sends a list in messages of a bounded size.
func sendChunks[T any](conn *control.Conn, kind string, all []T) error {
	for some := range slices.Chunk(all, 1000) {
		if err := conn.SendValue(kind, some); err != nil {
			return err
		}
	}
	return nil
}

// joinFrames makes one frame of those of one instant.
func joinFrames(parts []frames.Frame) (all []frames.Frame) {
	for _, f := range parts {
		if n := len(all); n == 0 || all[n-1].At != f.At {
			all = append(all, f)
			continue
		}
		last := &all[len(all)-1]
		last.Ports = append(last.Ports, f.Ports...)
		slices.SortFunc(last.Ports, func(a, b frames.Port) int { return cmp.Compare(a.Port, b.Port) })
	}
	return all
}

// did returns the answer of all parts to a request: each error once.
func (j *joint) did() Did {
	var errs []string
	for k := range j.said {
		if e := j.said[k].did.Error; e != "" && !slices.Contains(errs, e) {
			errs = append(errs, e)
		}
	}
	return Did{Error: strings.Join(errs, "; ")}
}

// state returns the snapshot of the whole network. Each port and host is as the part sees it that
// owns it; counters are sums.
func (j *joint) state() *State {
	whole := *j.said[0].state
	for k := 1; k < len(j.said); k++ {
		s := j.said[k].state
		whole.At = max(whole.At, s.At)
		whole.Network.Add(&s.Network)
		for i := range min(len(whole.Ports), len(s.Ports)) {
			sum := &whole.Ports[i].Counters
			sum.Add(&s.Ports[i].Counters)
			if int(j.cfg.Part.Of[j.cfg.Network.Ports[i].From]) == k {
				counters := *sum
				whole.Ports[i] = s.Ports[i]
				whole.Ports[i].Counters = counters
			}
		}
		for h := range min(len(whole.Hosts), len(s.Hosts)) {
			if int(j.cfg.Part.Of[h]) == k {
				whole.Hosts[h] = s.Hosts[h]
			}
		}
		whole.Waiting = append(whole.Waiting, s.Waiting...)
		whole.Refused += s.Refused
		whole.Halted += s.Halted
	}
	return &whole
}

// report returns the report on the whole network.
func (j *joint) report() *Report {
	whole := j.said[0].report
	for k := 1; k < len(j.said); k++ {
		whole.add(j.said[k].report)
	}
	if c := whole.Crossings; whole.Broken == "" && c.In.Packets > c.Out.Packets {
		whole.Broken = fmt.Sprintf("%d packets left parts of the network for others, which received %d", c.Out.Packets,
			c.In.Packets)
	}
	return whole
}

// add adds the report of another part.
func (r *Report) add(o *Report) {
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.Network.Add(&o.Network)
	for i := range min(len(r.Ports), len(o.Ports)) {
		r.Ports[i].Add(&o.Ports[i])
	}
	r.Delivery.Merge(o.Delivery)
	r.Departure.Merge(o.Departure)
	r.QueueDelay.Merge(o.QueueDelay)
	r.Refused += o.Refused
	for h := range min(len(r.Refusals), len(o.Refusals)) {
		r.Refusals[h].Add(o.Refusals[h])
	}
	addAll(r.Beside, o.Beside)
	addAll(r.Answers, o.Answers)
	r.Early += o.Early
	r.Halted += o.Halted
	r.ARP += o.ARP
	r.Backlog = max(r.Backlog, o.Backlog)
	if r.Bridges != nil && o.Bridges != nil {
		r.Bridges.Add(*o.Bridges)
	}
	r.Uncaptured += o.Uncaptured
	r.Crossings.Add(o.Crossings)
	r.MaxNIC = max(r.MaxNIC, o.MaxNIC)
	r.CPU += o.CPU
	if o.Scheduler != r.Scheduler {
		r.Scheduler += ", " + o.Scheduler
	}
	if r.Broken == "" {
		r.Broken = o.Broken
	}
}

func addAll(sums, more []int64) {
	for i := range min(len(sums), len(more)) {
		sums[i] += more[i]
	}
}
