package ccm

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/units"
)

const us = units.Microsecond

var link = cc.Link{
	Line: 100 * units.Gbps, MTU: 4096, Packet: 4202, Baseline: 4 * us, BaseRTT: 8 * us, NetRTT: 8 * us, Hops: 4,
}

func innerParams() Params {
	d := params.Defaults[dcqcn.Params]()
	return Params{DCQCN: &d, Timeout: units.Millisecond, Paths: 1, LastResort: Untagged}
}

func tell(t *testing.T, s *Sender, now units.Time, kind cc.NoticeKind, last bool) {
	t.Helper()
	if err := s.OnNotice(now, cc.Notice{Kind: kind, Last: last, From: 20, At: now - us}); err != nil {
		t.Fatal(err)
	}
}

// cnp tells of congestion and lets the NIC's next clock tick act on it.
func cnp(s *Sender, now units.Time) {
	s.OnCNP(now)
	if at, ok := s.Deadline(); ok && at < now+10*us {
		s.Advance(at)
	}
}

// A CNP changes nothing while the CC indicator is not set, and cuts the rate while it is (section
// 6.4).
func TestSignalsArePassedWhileIndicated(t *testing.T) {
	s := NewSender(innerParams(), link, link.Line)
	s.OnStart(0)
	line := s.PacingRate()
	cnp(s, 100*us)
	if s.Indicated() || s.PacingRate() != line {
		t.Fatalf("without the indicator a CNP left %v of %v", s.PacingRate(), line)
	}
	tell(t, s, 200*us, cc.NeedsCC, false)
	cnp(s, 300*us)
	cut := s.PacingRate()
	if !s.Indicated() || cut >= line {
		t.Fatalf("with the indicator a CNP left %v of %v", cut, line)
	}
	tell(t, s, 310*us, cc.Released, false)
	cnp(s, 600*us)
	if s.Indicated() || s.PacingRate() < cut {
		t.Errorf("released, a CNP left %v of %v", s.PacingRate(), cut)
	}
}

// The indicator ends by itself when nothing confirms it: the release may have been lost.
func TestIndicatorTimesOut(t *testing.T) {
	s := NewSender(innerParams(), link, link.Line)
	s.OnStart(0)
	tell(t, s, 100*us, cc.NeedsCC, false)
	tell(t, s, 600*us, cc.NeedsCC, false)
	var at units.Time
	for i := 0; s.Indicated(); i++ {
		var ok bool
		if at, ok = s.Deadline(); !ok || at > units.Second || i > 1000 {
			t.Fatalf("indicated, and nothing ends that up to %v", at)
		}
		s.Advance(at)
	}
	if want := 600*us + units.Millisecond; at != want {
		t.Errorf("ended at %v, want %v", at, want)
	}
}

// Where no path is light the marks count although the flow causes no incast, for a time, and
// packets do not say that it does.
func TestLastResortPassesSignals(t *testing.T) {
	s := NewSender(innerParams(), link, link.Line)
	s.OnStart(0)
	line := s.PacingRate()
	tell(t, s, 100*us, cc.NeedsCC, true)
	if s.Indicated() {
		t.Error("a last resort sets the CC indicator")
	}
	cnp(s, 200*us)
	if s.PacingRate() >= line {
		t.Errorf("a CNP left %v", s.PacingRate())
	}
	before := s.PacingRate()
	cnp(s, 100*us+units.Millisecond)
	if s.PacingRate() < before {
		t.Errorf("when the time was over a CNP still cut %v to %v", before, s.PacingRate())
	}
}

// With LastResort: Tag a last resort sets the CC indicator, as incast does, until the timeout or a
// release.
func TestLastResortTags(t *testing.T) {
	p := innerParams()
	p.LastResort = Tag
	s := NewSender(p, link, link.Line)
	s.OnStart(0)
	line := s.PacingRate()
	tell(t, s, 100*us, cc.NeedsCC, true)
	if !s.Indicated() {
		t.Fatal("a last resort leaves the CC indicator clear")
	}
	cnp(s, 200*us)
	if s.PacingRate() >= line {
		t.Errorf("a CNP left %v", s.PacingRate())
	}
	if at, ok := s.Deadline(); !ok || at > 100*us+units.Millisecond {
		t.Errorf("the indicator ends at %v, %v", at, ok)
	}
	s.Advance(100*us + units.Millisecond)
	if s.Indicated() {
		t.Error("the indicator outlasts its timeout")
	}
	tell(t, s, 2*units.Millisecond, cc.NeedsCC, true)
	tell(t, s, 3*units.Millisecond, cc.Released, false)
	if s.Indicated() {
		t.Error("a release leaves the indicator set")
	}
}

// Notices that were heard before, are too old or from the future are refused and change nothing.
func TestReplays(t *testing.T) {
	s := NewSender(innerParams(), link, link.Line)
	now := 10 * units.Millisecond
	first := cc.Notice{Kind: cc.NeedsCC, From: 20, At: now - us}
	if err := s.OnNotice(now, first); err != nil {
		t.Fatal(err)
	}
	if err := s.OnNotice(now, cc.Notice{Kind: cc.Released, From: 20, At: now}); err != nil || s.Indicated() {
		t.Fatal(err)
	}
	for name, n := range map[string]cc.Notice{
		"again":           first,
		"as old":          {Kind: cc.NeedsCC, From: 20, At: now},
		"too old":         {Kind: cc.NeedsCC, From: 21, At: now - units.Millisecond - 1},
		"from the future": {Kind: cc.NeedsCC, From: 21, At: now + 1},
	} {
		if err := s.OnNotice(now, n); !errors.Is(err, ErrReplay) || s.Indicated() {
			t.Errorf("%s: %v, indicated %t", name, err, s.Indicated())
		}
	}
	if err := s.OnNotice(now, cc.Notice{Kind: 9, From: 22, At: now}); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	// Of many switches the latest are remembered: what was heard from these is not heard again.
	for k := range uint32(3 * maxSwitches) {
		if err := s.OnNotice(now, cc.Notice{Kind: cc.NeedsPath, From: 100 + k, At: now - us + units.Time(k)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.OnNotice(now, cc.Notice{Kind: cc.NeedsPath, From: 100 + 3*maxSwitches - 1, At: now - us + 3*maxSwitches - 1}); !errors.Is(err, ErrReplay) {
		t.Error(err)
	}
}

// What one switch said stays heard when others have pushed it out of memory.
func TestReplayOfAForgottenSwitch(t *testing.T) {
	s := NewSender(innerParams(), link, link.Line)
	now := 10 * units.Millisecond
	told := cc.Notice{Kind: cc.NeedsCC, From: 20, At: now - 20*us}
	if err := s.OnNotice(now, told); err != nil {
		t.Fatal(err)
	}
	if err := s.OnNotice(now, cc.Notice{Kind: cc.Released, From: 20, At: now - 19*us}); err != nil {
		t.Fatal(err)
	}
	for k := range uint32(maxSwitches) {
		if err := s.OnNotice(now, cc.Notice{Kind: cc.NeedsPath, From: 100 + k, At: now - us}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.OnNotice(now, told); !errors.Is(err, ErrReplay) || s.Indicated() {
		t.Errorf("%v, indicated %t", err, s.Indicated())
	}
}

// While signals are not active, a delay-based congestion control sees no delay.
func TestDelayIsHeldBack(t *testing.T) {
	w := params.Defaults[swift.Params]()
	p := pc4.Defaults()
	for name, q := range map[string]Params{"swift": {Swift: &w, Timeout: units.Millisecond, Paths: 1, LastResort: Untagged}, "pc4": {PC4: &p, Timeout: units.Millisecond, Paths: 1, LastResort: Untagged}} {
		run := func(indicated bool) units.Bytes {
			s := NewSender(q, link, link.Line)
			s.OnStart(0)
			for i := range 200 {
				now := units.Time(i) * 30 * us
				if indicated {
					_ = s.OnNotice(now, cc.Notice{Kind: cc.NeedsCC, From: 20, At: now})
				}
				s.OnSent(now, cc.Sent{Size: link.Packet, InFlight: link.Packet})
				s.OnAck(now+300*us, cc.Ack{Size: link.Packet, Packets: 1, SentAt: now, RTT: 300 * us, OneWay: 290 * us, BaseRate: 10 * units.Gbps})
				if at := s.NotBefore(); at > now+units.Second {
					t.Fatalf("%s: held until %v", name, at)
				}
			}
			return s.Window()
		}
		if free, held := run(false), run(true); free <= held {
			t.Errorf("%s: a window of %v without the indicator, %v with", name, free, held)
		}
	}
}

// Whatever is told in whatever order, the window and the rate stay those of a congestion control,
// and an indicator ends.
func TestAnyNotices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSender(innerParams(), link, link.Line)
		s.OnStart(0)
		now := units.Time(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += units.Time(rapid.Int64Range(0, 3e8).Draw(t, "later"))
			if at, ok := s.Deadline(); ok && at <= now {
				s.Advance(max(at, 0))
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.OnCNP(now)
			case 1:
				s.OnAck(now, cc.Ack{Size: 4202, Packets: 1, RTT: 9 * us, Marked: true})
			case 2:
				s.OnLoss(now, cc.Loss{Kind: cc.Gap, Size: 4202})
			default:
				n := cc.Notice{
					Kind: cc.NoticeKind(rapid.IntRange(0, 4).Draw(t, "kind")), Last: rapid.Bool().Draw(t, "last"),
					From: uint32(rapid.IntRange(0, 20).Draw(t, "from")), At: now - units.Time(rapid.Int64Range(-1e6, 2e9).Draw(t, "age")),
				}
				_ = s.OnNotice(now, n)
			}
			if s.Window() < 1 || s.PacingRate() <= 0 || s.PacingRate() > link.Line {
				t.Fatalf("window %v, rate %v", s.Window(), s.PacingRate())
			}
		}
		for range 1000 {
			if !s.Indicated() {
				return
			}
			at, ok := s.Deadline()
			if !ok {
				t.Fatal("indicated for ever")
			}
			s.Advance(at)
		}
		t.Fatal("indicated after 1000 deadlines")
	})
}

func TestParams(t *testing.T) {
	if err := innerParams().Check(); err != nil || innerParams().SourcePorts() != 1 {
		t.Fatal(err)
	}
	w := params.Defaults[swift.Params]()
	for want, change := range map[string]func(*Params){
		"0 congestion controls": func(p *Params) { p.DCQCN = nil },
		"2 congestion controls": func(p *Params) { p.Swift = &w },
		"timeout":               func(p *Params) { p.Timeout = -1 },
		"paths":                 func(p *Params) { p.Paths = 257 },
		"dcqcn":                 func(p *Params) { d := *p.DCQCN; d.G = 2; p.DCQCN = &d },
	} {
		p := innerParams()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
