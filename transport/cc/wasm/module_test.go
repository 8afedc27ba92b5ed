package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/fuzztest"
	"weft/internal/quiettest"
	"weft/internal/sandbox"
	build "weft/internal/sandbox/sandboxtest"
	"weft/transport/cc"
	"weft/units"
)

// described returns a description with other parameters.
func described(params string) string { return strings.Replace(build.Plain, "[]", "["+params+"]", 1) }

func answers(code []byte) build.Module { return build.Module{Event: code} }

// A module that does not do what the interface says cannot be loaded, and the error says why,
// within a second.
func TestLoadRefuses(t *testing.T) {
	good := build.Answer(100_000)
	param := func(rest string) build.Module {
		return build.Module{Event: good, Text: described(`{"name":"gain",` + rest + `}`)}
	}
	number := `"kind":"number","min":0,"max":1`
	for _, c := range []struct {
		name   string
		module build.Module
		want   string
	}{
		{"loops", answers(build.Forever()), "module tiny: at the start of the connection (Init): it ran too long"},
		{"loops later", answers(build.Code(good, build.After(20, build.Forever()))), "it ran too long"},
		{"loops at its start", build.Module{Event: good, Start: build.Forever()}, "cannot be started: it ran too long"},
		{"traps", answers(build.Trap()), "unreachable"},
		{"allocates without end", answers(build.Grow()), "it needs too much memory: it has 15.0625 MiB and asked for 1 MiB more; the limit is 16 MiB"},
		{"writes all memory without end", answers(build.Fill()), "it ran too long"},
		{"recurses without end", answers(build.Recurse()), "it ran too long"},
		{"says nothing", answers(nil), "its window is 0 bytes; expected at least 1"},
		{"window is NaN", answers(build.Answer(math.NaN())), "its window is NaN bytes"},
		{"window is negative", answers(build.Answer(-4096)), "its window is -4096 bytes"},
		{"rate is NaN", answers(build.Code(good, build.StoreFloat(build.Rate, build.Float(math.NaN())))), "its rate is NaN"},
		{"rate is negative", answers(build.Code(good, build.StoreFloat(build.Rate, build.Float(-1)))), "its rate is -1"},
		{"timer in the past", answers(build.Code(good, build.StoreInt(build.Timer, build.Int(1)))), "not after now"},
		{"never sends", answers(build.Code(good, build.StoreInt(build.NotBefore, build.Int(math.MaxInt64)))), "nothing may leave before"},
		{"shares a variable", build.Module{Globals: 1, Event: build.Code(good,
			build.Op(0x23, 0), build.Int(1), build.Op(0x7c, 0x24, 0),
			build.StoreFloat(build.Window, build.Code(build.Float(100), build.Op(0x23, 0, 0xb9), build.Op(0xa0))))},
			"the events of one connection change another"},
		{"keeps the base RTT in a variable", build.Module{Globals: 1, Event: build.Code(
			build.Op(0x20, 0, 0x45, 0x04, 0x40), build.Load(build.Args+8*4), build.Op(0x24, 0, 0x0b),
			build.Answer(0), build.StoreFloat(build.Window, build.Op(0x23, 0, 0xb9)))},
			"the events of one connection change another"},
		{"reads a parameter that it does not declare", answers(build.Code(
			build.Op(0x20, 0, 0x45, 0x04, 0x40), build.StoreInt(build.State, build.Load(build.Args+8*8)), build.Op(0x0b),
			build.Answer(0), build.StoreFloat(build.Window, build.Code(build.Float(100), build.Load(build.State), build.Op(0xbf, 0xa0))))),
			"it reads parameter p[0] or a later one, which is 0, and declares 0"},

		{"another version", build.Module{Event: good, Version: 2}, "version 2 of the interface; expected 1"},
		{"state is too large", build.Module{Event: good, StateSize: 1 << 20}, "its state has 1048576 bytes"},
		{"state is outside", build.Module{Event: good, Patch: func(h []byte) { binary.LittleEndian.PutUint32(h[8:], 65530) }},
			"outside of its memory"},
		{"mailbox is outside", build.Module{Event: good, Patch: func(h []byte) { binary.LittleEndian.PutUint32(h[4:], 1<<31) }},
			"outside of its memory"},

		{"no description", build.Module{Event: good, Text: " "}, "its description"},
		{"more than a description", build.Module{Event: good, Text: build.Plain + "{}"}, "continues after its end"},
		{"unknown member", build.Module{Event: good, Text: `{"name":"a","magic":true}`}, `unknown field "magic"`},
		{"bad name", build.Module{Event: good, Text: `{"name":"A b"}`}, `calls itself "A b"`},
		{"unknown kind", param(`"kind":"colour","default":"red"`), "unknown kind"},
		{"default out of range", param(number + `,"default":"2"`), `its default: "2" is out of range`},
		{"default is no number", param(number + `,"default":"much"`), "its default"},
		{"no default", param(number), "its default"},
		{"range turned round", param(`"kind":"number","min":2,"max":1,"default":"1"`), "its range is 2 to 1"},
		{"range is NaN", param(`"kind":"number","min":"0x7ff8000000000000","max":1,"default":"1"`), "its range is NaN"},
		{"range without end", param(`"kind":"integer","min":0,"max":1e300,"default":"1"`), "2^53"},
		{"broken range", param(`"kind":"integer","min":0.5,"max":7,"default":"1"`), "whole numbers"},
		{"text with control characters", param(number + `,"default":"1","about":"\u001b[31m"`), "not printable"},
		{"twice", build.Module{Event: good, Text: described(`{"name":"a",` + number + `,"default":"1"},{"name":"a",` + number +
			`,"default":"1"}`)}, "declared twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			watch := quiettest.Start()
			_, err := Load(c.module.Bytes())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			watch.UsedAtMost(t, time.Second, "loading")
			if again, err2 := Load(c.module.Bytes()); again != nil || err2 == nil || err != nil && err2.Error() != err.Error() {
				t.Errorf("loaded again: %v", err2)
			}
		})
	}
}

// Loading ends with the process's context, and the module can be loaded by another.
func TestLoadIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	SetContext(ctx)
	defer SetContext(context.Background())
	module := build.Module{Event: build.Answer(70_000), Start: build.Forever()}.Bytes()
	if _, err := Load(module); !errors.Is(err, interrupted) {
		t.Errorf("%v; want %v", err, interrupted)
	}
	SetContext(context.Background())
	if _, err := Load(module); !errors.Is(err, sandbox.ErrFuel) {
		t.Errorf("%v; want %v", err, sandbox.ErrFuel)
	}
}

// newTiny returns a sender of a module on the path of the probe.
func newTiny(t testing.TB, m build.Module) *Sender {
	t.Helper()
	loaded, err := Load(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return NewSender(Params{Module: loaded.Hash, Values: defaults(t, loaded)}, probeLink)
}

func defaults(t testing.TB, m *Module) []Value {
	t.Helper()
	s := m.Section()
	for _, k := range s.Keys() {
		if _, err := k.Value.Set(k.Text, false); err != nil {
			t.Fatal(err)
		}
	}
	return s.Values()
}

// A module that fails during a run keeps its error, is not called again, and harms no other
// connection.
func TestFailsAlone(t *testing.T) {
	m := answers(build.Code(build.Answer(100_000), build.After(200, build.Trap())))
	bad, good := newTiny(t, m), newTiny(t, m)
	for i := range units.Time(300) {
		bad.OnAck(i, cc.Ack{Size: 1, RTT: 1})
	}
	if err := bad.Err(); err == nil || !strings.Contains(err.Error(), "module tiny: after an acknowledgement (Ack): unreachable") {
		t.Errorf("error %v", err)
	}
	if at, ok := bad.Deadline(); bad.Window() != 1 || bad.PacingRate() != 0 || ok {
		t.Errorf("a failed sender has window %v, rate %v and timer %v", bad.Window(), bad.PacingRate(), at)
	}
	for i := range units.Time(150) {
		good.OnAck(i, cc.Ack{Size: 1, RTT: 1})
	}
	if good.Err() != nil || good.Window() != 100_000 {
		t.Errorf("another connection: %v, window %v", good.Err(), good.Window())
	}
}

// A rate above that of the line is that of the line, and an infinite window is no limit.
func TestAboveTheLine(t *testing.T) {
	for _, rate := range []float64{1e15, math.Inf(1), float64(probeLink.Line), float64(probeLink.Line) + 1} {
		s := newTiny(t, answers(build.Code(build.Answer(math.Inf(1)), build.StoreFloat(build.Rate, build.Float(rate)))))
		if s.PacingRate() != probeLink.Line || s.Window() != unlimited || s.Err() != nil {
			t.Errorf("rate %v: rate %v, window %v, %v", rate, s.PacingRate(), s.Window(), s.Err())
		}
	}
}

// Arguments and parameters are where docs/module-abi.md has them.
func TestArguments(t *testing.T) {
	text := described(`{"name":"a","kind":"time","min":0,"max":1e12,"default":"7us"},{"name":"b","kind":"rate",` +
		`"default":"5Mbps/25Gbps"},{"name":"c","kind":"choice","words":["x","y"],"default":"y"}`)
	echo := func(i int) []byte { // the window is argument i of the first event, as an integer
		return build.Code(build.Answer(1), build.Op(0x20, 0, 0x45, 0x04, 0x40), // i32.eqz, if
			build.StoreFloat(build.Window, build.Code(build.Load(build.Args+8*i), build.Op(0xb9))), build.Op(0x0b))
	}
	float := func(i int) []byte { // the same as a number
		return build.Code(build.Answer(1), build.Op(0x20, 0, 0x45, 0x04, 0x40),
			build.StoreFloat(build.Window, build.Code(build.Load(build.Args+8*i), build.Op(0xbf))), build.Op(0x0b))
	}
	for i, want := range map[int]units.Bytes{
		1: probeLink.MTU, 2: probeLink.Packet, 3: units.Bytes(probeLink.Baseline), 4: units.Bytes(probeLink.BaseRTT),
		5: units.Bytes(probeLink.NetRTT), 6: units.Bytes(probeLink.Hops),
	} {
		if got := newTiny(t, build.Module{Text: text, Event: echo(i)}).Window(); got != want {
			t.Errorf("argument %d of init: %d; want %d", i, got, want)
		}
	}
	for i, want := range map[int]units.Bytes{0: units.Bytes(probeLink.Line), 8: 7_000_000, 9: 20_000_000, 10: 1} {
		if got := newTiny(t, build.Module{Text: text, Event: float(i)}).Window(); got != want {
			t.Errorf("argument %d of init: %d; want %d", i, got, want)
		}
	}
}

// A process that gets the compiled code of a module uses it, and leaves no file behind. Code that
// is damaged or of another module changes nothing else.
func TestLoadCompiled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	forget := func() {
		loaded.Lock()
		defer loaded.Unlock()
		loaded.all = nil
	}
	module := func(window float64) []byte { return answers(build.Answer(window)).Bytes() }
	code := func(bytes []byte) sandbox.Code {
		SetCache(filepath.Join(t.TempDir(), "modules"))
		defer SetCache("")
		forget()
		m, err := Load(bytes)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := m.Code()
		if !ok {
			t.Fatal("no compiled code")
		}
		return c
	}
	good, other := code(module(100_000)), code(module(200_000))
	damaged := sandbox.Code{Name: good.Name, Bytes: slices.Clone(good.Bytes)}
	damaged.Bytes[len(damaged.Bytes)/2] ^= 1
	for name, c := range map[string]sandbox.Code{
		"its own": good, "of another": other, "damaged": damaged, "cut": {Name: good.Name, Bytes: good.Bytes[:20]},
	} {
		forget()
		m, err := LoadCompiled(module(100_000), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := NewSender(Params{Module: m.Hash}, probeLink); s.Err() != nil || s.Window() != 100_000 {
			t.Errorf("%s: window %v, %v", name, s.Window(), s.Err())
		}
	}
	for _, c := range []sandbox.Code{
		{}, {Name: good.Name}, {Name: "../../etc/passwd", Bytes: good.Bytes}, {Name: "/" + good.Name, Bytes: good.Bytes},
	} {
		if _, err := LoadCompiled(module(100_000), c); err == nil {
			t.Errorf("%q with %d bytes: no error", c.Name, len(c.Bytes))
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%d files stay, %v", len(left), err)
	}
}

// An event allocates nothing.
func TestAllocatesNothing(t *testing.T) {
	s := newTiny(t, answers(build.Answer(100_000)))
	hops := make([]cc.Hop, 3)
	if n := testing.AllocsPerRun(1000, func() {
		s.OnSent(5, cc.Sent{Size: 1000})
		s.OnAck(10, cc.Ack{Size: 1000, RTT: 10, INT: hops})
	}); n > 0 || s.Err() != nil {
		t.Errorf("%v allocations, %v", n, s.Err())
	}
}

// Values that another process sent are held to the ranges of the module.
func TestCheck(t *testing.T) {
	m, err := Load(build.Module{Event: build.Answer(9), Text: described(
		`{"name":"gain","kind":"share","min":0,"max":1,"default":"50%"}`)}.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		params Params
		want   string
	}{
		{Params{Module: m.Hash, Values: []Value{{Number: 0.5}}}, ""},
		{Params{Module: m.Hash, Values: []Value{{Number: 1.5}}}, "gain"},
		{Params{Module: m.Hash, Values: []Value{{Number: math.Inf(1)}}}, "gain"},
		{Params{Module: m.Hash}, "0 values for 1 parameters"},
		{Params{Module: m.Hash, Values: []Value{{Number: 0.5}}, Paths: 9999}, "9999 paths"},
		{Params{Module: strings.Repeat("f", 64)}, "is not here"},
	} {
		err := c.params.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.params, err, c.want)
		}
	}
}

// Whatever a module is, loading it ends with a module or an error, and so do its events.
func FuzzLoad(f *testing.F) {
	seeds := fuzztest.New(f)
	text := described(`{"name":"gain","kind":"number","min":0,"max":1,"default":"0.5","zero":"off"}`)
	for _, code := range [][]byte{
		build.Answer(5000), build.Code(build.Answer(1e300), build.StoreFloat(build.Rate, build.Float(1e9))),
		build.Code(build.Answer(5000), build.After(3, build.Answer(6000))), build.Grow(),
	} {
		seeds.Add(build.Module{Event: code, Text: text, Globals: 1}.Bytes())
	}
	seeds.Fuzz(func(t *testing.T, bytes []byte) {
		m, err := load(t.Context(), bytes, sandbox.Options{Memory: memoryPages, Start: 100_000})
		if err != nil {
			return
		}
		defer m.program.Close()
		s := newSender(m, Params{Values: defaults(t, m)}, probeLink)
		for i := range 100 {
			if a := s.probe(i, true); a.window < 1 || a.rate < 0 || a.rate > probeLink.Line {
				t.Fatalf("event %d: %+v", i, a)
			}
		}
	})
}

// A description is read or an error, whatever its bytes.
func FuzzDescription(f *testing.F) {
	seeds := fuzztest.New(f)
	seeds.Add([]byte(described(`{"name":"gain","kind":"number","min":0,"max":"0x3ff0000000000000","default":"0.5"}`)))
	seeds.Fuzz(func(t *testing.T, text []byte) {
		d, err := parseDescription(text)
		if err != nil {
			return
		}
		m := &Module{Description: d}
		if values := defaults(t, m); len(values) != len(d.Params) {
			t.Errorf("%d values for %d parameters", len(values), len(d.Params))
		}
	})
}
