package realtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/fuzztest"
	"weft/internal/quiettest"
	"weft/results/frames"
	"weft/transport/wire"
	"weft/units"
)

// partCable is a host's end of its cable in a fabric whose clock the test sets.
type partCable struct {
	world *partLab
	host  int
	sent  [][]byte
}

func (c *partCable) Read(b []byte) (n int, again bool, err error) {
	if len(c.sent) == 0 {
		return 0, true, nil
	}
	n = copy(b, c.sent[0])
	c.sent = c.sent[1:]
	return n, false, nil
}

func (c *partCable) Write(frame []byte) (n int, again bool, err error) {
	c.world.landed = append(c.world.landed, fmt.Sprintf("%012d h%d %x", c.world.clock, c.host, frame))
	return len(frame), false, nil
}

// partLab is fabric processes without processes: each carries a part of a network, or one carries
// all of it.
type partLab struct {
	t      testing.TB
	clock  manualClock
	loops  []*loop
	cables []*partCable
	of     []int32
	landed []string
}

// newPartLab returns the fabric of cfg in parts; of nil: in one piece.
func newPartLab(t testing.TB, cfg Config, of []int32) *partLab {
	t.Helper()
	w := &partLab{t: t, clock: 1, of: of}
	count := 1
	if of != nil {
		count = int(slices.Max(of)) + 1
	}
	ends, err := pairs(count)
	if err != nil {
		t.Fatal(err)
	}
	for k := range count {
		if of != nil {
			cfg.Part = &Part{Me: k, Of: of}
		}
		l, err := newLoop(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.poll.Close)
		l.clock, l.scale.Scale = &w.clock, labtime.Scale{T0: 1, Dilation: 1}
		for i, fd := range ends[k] {
			if err := unix.SetNonblock(fd, true); err != nil {
				t.Fatal(err)
			}
			l.part.peers[i].fd = fd
		}
		t.Cleanup(l.part.close)
		l.armScript()
		w.loops = append(w.loops, l)
	}
	for h := range cfg.Hosts {
		c := &partCable{world: w, host: h}
		w.cables = append(w.cables, c)
		w.loop(h).ports[h].cable, w.loop(h).ports[h].burst = c, maxBurst
	}
	return w
}

// loop returns the process that carries the part of a host.
func (w *partLab) loop(h int) *loop {
	if w.of == nil {
		return w.loops[0]
	}
	return w.loops[w.of[h]]
}

// turn is a turn of each loop. It returns the first error.
func (w *partLab) turn() error {
	for _, l := range w.loops {
		l.fire(l.labNow())
		err := l.part.send(l, l.labNow())
		for h := range w.cables {
			if w.loop(h) == l && err == nil {
				err = l.read(fabric.HostID(h))
			}
		}
		for i := range l.part.others() { // the poller says so
			if err == nil {
				err = l.part.peers[i].take(l)
			}
		}
		if l.fail(err); l.err != nil {
			return l.err
		}
	}
	return nil
}

// turns does a turn and ends the test on an error.
func (w *partLab) turns() {
	w.t.Helper()
	if err := w.turn(); err != nil {
		w.t.Fatal(err)
	}
}

// play plays a script of frames and returns what hosts received, and when.
func (w *partLab) play(seed uint64, steps int) []string {
	w.t.Helper()
	script := rand.New(rand.NewPCG(seed, 1))
	for range steps {
		w.clock += 100 // ns: less than the lookahead
		for h := range w.cables {
			if script.IntN(12) == 0 {
				to := script.IntN(len(w.cables))
				w.cables[h].sent = append(w.cables[h].sent, anyFrame(script, h, to, w.loop(h).labNow()))
			}
		}
		w.turns()
	}
	for range 20_000 {
		w.clock += 100
		w.turns()
	}
	slices.Sort(w.landed) // what reaches two hosts at one instant
	return w.landed
}

// anyFrame returns a data packet with some of the features that the network serves, or other
// traffic.
func anyFrame(script *rand.Rand, from, to int, now units.Time) []byte {
	if script.IntN(4) == 0 {
		return udpFrame(addrOf(from), addrOf(to), byte(script.IntN(2))*wire.TOSControl, datagramOf(4321, make([]byte, script.IntN(500))))
	}
	d := wire.Data{
		Flags: wire.Announce, Conn: uint32(from), PSN: script.Uint32(), Payload: 1 + units.Bytes(script.IntN(1200)),
		SentAt: now + units.Time(script.IntN(3))*units.Microsecond, Path: uint16(script.IntN(4)),
	}
	switch d.Size = d.Payload; script.IntN(3) {
	case 0:
		d.Room = 1 + byte(script.IntN(wire.MaxHops))
	case 1:
		d.Coordination = wire.Coordination{On: true, AR: wire.AskSource}
	}
	b := make([]byte, d.Len()+d.Payload)
	d.Encode(b)
	return udpFrame(addrOf(from), addrOf(to), 2, datagramOf(wire.Port, b))
}

// datagramOf returns a UDP datagram.
func datagramOf(port uint16, body []byte) []byte {
	b := make([]byte, udpLen, udpLen+len(body))
	binary.BigEndian.PutUint16(b, port)
	binary.BigEndian.PutUint16(b[2:], port)
	binary.BigEndian.PutUint16(b[udpLengthAt:], uint16(udpLen+len(body)))
	return append(b, body...)
}

// partFeatures is allFeatures with PFC between its switches, or with links between them that
// duplicate and reorder.
func partFeatures(pfc bool) Config {
	cfg := allFeatures(false)
	for _, p := range []int{5, 6, 8, 9} {
		if pfc {
			cfg.Network.Ports[p].PFC[dataClass] = fabric.PFCConfig{On: true, Xoff: 3000, Xon: 1000, Headroom: 20_000}
		} else {
			own, from := &cfg.Network.Ports[p], &cfg.Network.Ports[4]
			own.Duplicate, own.Reorder, own.ReorderBy, own.Jitter = from.Duplicate, from.Reorder, from.ReorderBy, from.Jitter
		}
	}
	return cfg
}

// A fabric in parts gives hosts the same frames at the same instants as in one piece: marks,
// telemetry, pauses, notifications, losses, and what is late or comes twice included.
func TestPartsCarryTheSame(t *testing.T) {
	for seed := range uint64(4) {
		pfc := seed%2 == 0
		cfg := partFeatures(pfc)
		whole := newPartLab(t, cfg, nil)
		want := whole.play(seed, 4000)
		apart := newPartLab(t, cfg, []int32{0, 0, 1, 0, 1})
		got := apart.play(seed, 4000)
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("seed %d: %d: %s\nin one piece %s", seed, i, got[i], want[i])
			}
		}
		if len(got) != len(want) || len(got) < 100 {
			t.Fatalf("seed %d: %d frames, in one piece %d", seed, len(got), len(want))
		}
		var sum fabric.Counters
		crossings := Crossings{}
		for i, l := range apart.loops {
			c := l.net.Counters()
			sum.Add(&c)
			if i == 0 {
				crossings = *l.part.crossings()
			} else {
				crossings.Add(l.part.crossings())
			}
			if err := l.net.CheckConservation(); err != nil {
				t.Error(err)
			}
		}
		if all := whole.loops[0].net.Counters(); sum != all {
			t.Errorf("seed %d: %+v\nin one piece %+v", seed, sum, all)
		}
		if pfc && sum.Pauses == 0 || sum.Marks == 0 || sum.CCM.Notes[fabric.NeedsCC] == 0 || sum.Lost == 0 ||
			sum.Late == 0 || sum.Duplicated == 0 {
			t.Errorf("seed %d: %+v: something did not happen", seed, sum)
		}
		if crossings.Late > 0 || crossings.In.Packets == 0 || crossings.In != crossings.Out {
			t.Errorf("seed %d: %+v", seed, crossings)
		}
	}
}

// Networks that parts cannot carry together are refused with the way out.
func TestPartsRefuse(t *testing.T) {
	down := false
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"a fault of a cut link with PFC": {func(c *Config) {
			c.Changes = []fabric.Change{{Ports: []int{5}, Up: &down}}
		}, "engine.machines 1"},
		"a cut host": {func(c *Config) { c.Part.Of[0] = 1 }, "two switches"},
		"one part":   {func(c *Config) { c.Part.Of = make([]int32, 5) }, "at least two"},
	} {
		cfg := partFeatures(true)
		cfg.Part = &Part{Of: []int32{0, 0, 1, 0, 1}}
		c.change(&cfg)
		if _, err := newLoop(cfg, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// crossing returns the bytes of a frame on its way from one part to another, and the position of
// the frame in them.
func crossing(t testing.TB) (b []byte, frame int) {
	w := newPartLab(t, partFeatures(true), []int32{0, 0, 1, 0, 1})
	sent := anyFrame(rand.New(rand.NewPCG(3, 4)), 0, 2, 0)
	w.cables[0].sent = append(w.cables[0].sent, sent)
	end := w.loops[1].part.peers[0].fd
	b = make([]byte, 4096)
	for range 2000 {
		w.clock += 100
		l := w.loops[0]
		l.fire(l.labNow())
		if err := errors.Join(l.part.send(l, l.labNow()), l.read(0)); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(end, b); err == nil {
			return b[:n], n - len(sent)
		}
	}
	t.Fatal("nothing crossed")
	return nil, 0
}

// forgedTo sends bytes to a part as if another had sent them, and returns what that part says.
func forgedTo(t testing.TB, b []byte) error {
	w := newPartLab(t, partFeatures(true), []int32{0, 0, 1, 0, 1})
	if _, err := unix.Write(w.loops[0].part.peers[0].fd, b); err != nil {
		t.Fatal(err)
	}
	if err := w.loops[1].part.peers[0].take(w.loops[1]); err != nil {
		return err
	}
	for range 30 { // whatever was taken does no harm
		w.clock += 10_000
		if err := w.turn(); err != nil {
			return err
		}
	}
	return nil
}

// What is said about a frame must agree with it.
func TestForgedCrossings(t *testing.T) {
	good, frame := crossing(t)
	if err := forgedTo(t, good); err != nil {
		t.Fatal(err)
	}
	for at := range frame + ethLen + ipMin + udpLen {
		for _, v := range []byte{0, 0xff} {
			b := slices.Clone(good)
			b[at] = v
			_ = forgedTo(t, b)
		}
	}
	b := slices.Clone(good)
	b[frame+ethLen+9] = protoTCP
	if err := forgedTo(t, b); !errors.Is(err, errCrossed) {
		t.Errorf("TCP in a packet of the transport: %v", err)
	}
	if err := forgedTo(t, bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 100)); err == nil {
		t.Error("garbage was taken")
	}
}

// A part whose peer has ended goes on: the orchestrator knows why it ended.
func TestPartOutlivesAPeer(t *testing.T) {
	w := newPartLab(t, partFeatures(true), []int32{0, 0, 1, 0, 1})
	l := w.loops[0]
	w.loops[1].part.close()
	w.loops[1].part.peers[0].fd = -1
	w.loops = w.loops[:1]
	if err := l.poll.Add(l.part.peers[0].fd, l.part.first); err != nil {
		t.Fatal(err)
	}
	w.cables[0].sent = append(w.cables[0].sent, anyFrame(rand.New(rand.NewPCG(3, 4)), 0, 2, 0))
	for range 300 {
		w.clock += 100
		l.fire(l.labNow())
		if err := errors.Join(l.part.send(l, l.labNow()), l.read(0), l.part.peers[0].take(l)); err != nil {
			t.Fatal(err)
		}
	}
	if !l.part.peers[0].gone || l.err != nil {
		t.Error(l.err)
	}
}

// Whatever comes from another part, this one goes on or says that it is wrong.
func FuzzCrossing(f *testing.F) {
	good, _ := crossing(f)
	corpus := fuzztest.New(f)
	corpus.Add(good)
	corpus.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 100_000 {
			t.Skip()
		}
		_ = forgedTo(t, b)
	})
}

// joined starts the processes of a fabric in parts as goroutines, and joins them.
func joined(t *testing.T, cfg Config, of []int32, connect func(int) ([][]int, error)) *lab {
	t.Helper()
	count := int(slices.Max(of)) + 1
	if cfg.Part = &(Part{Of: of}); count == 1 {
		cfg.Part = nil
	}
	l := &lab{t: t, done: make(chan error, 1)}
	ports := make([][]Port, count)
	for h := range cfg.Hosts {
		ports[of[h]] = append(ports[of[h]], l.plug())
	}
	if count == 1 {
		ours, theirs := connected(t)
		l.conn = ours
		go func() {
			l.done <- serve(theirs, ports[0], func() string { return "as it was" })
			theirs.Close()
		}()
		l.send(KindConfigure, cfg)
		l.expect(KindReady, nil)
		return l
	}
	var members []Member
	ended := make(chan error, count)
	for k := range count {
		ours, theirs := connected(t)
		members = append(members, Member{Name: fmt.Sprint("part ", k), Conn: ours})
		go func() {
			ended <- serve(theirs, ports[k], func() string { return "as it was" })
			theirs.Close()
		}()
	}
	ours, theirs := connected(t)
	l.conn = ours
	go func() {
		err := (&coordinator{conn: theirs, members: members, patience: quiettest.Patience, connect: connect}).join()
		for _, m := range members {
			m.Conn.Close()
		}
		for range count {
			err = errors.Join(err, <-ended)
		}
		l.done <- err
	}()
	l.send(KindConfigure, cfg)
	l.expect(KindReady, nil)
	return l
}

// connected returns both ends of a control connection.
func connected(t *testing.T) (ours, theirs *control.Conn) {
	t.Helper()
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	return ours, theirs
}

// fourRacks returns four racks of two hosts and two spines: 100 Gb/s, 1 us, INT and marks.
func fourRacks() fabric.Config {
	const hosts, leaves, spines = 8, 4, 2
	cfg := fabric.Config{Hosts: hosts, Seed: 1}
	out := map[[2]int]int32{}
	link := func(a, b int) {
		for _, ends := range [][2]int{{a, b}, {b, a}} {
			out[ends] = int32(len(cfg.Ports))
			cfg.Ports = append(cfg.Ports, fabric.PortConfig{
				From: fabric.NodeID(ends[0]), To: fabric.NodeID(ends[1]), Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond, Loss: 0.01},
				Buffer: 20_000, ECN: fabric.ECNConfig{On: true, Kmin: 100, Kmax: 3000, Pmax: 1},
			})
		}
	}
	for h := range hosts {
		link(h, hosts+h/2)
	}
	for l := range leaves {
		for s := range spines {
			link(hosts+l, hosts+leaves+s)
		}
	}
	for s := range leaves + spines {
		sw := fabric.SwitchConfig{Seed: uint64(s), Route: make([]int32, hosts)}
		for h := range hosts {
			leaf := hosts + h/2
			var group []int32
			switch {
			case s >= leaves:
				group = []int32{out[[2]int{hosts + s, leaf}]}
			case hosts+s == leaf:
				group = []int32{out[[2]int{leaf, h}]}
			default:
				group = []int32{out[[2]int{hosts + s, hosts + leaves}], out[[2]int{hosts + s, hosts + leaves + 1}]}
			}
			sw.Route[h] = int32(len(sw.Groups))
			sw.Groups = append(sw.Groups, group)
		}
		cfg.Switches = append(cfg.Switches, sw)
	}
	return cfg
}

// rows is a fabric's record of a script of frames, without what depends on real time.
type rows struct {
	Hosts    []string // by host: the frames that it received, in order
	Samples  []Sample
	Frames   []frames.Frame
	Counters fabric.Counters
	Ports    []fabric.PortCounters
}

// replay has a fabric carry a script of frames, each with its departure, and returns what it
// recorded. connect joins its parts. The error says what was late, because of which other frames
// were carried than the script has.
func replay(t *testing.T, of []int32, dilation float64, connect func(int) ([][]int, error)) (all rows, r Report, err error) {
	t.Helper()
	const until = 200 * units.Microsecond
	cfg := Config{Network: fourRacks(), Dilation: dilation, Ahead: units.Millisecond, Sample: 5 * units.Microsecond,
		Frames: frames.Schedule{Every: 10 * units.Microsecond}}
	for h := range cfg.Network.Hosts {
		cfg.Hosts = append(cfg.Hosts, addrOf(h))
	}
	was := runtime.GOMAXPROCS(16) // a loop that waits keeps its processor
	defer runtime.GOMAXPROCS(was)
	l := joined(t, cfg, of, connect)
	script := rand.New(rand.NewPCG(5, 6))
	l.t0 = clock.Monotonic() + int64(300*time.Millisecond)
	l.send(KindStart, Start{T0: l.t0})
	l.settle()
	hosts := len(l.hosts)
	for h := range hosts {
		at := units.Microsecond
		for i := range 80 {
			at += units.Time(script.IntN(2000)) * units.Nanosecond
			d := wire.Data{Flags: wire.Announce, Conn: uint32(h), PSN: uint32(i), Payload: 1400, Size: 1400, SentAt: at, Room: 5}
			b := make([]byte, d.Len()+d.Payload)
			d.Encode(b)
			l.write(h, udpFrame(addrOf(h), addrOf((h+1+script.IntN(hosts-1))%hosts), 2, datagramOf(wire.Port, b)))
		}
	}
	// the script takes this long
	time.Sleep(time.Duration(labtime.Scale{T0: l.t0, Dilation: dilation}.Mono(until) - clock.Monotonic()))
	l.send(KindStop, nil)
	for r.Ports == nil {
		m, err := l.next()
		switch {
		case err != nil:
		case m.Kind == KindFrames:
			err = control.With(m, func(f *[]frames.Frame) error { all.Frames = append(all.Frames, *f...); return nil })
		case m.Kind == KindSamples:
			err = control.With(m, func(s *[]Sample) error { all.Samples = append(all.Samples, *s...); return nil })
		default:
			err = m.Is(KindReport, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-l.done; err != nil {
		t.Fatal(err)
	}
	for _, fd := range l.hosts {
		text, b := "", make([]byte, 1<<16)
		for {
			n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
			if err != nil {
				break
			}
			text += fmt.Sprintf("%x\n", b[:n])
		}
		all.Hosts = append(all.Hosts, text)
	}
	after := func(at units.Time) bool { return at > until*9/10 } // by when all is quiet
	all.Samples = slices.DeleteFunc(all.Samples, func(s Sample) bool { return after(s.At) })
	all.Frames = slices.DeleteFunc(all.Frames, func(f frames.Frame) bool { return after(f.At) })
	all.Counters, all.Ports = r.Network, r.Ports
	if r.Broken != "" || r.Early > 0 || r.Refused > 0 || r.Network.Marks == 0 {
		t.Fatalf("broken %q, %d early, %d refused, %+v", r.Broken, r.Early, r.Refused, r.Network)
	}
	if late := r.Departure.Quantile(1); late > 0 || r.Network.Injected < 600 {
		err = fmt.Errorf("%d frames were carried, the latest %v after its departure", r.Network.Injected, late)
	}
	return all, r, err
}

// A script of frames gives the same rows in four processes as in one, while nothing crosses late;
// and what crosses late is counted.
func TestReplayInParts(t *testing.T) {
	times, dilation := 1, 5000.0
	if os.Getenv("WEFT_TEST") == "all" {
		times, dilation = 30, 10_000
	}
	of, err := ptr(fourRacks()).Cut(4)
	if err != nil {
		t.Fatal(err)
	}
	var want rows
	quiettest.Check(t, 3, func() error {
		want, _, err = replay(t, make([]int32, len(of)), dilation, nil)
		return err
	})
	late := int64(0)
	for range times {
		quiettest.Check(t, 3, func() error {
			got, r, err := replay(t, of, dilation, pairs)
			if err != nil {
				return err
			}
			if r.Crossings == nil || r.Crossings.In.Packets == 0 || r.Crossings.In != r.Crossings.Out {
				t.Fatalf("%+v", r.Crossings)
			}
			if late = r.Crossings.Late; late > 0 {
				return fmt.Errorf("%d of %d crossings are late", late, r.Crossings.Lateness.Count())
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("nothing was late, and\n%+v\nin one piece\n%+v", got, want)
			}
			return nil
		})
	}
}

// slowPairs is pairs whose streams take 2 ms.
func slowPairs(n int) ([][]int, error) {
	ends, err := pairs(n)
	for a := range ends {
		for i, fd := range ends[a] {
			near, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ends, err
			}
			ends[a][i] = near[0]
			go slowly(near[1], fd)
		}
	}
	return ends, err
}

// slowly carries what comes from a descriptor to another 1 ms later, and the other way.
func slowly(a, b int) {
	carry := func(from, to int) {
		type piece struct {
			due  time.Time
			text []byte
		}
		pieces := make(chan piece, 10_000)
		go func() {
			defer close(pieces)
			for {
				text := make([]byte, 1<<16)
				n, err := unix.Read(from, text)
				if n <= 0 && err != unix.EINTR {
					return
				}
				pieces <- piece{time.Now().Add(time.Millisecond), text[:max(0, n)]}
			}
		}()
		for p := range pieces {
			// this is the delay under test
			time.Sleep(time.Until(p.due))
			for len(p.text) > 0 {
				n, err := unix.SendmsgN(to, p.text, nil, nil, unix.MSG_NOSIGNAL)
				if err != nil {
					break
				}
				p.text = p.text[n:]
			}
		}
		_ = unix.Shutdown(to, unix.SHUT_WR)
	}
	go carry(a, b)
	carry(b, a)
}

// What takes 2 ms from one part to another is late at a dilation of 1000, by more than an ok run
// may be: one in a hundred crossings.
func TestSlowCrossingsAreCounted(t *testing.T) {
	of, err := ptr(fourRacks()).Cut(4)
	if err != nil {
		t.Fatal(err)
	}
	_, r, _ := replay(t, of, 1000, slowPairs) // later frames change no more than which are late
	if c := r.Crossings; c.Late*10 < c.Lateness.Count() || c.Lateness.Quantile(0.99) < 500*units.Nanosecond {
		t.Errorf("%d of %d are late, p99 %v", c.Late, c.Lateness.Count(), c.Lateness.Quantile(0.99))
	}
}

func ptr[T any](v T) *T { return &v }

// Whatever is asked of a part whose process has ended, the error has its name and says that the
// connection ended, so that the orchestrator looks for the cause.
func TestRequestToAPartThatIsGone(t *testing.T) {
	here, _ := connected(t)
	gone, theirs := connected(t)
	theirs.Close()
	cfg := partFeatures(true)
	cfg.Part = &Part{Of: []int32{0, 0, 1, 0, 1}}
	for kind, body := range map[string]any{
		KindStart: Start{}, KindLook: nil, KindHalt: Halt{Host: 2}, KindPlug: Plug{Host: 2},
		KindCapture: Capture{Host: 2, Port: -1}, KindChange: fabric.Change{}, KindStop: nil,
	} {
		j := &coordinator{cfg: cfg, members: []Member{{"m1", here}, {"m2", gone}}, parts: make([]partState, 2)}
		m, err := control.Encode(kind, body)
		if err == nil {
			err = j.request(m, nil)
		}
		if !errors.Is(err, errEnded) || !strings.HasPrefix(err.Error(), "m2: ") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A part that has not spoken yet when lab time begins is not silent.
func TestPartsAreHeardFromTheStart(t *testing.T) {
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	j := &coordinator{members: []Member{{"m1", ours}}, parts: make([]partState, 1), patience: time.Second}
	if err := j.request(control.Message{Kind: KindStart}, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.silent(time.Now(), 0); err != nil {
		t.Error(err)
	}
	if err := j.silent(time.Now().Add(2*time.Second), 1500*time.Millisecond); err != nil {
		t.Errorf("the part is blamed for what was not read: %v", err)
	}
	if err := j.silent(time.Now().Add(3*time.Second), 0); err == nil {
		t.Error("a part that says nothing is not named")
	}
}

// A process that sleeps as long as it may still leaves three quarters of the slack to what crosses,
// also if nothing else happens in the network.
func TestCrossingsKeepTheirSlack(t *testing.T) {
	cfg, of := partFeatures(true), []int32{0, 0, 1, 0, 1}
	w := newPartLab(t, cfg, of)
	draw := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		from, to := w.loops[0], w.loops[1]
		frame := anyFrame(draw, 0, 2, from.labNow())
		for len(frame) < 60 { // and 4 of the check sequence
			frame = anyFrame(draw, 0, 2, from.labNow())
		}
		w.cables[0].sent = append(w.cables[0].sent, frame)
		from.fire(from.labNow())
		if err := errors.Join(from.part.send(from, from.labNow()), from.read(0)); err != nil {
			t.Fatal(err)
		}
		for end := w.clock + 50_000; w.clock < end; {
			w.clock = max(w.clock+1, manualClock(min(from.scale.Mono(from.nextDelivery()), int64(end))))
			from.fire(from.labNow())
			if err := errors.Join(from.part.send(from, from.labNow()), to.part.peers[0].take(to)); err != nil {
				t.Fatal(err)
			}
		}
		to.fire(to.labNow())
	}
	c := w.loops[1].part.crossings()
	if least := cfg.Network.Slack(of) * 3 / 4; c.Slack.Count() < 25 || c.Slack.Quantile(0) < least || c.Late > 0 {
		t.Errorf("%d crossings, %d late; one had %v left, want at least %v", c.Slack.Count(), c.Late, c.Slack.Quantile(0), least)
	}
}

// A look at a stream on which nothing has come costs no memory: the process collects no garbage.
func TestLookAtAnEmptyStream(t *testing.T) {
	ends, err := pairs(2)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0][0])
	defer unix.Close(ends[1][0])
	if err := unix.SetNonblock(ends[0][0], true); err != nil {
		t.Fatal(err)
	}
	half, _ := sealPair(t)
	half.raw = []byte{0} // the beginning of a record
	for name, q := range map[string]*peer{"open": {fd: ends[0][0]}, "sealed": {fd: ends[0][0], seal: half}} {
		if n := testing.AllocsPerRun(100, func() {
			if err := q.take(nil); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
