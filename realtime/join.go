package realtime

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/results/frames"
	"weft/units"
)

// Member is the process of one part of a network.
type Member struct {
	Name string // for messages
	Conn *control.Conn
}

// Join makes the processes of the parts of a network look like one fabric process to the
// orchestrator at the other end of conn. It forwards each request to the parts that it concerns,
// and merges their answers. Config.Part has the parts; its Me is not used. Join makes the streams
// between parts, unless they are on other machines (far), whose agents make them. It returns an
// error when conn or the connection to a part ends, or when a part has sent nothing for patience
// after the start, and nil after the report. It closes conn.
func Join(conn *control.Conn, members []Member, patience time.Duration, far bool) error {
	connect := pairs
	if far {
		connect = func(n int) ([][]int, error) { return make([][]int, n), nil }
	}
	return (&coordinator{conn: conn, members: members, patience: patience, connect: connect}).join()
}

// ReadyTimes is how long a process may take to be ready once others are, as a multiple of how long
// it may be silent afterwards. Ours: it lays out buffers and may compile a module.
const ReadyTimes = 20

// join implements Join.
func (j *coordinator) join() error {
	defer j.conn.Close()
	j.quit = make(chan struct{})
	defer close(j.quit)
	err := j.run()
	if err != nil && !errors.Is(err, errEnded) {
		_ = j.conn.SendError(err) // the peer may be what failed
	}
	return err
}

// errEnded says that the connection to a part ended. The orchestrator, which started its process,
// reports the reason.
var errEnded = errors.New("its connection ended")

// ended adds the name to err, and errEnded if the connection has ended.
func (m *Member) ended(err error) error {
	switch {
	case err == nil:
		return nil
	case control.Gone(err) || errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%s: %w: %w", m.Name, errEnded, err)
	}
	return fmt.Errorf("%s: %w", m.Name, err)
}

// coordinator is the state of Join.
type coordinator struct {
	conn    *control.Conn
	members []Member
	cfg     Config
	quit    chan struct{} // closed when Join returns
	parts   []partState

	patience time.Duration
	started  bool                         // parts send signs of life
	connect  func(n int) ([][]int, error) // pairs, replaced in tests
}

// partState holds what a part has sent and Join has not forwarded yet.
type partState struct {
	heard   time.Time // of its last message
	alive   *Alive
	frames  []frames.Frame
	samples []Sample
	steps   []fabric.Step
	did     *Did
	state   *State
	report  *Report

	held   int        // rows of samples, frames and steps
	framed units.Time // instant of the last frame
}

// orchestrator is the sender of received.from that is no part.
const orchestrator = -1

// received is a message from a part or from the orchestrator.
type received struct {
	from int // a part, or orchestrator
	m    control.Message
	fds  []int
	err  error
}

func (j *coordinator) run() error {
	if err := j.configure(); err != nil {
		return err
	}
	messages := make(chan received)
	listen := func(from int, conn *control.Conn) {
		for {
			m, fds, err := conn.Recv()
			select {
			case messages <- received{from, m, fds, err}:
			case <-j.quit:
				control.CloseAll(fds)
				return
			}
			if err != nil || from != orchestrator && m.Kind == KindReport {
				return
			}
		}
	}
	go listen(orchestrator, j.conn)
	for k := range j.members {
		go listen(k, j.members[k].Conn)
	}
	tick := time.NewTicker(j.patience / 8)
	defer tick.Stop()
	looked := time.Now()
	for {
		select {
		case n := <-messages:
			over, err := j.take(n)
			if over || err != nil {
				return err
			}
		case <-tick.C:
			now := time.Now() // the tick may have waited
			if err := j.silent(now, max(now.Sub(looked)-j.patience/8, 0)); err != nil {
				return err
			}
			looked = now
		}
	}
}

// silent returns an error if a part has sent nothing for too long. Time by which this process
// itself was late to look does not count.
func (j *coordinator) silent(now time.Time, late time.Duration) error {
	for k := range j.parts {
		s := &j.parts[k]
		s.heard = s.heard.Add(late)
		if !j.started {
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
func (j *coordinator) configure() error {
	if _, err := j.conn.Expect(KindConfigure, &j.cfg); err != nil {
		return err
	}
	p := j.cfg.Part
	if p == nil || len(p.Of) == 0 || int(slices.Max(p.Of)) != len(j.members)-1 {
		return fmt.Errorf("the configuration has no parts for %d processes", len(j.members))
	}
	j.parts = make([]partState, len(j.members))
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
			err = m.Conn.SendValue(KindPeers, make([]Keys, some), fds[:some]...)
			fds = fds[some:]
		}
		if err != nil {
			return m.ended(err)
		}
	}
	limit := ReadyTimes * j.patience
	for _, m := range j.members {
		_ = m.Conn.SetReadDeadline(time.Now().Add(limit))
		if _, err := m.Conn.Expect(KindReady, nil); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%s does not answer: it is not ready after %v; is it stopped?", m.Name, limit)
		} else if err != nil {
			return m.ended(err)
		}
		_ = m.Conn.SetReadDeadline(time.Time{})
	}
	return j.conn.SendValue(KindReady, nil)
}

// pairs makes a stream between each two of n processes. ends has, by process, its ends of the
// streams to the others, in their order.
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
func (j *coordinator) take(n received) (over bool, err error) {
	defer control.CloseAll(n.fds)
	if n.from == orchestrator {
		if n.err != nil {
			return true, fmt.Errorf("the orchestrator is gone: %w", n.err)
		}
		return false, j.request(n.m, n.fds)
	}
	name := j.members[n.from].Name
	j.parts[n.from].heard = time.Now()
	switch {
	case n.err != nil:
		return true, fmt.Errorf("%s: %w: %w", name, errEnded, n.err)
	case n.m.Kind == control.KindError:
		return true, fmt.Errorf("%s: %w", name, n.m.Is("", nil))
	}
	over, err = j.answer(n.m, &j.parts[n.from])
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return over, err
}

// request forwards a request of the orchestrator to the parts that it concerns.
func (j *coordinator) request(m control.Message, fds []int) error {
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
		begins := !j.started
		j.started = m.Kind != KindStop // between stop and report a part sends nothing
		for k, p := range j.members {
			if begins {
				j.parts[k].heard = time.Now()
			}
			j.parts[k].did, j.parts[k].state = nil, nil
			if err := p.ended(p.Conn.Send(m)); err != nil {
				return err
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
	for k := range j.parts {
		j.parts[k].did = &Did{} // the others have nothing to do
	}
	j.parts[one].did = nil
	return j.members[one].ended(j.members[one].Conn.Send(m, fds...))
}

// answer forwards a message of a part. One about the whole network waits until all parts have sent
// theirs, and is merged.
func (j *coordinator) answer(m control.Message, s *partState) (over bool, err error) {
	if most := j.cfg.longest(m.Kind); len(m.Body) > most {
		return false, fmt.Errorf("%q has %d bytes; expected at most %d", clip.Text(m.Kind), len(m.Body), most)
	}
	switch m.Kind {
	case KindAlive:
		s.alive = new(Alive)
		if err := m.Decode(s.alive); err != nil || !j.all(func(s *partState) bool { return s.alive != nil }) {
			return false, err
		}
		until := units.Never
		for k := range j.parts {
			until = min(until, j.parts[k].alive.At)
			j.parts[k].alive = nil
		}
		if err := j.release(until); err != nil {
			return false, err
		}
		return false, j.conn.Send(m)
	case KindSamples:
		return false, hold(m, s, &s.samples, j.cfg.sampleRows)
	case KindFrames:
		return false, hold(m, s, &s.frames, func(f *frames.Frame) (int, bool) { return j.cfg.frameRows(s, f) })
	case KindSteps:
		return false, hold(m, s, &s.steps, j.cfg.stepRows)
	case KindGone:
		if err := j.cfg.checkGone(m); err != nil {
			return false, err
		}
		return false, j.conn.Send(m)
	case KindDid:
		s.did = new(Did)
		if err := m.Decode(s.did); err != nil {
			return false, err
		}
		if j.all(func(s *partState) bool { return s.did != nil }) {
			return false, j.conn.SendValue(KindDid, j.did())
		}
	case KindState:
		s.state = new(State)
		if err := m.Decode(s.state); err != nil {
			return false, err
		}
		if err := j.cfg.checkState(s.state); err != nil {
			return false, err
		}
		if j.all(func(s *partState) bool { return s.state != nil }) {
			return false, j.conn.SendValue(KindState, j.state())
		}
	case KindReport:
		s.report = new(Report)
		if err := m.Decode(s.report); err != nil {
			return false, err
		}
		if err := j.cfg.checkReport(s.report); err != nil {
			return false, err
		}
		if j.all(func(s *partState) bool { return s.report != nil }) {
			if err := j.release(units.Never); err != nil {
				return true, err
			}
			return true, j.conn.SendValue(KindReport, j.report())
		}
	default:
		return false, fmt.Errorf("unexpected message %q", clip.Text(m.Kind))
	}
	return false, nil
}

// all reports whether f is true of every part.
func (j *coordinator) all(f func(*partState) bool) bool {
	for k := range j.parts {
		if !f(&j.parts[k]) {
			return false
		}
	}
	return true
}

// first removes what is due until an instant from each part's list, and returns it ordered by time,
// then by number, then by part. key returns both of an element.
func first[T any](
	j *coordinator, list func(*partState) *[]T, until units.Time, key func(*T) (units.Time, int),
) (all []T) {
	for k := range j.parts {
		l := list(&j.parts[k])
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

// release forwards what parts have recorded until an instant that all have passed, in order of
// time.
func (j *coordinator) release(until units.Time) error {
	samples := first(j, func(s *partState) *[]Sample { return &s.samples }, until,
		func(s *Sample) (units.Time, int) { return s.At, s.Port })
	all := first(j, func(s *partState) *[]frames.Frame { return &s.frames }, until,
		func(f *frames.Frame) (units.Time, int) { return f.At, 0 })
	steps := first(j, func(s *partState) *[]fabric.Step { return &s.steps }, until,
		func(s *fabric.Step) (units.Time, int) { return s.At, 0 })
	for k := range j.parts {
		j.parts[k].recount()
	}
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

// did returns the merged answer of all parts to a request, with each error once.
func (j *coordinator) did() Did {
	var errs []string
	for k := range j.parts {
		if e := clip.Line(j.parts[k].did.Error); e != "" && !slices.Contains(errs, e) {
			errs = append(errs, e)
		}
	}
	return Did{Error: strings.Join(errs, "; ")}
}

// state returns the snapshot of the whole network. Each port and host is as the part sees it that
// owns it; counters are sums.
func (j *coordinator) state() *State {
	whole := *j.parts[0].state
	for k := 1; k < len(j.parts); k++ {
		s := j.parts[k].state
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
		whole.Unreceived += s.Unreceived
		whole.Stalls = append(whole.Stalls, s.Stalls...)
	}
	return &whole
}

// report returns the report on the whole network.
func (j *coordinator) report() *Report {
	for k := range j.parts {
		j.parts[k].report.Stalls[0].Who = j.members[k].Name
	}
	whole := j.parts[0].report
	for k := 1; k < len(j.parts); k++ {
		whole.add(j.parts[k].report)
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
	r.Stalls = append(r.Stalls, o.Stalls...)
	r.Early += o.Early
	r.Unborn += o.Unborn
	r.Halted += o.Halted
	r.Unreceived += o.Unreceived
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
