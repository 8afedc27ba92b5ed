package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"weft/internal/fuzztest"
	"weft/internal/quiettest"
	build "weft/internal/sandbox/sandboxtest"
)

const (
	startFuel = 1_000_000
	callFuel  = 1_000_000
)

// outcome is the result of a module: the memory and the fuel that was left, or an error.
type outcome struct {
	failed bool
	long   bool // it ran too long
	fuel   int64
	memory string
}

// try compiles a module, starts it and calls weft_event a few times.
func try(t testing.TB, module []byte, interpret bool) (outcome, error) {
	t.Helper()
	p, err := Compile(t.Context(), module, Options{Memory: 16, Start: startFuel, Interpret: interpret})
	if err != nil {
		return outcome{failed: true}, err
	}
	defer p.Close()
	in, err := p.New()
	if err != nil {
		return outcome{failed: true}, err
	}
	f, err := in.Function("weft_event", []api.ValueType{i32}, nil)
	if err != nil {
		return outcome{failed: true}, err
	}
	for range 4 {
		if err := f.Call(callFuel, []uint64{0}); err != nil {
			return outcome{failed: true, long: errors.Is(err, ErrFuel)}, err
		}
	}
	view, _ := in.View(0, 65536)
	return outcome{fuel: in.Fuel(), memory: string(view)}, nil
}

// A call ends after the same amount of fuel, compiled and interpreted, whatever the module does to
// last.
func TestEndsWhatLasts(t *testing.T) {
	for name, code := range map[string][]byte{
		"loop": build.Forever(), "grow": build.Grow(), "fill": build.Fill(), "recurse": build.Recurse(),
	} {
		for _, interpret := range []bool{false, true} {
			watch := quiettest.Start()
			got, err := try(t, build.Module{Event: code}.Bytes(), interpret)
			if !got.failed || name == "grow" != errors.Is(err, ErrMemory) || (name == "loop" || name == "fill") && !got.long {
				t.Errorf("%s, interpreted: %t: %+v, %v", name, interpret, got.long, err)
			}
			watch.UsedAtMost(t, time.Second, fmt.Sprintf("%s, interpreted: %t", name, interpret))
		}
		if _, err := try(t, build.Module{Start: code, Event: build.Answer(1)}.Bytes(), false); err == nil {
			t.Errorf("%s at the start: no error", name)
		}
	}
}

// A start function that lasts, or prints, without end is ended soon, and the error says why.
func TestStartEnds(t *testing.T) {
	const fuel = 50_000_000 // as congestion controls have
	for _, c := range []struct {
		name   string
		module build.Module
		want   string
	}{
		{"loops", build.Module{Start: build.Forever()}, "cannot be started: it ran too long"},
		{"takes memory", build.Module{Start: build.Grow()}, "cannot be started: it needs too much memory: it has 0.0625 MiB"},
		{"traps", build.Module{Start: build.Trap()}, "cannot be started: unreachable"},
		{"prints", build.Module{Start: build.Endless(build.Print(strings.Repeat("no news ", 32))), Import: "fd_write"},
			"cannot be started: it ran too long; it printed \"…"},
		{"yields", build.Module{Start: build.Endless(build.Op(0x41, 9, 0x10, 0)), Import: "proc_exit"},
			"cannot be started: it ended itself with exit code 9"},
	} {
		for _, section := range []bool{false, true} {
			c.module.StartSection = section
			watch := quiettest.Start()
			p, err := Compile(t.Context(), c.module.Bytes(), Options{Memory: 16, Start: fuel})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.New()
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s, section: %t: %v; want %q", c.name, section, err, c.want)
			}
			watch.UsedAtMost(t, time.Second, fmt.Sprintf("%s, section: %t", c.name, section))
			_ = p.Close()
		}
	}
	if _, err := try(t, build.Module{Start: build.Trap(), StartSection: true, Event: build.Answer(1)}.Bytes(), true); err == nil {
		t.Error("the start function does not run")
	}
}

// The error of a call has the end of what the module printed during it, as one line, without what
// harms a terminal and without a stack trace.
func TestPrinted(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"panic", "debugging\npanic: no idea\n\ngoroutine 1 [running]:\nmain.main()\n", `debugging panic: no idea"`},
		{"controls", "\x1b[31mred\x07\xff\u202eend", `[31mredend"`},
		{"long", strings.Repeat("ä", 120) + "the reason", `äthe reason"`},
	} {
		printed := build.Print(c.text)
		for _, before := range [][]byte{nil, build.Print(strings.Repeat("much ", 50))} {
			m := build.Module{Import: "fd_write", Event: build.Code(before, before, printed, build.Trap())}
			_, err := try(t, m.Bytes(), false)
			if err == nil || !strings.HasPrefix(err.Error(), "unreachable; it printed ") || len(err.Error()) > 500 ||
				!strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: %v; want %q", c.name, err, c.want)
			}
		}
	}
	// What an earlier call printed is not the reason of a later failure.
	m := build.Module{Import: "fd_write", Event: build.Code(build.After(1, build.Trap()), build.Print("all is well"))}
	if _, err := try(t, m.Bytes(), false); err == nil || err.Error() != "unreachable" {
		t.Errorf("%v; want unreachable", err)
	}
}

// The counter counts the same in both ways of execution: functions, iterations and memory.
func TestFuelIsTheSame(t *testing.T) {
	ten := build.Code( // for state := 10; state != 0; state-- {}
		build.StoreInt(build.State, build.Int(10)), build.Op(opLoop, voidBlock),
		build.StoreInt(build.State, build.Code(build.Load(build.State), build.Int(1), build.Op(opI64Sub))),
		build.Load(build.State), build.Int(0), build.Op(0x52, opBrIf, 0, opEnd)) // i64.ne
	fill := build.Code(build.I32(0), build.I32(0), build.I32(6400), build.Op(opBulk, bulkMemoryFill, 0))
	for _, c := range []struct {
		name    string
		code    []byte
		imports string
		want    int64
	}{
		{"nothing", nil, "", 1}, {"ten iterations", ten, "", 10}, {"6400 bytes", fill, "", 101},
		{"printing twice", build.Code(build.Print("a"), build.Print("b")), "fd_write", 1 + 2*(stubFuel+writeFuel)},
	} {
		for _, interpret := range []bool{false, true} {
			got, err := try(t, build.Module{Event: c.code, Import: c.imports}.Bytes(), interpret)
			if used := callFuel - got.fuel; err != nil || used != c.want {
				t.Errorf("%s, interpreted: %t: %d units of fuel, %v; want %d", c.name, interpret, used, err, c.want)
			}
		}
	}
}

// A NaN has the same bits wherever a module can see them.
func TestCanonicalNaN(t *testing.T) {
	nan := build.Float(math.Float64frombits(0xfff8dead00000001))
	code := build.Code(
		build.StoreFloat(build.State, nan),
		build.StoreInt(build.State+8, build.Code(nan, build.Op(opI64FromF64))),
		build.StoreFloat(build.State+16, build.Code(build.Float(1), nan, build.Op(opF64Copysign))),
		build.StoreFloat(build.State+24, build.Code(build.Float(0), build.Float(0), build.Op(0xa3)))) // f64.div
	want := "\x00\x00\x00\x00\x00\x00\xf8\x7f"
	for _, interpret := range []bool{false, true} {
		got, err := try(t, build.Module{Event: code}.Bytes(), interpret)
		if err != nil {
			t.Fatal(err)
		}
		if m := got.memory[build.State:]; m[:8] != want || m[8:16] != want || m[24:32] != want {
			t.Errorf("interpreted: %t: NaNs are % x", interpret, m[:32])
		}
		if one := got.memory[build.State+16:][:8]; one != "\x00\x00\x00\x00\x00\x00\xf0\x3f" {
			t.Errorf("interpreted: %t: 1 with the sign of a NaN is % x", interpret, one)
		}
	}
}

// What a module must not contain or declare has an error that names it.
func TestRefuses(t *testing.T) {
	valid := build.Module{Event: build.Answer(1)}.Bytes()
	for _, c := range []struct{ module, want string }{
		{"", "not a WebAssembly module"},
		{"hello, world", "not a WebAssembly module"},
		{string(valid[:len(valid)-3]), "ends too early"},
		{string(valid) + "\x01\x01\x00", "out of order"},
		{string(valid) + "\x0d\x01\x00", "unknown or out of order"},
		{string(build.Module{Import: "path_open"}.Bytes()), "imports wasi_snapshot_preview1.path_open"},
		{string(build.Module{Pages: 17}.Bytes()), "memory"},
		{string(build.Module{Event: build.Op(0xfd, 0x0c)}.Bytes()), "instruction 0xfd is not supported"},
		{string(build.Module{Event: build.Op(0x23, 0)}.Bytes()), "global variable 0 of 0"},
		{string(build.Module{Event: build.Op(0x20, 1)}.Bytes()), "local variable 1 of 1"},
		{string(build.Module{Event: build.Op(0xfc, 15, 0)}.Bytes()), "tables do not change"},
		{string(build.Module{Event: build.Op(opDrop)}.Bytes()), "invalid module"},
	} {
		_, err := try(t, []byte(c.module), false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.module[:min(len(c.module), 20)], err, c.want)
		}
	}
}

// What would take a compiler long is refused at once. Without a bound, these took up to seven
// minutes.
func TestWork(t *testing.T) {
	load := build.Op(0x41, 0, 0x28, 2, 0) // i32.load of address 0
	nested := func(n int, begin []byte) []byte {
		return build.Code([]byte{0}, bytes.Repeat(begin, n), bytes.Repeat(build.Op(opEnd), n+1))
	}
	branches := func(n int) []byte {
		return build.Code(build.Op(0, opBlock, voidBlock), bytes.Repeat(build.Code(load, build.Op(opBrIf, 0)), n),
			build.Op(opEnd, opEnd))
	}
	table := func(n int) []byte {
		return build.Code(build.Op(0, opBlock, voidBlock, 0x41, 0, opBrTable), binary.AppendUvarint(nil, uint64(n)),
			make([]byte, n+1), build.Op(opEnd, opEnd))
	}
	locals := func(n int) []byte {
		return build.Code([]byte{1}, binary.AppendUvarint(nil, uint64(n)), build.Op(0x7f, opEnd))
	}
	straight := func(n int) []byte {
		return build.Code([]byte{0}, bytes.Repeat(build.Code(load, build.Op(opDrop)), n), build.Op(opEnd))
	}
	const units = "units of work, more than 1500000000"
	for _, c := range []struct {
		name  string
		count int
		other []byte
		want  string
	}{
		{"blocks", 120, nested(4000, build.Op(opBlock, voidBlock)), units},
		{"loops", 120, nested(4000, build.Op(opLoop, voidBlock)), units},
		{"conditions", 120, nested(4000, build.Code(load, build.Op(opIf, voidBlock))), units},
		{"deeper blocks", 1, nested(5000, build.Op(opBlock, voidBlock)), "more than 4096 nested blocks"},
		{"branches", 60, branches(9000), units},
		{"tables", 60, table(60000), units},
		{"functions", 16000, locals(0), ""},
		{"more functions", 20000, locals(0), "20002 entries are more than 16384"},
		{"variables", 2000, locals(1000), units},
		{"more variables", 10000, locals(4000), "4000 local variables are more than 1024"},
		{"code", 1, straight(20000), "has 120002 bytes, more than 65536"},
	} {
		others := make([][]byte, c.count)
		for i := range others {
			others[i] = c.other
		}
		module := build.Module{Event: build.Answer(1), Others: others}.Bytes()
		watch := quiettest.Start()
		_, err := Compile(t.Context(), module, Options{Memory: 16, Start: callFuel})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
		watch.UsedAtMost(t, time.Second, c.name)
	}
	// A few of each are compiled.
	few := [][]byte{
		nested(300, build.Op(opBlock, voidBlock)), nested(100, build.Op(opLoop, voidBlock)), branches(300), table(2000),
		locals(1000), straight(1000),
	}
	if _, err := try(t, build.Module{Event: build.Answer(1), Others: few}.Bytes(), false); err != nil {
		t.Error(err)
	}
}

// Whatever the bytes, both ways of execution say the same, quickly, and the process survives.
func FuzzModule(f *testing.F) {
	seeds := fuzztest.New(f)
	for _, code := range [][]byte{
		build.Answer(1000), build.Forever(), build.Grow(), build.Fill(), build.Trap(),
		build.After(2, build.Answer(5)),
		build.Code(build.StoreFloat(build.State, build.Code(build.Float(0), build.Float(0), build.Op(0xa3)))),
	} {
		seeds.Add(build.Module{Event: code, Globals: 2}.Bytes())
		seeds.Add(build.Module{Event: code, Start: build.Answer(3), Import: "proc_exit"}.Bytes())
	}
	seeds.Fuzz(func(t *testing.T, module []byte) {
		compiled, err1 := try(t, module, false)
		interpreted, err2 := try(t, module, true)
		if deep(err1) || deep(err2) {
			return // the two have room for another number of calls
		}
		if compiled != interpreted {
			t.Errorf("compiled: failed %t, fuel %d, %v; interpreted: failed %t, fuel %d, %v", compiled.failed,
				compiled.fuel, err1, interpreted.failed, interpreted.fuel, err2)
		}
	})
}

func deep(err error) bool { return err != nil && strings.Contains(err.Error(), "stack overflow") }
