package realtime

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/bypass"
	"weft/internal/clock"
	"weft/internal/quiettest"
	"weft/internal/rings"
	"weft/transport/wire"
	"weft/units"
)

// agentEnd is the agent's end of a bypass NIC.
type agentEnd struct {
	out    *rings.Producer
	in     *rings.Consumer
	region []byte
	bell   *bypass.Bell
}

// newNICs returns bypass NICs for hosts that one process drives: the ends of their agents, and the
// files for the fabric process.
func newNICs(t *testing.T, hosts, frame int) (ends []agentEnd, files []*os.File) {
	t.Helper()
	layout, err := rings.For(frame)
	if err != nil {
		t.Fatal(err)
	}
	open := func(f *os.File) int {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	for range hosts {
		f, err := bypass.Create("test", layout.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		region, err := bypass.Map(open(f), layout.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { bypass.Unmap(region) })
		out, err := rings.NewProducer(layout, region, 0)
		if err != nil {
			t.Fatal(err)
		}
		in, err := rings.NewConsumer(layout, region, 1)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, agentEnd{out: out, in: in, region: region})
	}
	bell, err := bypass.NewBell()
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, bell[:]...)
	mine, err := bypass.OpenBell([]int{open(bell[0]), open(bell[1]), open(bell[2])}, bypass.Node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mine.Close)
	for i := range ends {
		ends[i].bell = mine
	}
	return ends, files
}

// nicLab starts a fabric process whose two hosts have bypass NICs.
func nicLab(t *testing.T, dilation float64) (*lab, []agentEnd) {
	t.Helper()
	const frame = 2000
	ends, files := newNICs(t, 2, frame)
	cfg := Config{
		Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, MaxFrame: frame,
		NICs: &NICs{Bells: 1, Bell: []int{0, 0}},
	}
	l := startLabWith(t, cfg, files)
	for _, f := range files {
		f.Close()
	}
	return l, ends
}

// send sends a frame through the NIC.
func (e *agentEnd) send(t *testing.T, frame []byte) {
	t.Helper()
	memory, err := e.out.Slot()
	if err != nil || memory == nil {
		t.Fatalf("no slot: %v", err)
	}
	e.out.Push(copy(memory, frame), 0, 0)
	e.bell.Ring(0)
}

// next waits for a frame from the NIC and returns a copy.
func (e *agentEnd) next(t *testing.T) (f rings.Frame) {
	t.Helper()
	for end := time.Now().Add(quiettest.Patience); ; {
		f, ok, err := e.in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			f.Bytes = append([]byte(nil), f.Bytes...)
			e.in.Release()
			return f
		}
		if time.Now().After(end) {
			t.Fatal("nothing came through the NIC")
		}
		time.Sleep(100 * time.Microsecond) // memory has no event to wait for
	}
}

// toAgent returns a frame to Weft's port, of 1000 bytes on the wire.
func toAgent(from, to int) []byte {
	body := make([]byte, 1000-ethLen-ipMin-fcsLen)
	body[2], body[3] = byte(wire.Port>>8), byte(wire.Port&0xff)
	body[udpLengthAt], body[udpLengthAt+1] = byte(len(body)>>8), byte(len(body)&0xff)
	return udpFrame(addrOf(from), addrOf(to), 0, body)
}

// What is for agents arrives in their NICs, stamped with its instant in the model, wherever it came
// from. Everything else arrives at the interface.
func TestNIC(t *testing.T) {
	const dilation = 1000
	l, ends := nicLab(t, dilation)
	scale := l.begin(dilation)
	transit := 3600 * units.Nanosecond // two links of 1 us, and 0.8 us to put 1000 bytes on each
	before := scale.Lab(clock.Monotonic())
	ends[0].send(t, toAgent(0, 1))
	f := ends[1].next(t)
	after := scale.Lab(clock.Monotonic())
	if at := units.Time(f.At); at < before+transit || at > after {
		t.Errorf("stamped %d, sent after %d and received before %d", at, before, after)
	}
	if written := scale.Lab(f.Written); written < units.Time(f.At) || written > after {
		t.Errorf("stamped %d, written at %d, received before %d", f.At, written, after)
	}
	if len(f.Bytes) != 1000-fcsLen {
		t.Errorf("%d bytes", len(f.Bytes))
	}
	l.write(1, toAgent(1, 0)) // from a program
	ends[0].next(t)
	other := udpFrame(addrOf(0), addrOf(1), 0, []byte("for a program of the host"))
	ends[0].send(t, other)
	if got := l.read(1); len(got) != len(other) {
		t.Errorf("%d bytes came, want %d", len(got), len(other))
	}
	r := l.finish()
	if r.Network.Delivered != 3 || r.Refused != 0 || r.Broken != "" || r.Delivery.Count() != 3 {
		t.Errorf("%+v", r)
	}
}

// A host whose agent breaks the rules is shut out, with the reason. The others do not notice.
func TestNICLies(t *testing.T) {
	for name, lie := range map[string]struct {
		do   func(*agentEnd)
		want string
	}{
		"a long frame":       {func(e *agentEnd) { e.out.Push(2000+64, 0, 0) }, "of 2064 bytes"},
		"longer than frames": {func(e *agentEnd) { e.out.Push(2001, 0, 0) }, "up to 2000"},
		"garbage": {func(e *agentEnd) {
			for i := range e.region {
				e.region[i] = 0xa5
			}
		}, "broke the rules of its rings"},
	} {
		t.Run(name, func(t *testing.T) {
			l, ends := nicLab(t, 1)
			l.begin(1)
			if _, err := ends[0].out.Slot(); err != nil {
				t.Fatal(err)
			}
			lie.do(&ends[0])
			ends[0].bell.Ring(0)
			var gone Gone
			l.expect(KindGone, &gone)
			if gone.Host != 0 || !strings.Contains(gone.Why, lie.want) {
				t.Errorf("%+v, want %q", gone, lie.want)
			}
			l.write(0, toAgent(0, 1)) // not even through its interface
			ends[1].send(t, toAgent(1, 0))
			ends[1].send(t, udpFrame(addrOf(1), addrOf(0), 0, []byte("to a program")))
			l.settle()
			if r := l.finish(); r.Network.Injected != 2 || r.Refused != 0 || r.Broken != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// An agent that writes at random into its memory, for as long as it is looked at, harms nobody.
func TestNICGarbage(t *testing.T) {
	for seed := range uint64(20) {
		l, ends := nicLab(t, 1)
		l.begin(1)
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 200 {
			at := rng.IntN(len(ends[0].region) / 8)
			if rng.IntN(2) == 0 {
				at = rng.IntN(600) // indices and descriptors
			}
			for i := range 8 {
				if b := rng.Uint32(); b&7 == 0 {
					ends[0].region[8*at+i] = byte(b >> 8)
				}
			}
			if memory, err := ends[0].out.Slot(); err == nil && memory != nil {
				ends[0].out.Push(rng.IntN(2100), rng.Int64(), rng.Int64())
			} else if err != nil && !errors.Is(err, rings.ErrLie) {
				t.Fatal(err)
			}
			ends[0].bell.Ring(0)
		}
		ends[1].send(t, toAgent(1, 0))
		l.send(KindLook, nil)
		for m, err := l.next(); m.Kind != KindState; m, err = l.next() {
			if err != nil || m.Kind != KindGone {
				t.Fatalf("seed %d: %q, %v", seed, m.Kind, err)
			}
		}
		l.send(KindStop, nil)
		var r Report
		m, err := l.next()
		for err == nil && m.Kind == KindGone {
			m, err = l.next()
		}
		if err == nil {
			err = m.Is(KindReport, &r)
		}
		if err != nil || r.Broken != "" {
			t.Fatalf("seed %d: %q, %v, %s", seed, m.Kind, err, r.Broken)
		}
		<-l.done
	}
}
