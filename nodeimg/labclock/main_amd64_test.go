package labclock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/clock"
	"weft/internal/testenv"
)

// Environment variables that make the test program another one: one that becomes its arguments with
// lab time, and one that reports clocks.
const (
	becomeVar = "LABCLOCK_BECOME"
	reportVar = "LABCLOCK_REPORT"
)

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(becomeVar); ok {
		os.Unsetenv(becomeVar)
		fmt.Fprintln(os.Stderr, become())
		os.Exit(126)
	}
	if what, ok := os.LookupEnv(reportVar); ok {
		if err := report(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// become becomes the program of the arguments, as package boot does.
func become() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := Install(3); err != nil {
		return err
	}
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// reading is what a program reads.
type reading struct{ Before, Mono, Real, After int64 }

// report is what the test program does in place of tests.
func report(what string) error {
	var all []reading
	switch what {
	case "go": // by Go's runtime, as every Go program
		all = append(all, readGo())
	case "call": // by system calls
		all = append(all, readCalls())
	case "thread":
		var of [4]reading
		var group sync.WaitGroup
		for i := range of {
			group.Go(func() { runtime.LockOSThread(); of[i] = readGo() })
		}
		group.Wait()
		all = of[:]
	case "child": // a child of a child
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{reportVar + "=thread"}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	case "cost":
		cost(200000, func() { _ = time.Now() })
		return nil
	case "cost of calls":
		cost(2000, func() { _ = readCalls() })
		return nil
	default:
		return reportWait(what)
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// readGo reads clocks as every Go program does.
func readGo() reading {
	c := clock.NewClock()
	return reading{Mono: c.Now(), Real: time.Now().UnixNano()}
}

func readCalls() reading {
	read := func(id uintptr) int64 {
		var ts unix.Timespec
		if _, _, errno := unix.Syscall(unix.SYS_CLOCK_GETTIME, id, uintptr(ptr(&ts)), 0); errno != 0 {
			panic(errno)
		}
		return ts.Nano()
	}
	return reading{Mono: read(unix.CLOCK_MONOTONIC), Real: read(unix.CLOCK_REALTIME)}
}

// cost prints the nanoseconds of a reading, if read makes two.
func cost(n int, read func()) {
	begin := time.Now()
	for range n {
		read()
	}
	fmt.Println(float64(time.Since(begin)) / float64(2*n))
}

// A bench runs programs with lab time.
type bench struct {
	keeper *Keeper
	page   *Page
	lines  Lines
}

func newBench(t testing.TB, dilation float64) *bench {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
	b := &bench{lines: Exact(clock.Monotonic(), dilation)}
	var err error
	if b.page, err = NewPage(b.lines); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.page.Close() })
	if b.keeper, err = Start("/proc/self/exe", os.Environ()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-b.keeper.Ended(): // by the test
			return
		default:
		}
		if err := b.keeper.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// command returns a command that runs a program with lab time.
func (b *bench) command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path := testenv.NeedProgram(t, args[0])[0]
	socket, err := b.keeper.Attach(b.page, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	cmd := exec.Command("/proc/self/exe", append([]string{path}, args[1:]...)...)
	cmd.Env = append(os.Environ(), append(env, becomeVar+"=1")...)
	cmd.ExtraFiles = []*os.File{socket}
	return cmd
}

// run runs a program with lab time and returns its output.
func (b *bench) run(t testing.TB, env []string, args ...string) string {
	t.Helper()
	cmd := b.command(t, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, &out, &errs)
	}
	return out.String()
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Programs of Go read lab time: themselves, in threads, in children, and by system calls.
func TestProgramsReadLabTime(t *testing.T) {
	b := newBench(t, 1000)
	for _, what := range []string{"go", "call", "thread", "child"} {
		before := clock.Monotonic()
		out := b.run(t, []string{reportVar + "=" + what}, self(t))
		after := clock.Monotonic()
		var all []reading
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 {
			t.Fatalf("%s: %q: %v", what, out, err)
		}
		for _, r := range all {
			if low, high := b.page.Mono(before), b.page.Mono(after); r.Mono < low || r.Mono > high {
				t.Errorf("%s: CLOCK_MONOTONIC is %d, not in [%d, %d]", what, r.Mono, low, high)
			}
			if low, high := b.page.Real(before), b.page.Real(after); r.Real < low || r.Real > high {
				t.Errorf("%s: CLOCK_REALTIME is %d, not in [%d, %d]", what, r.Real, low, high)
			}
		}
	}
}

// Programs of C read lab time, and a shell's children do.
func TestProgramsOfTheMachineReadLabTime(t *testing.T) {
	b := newBench(t, 1000)
	if out := b.run(t, nil, "date", "-u", "+%F %T"); !strings.HasPrefix(out, "2037-01-01 00:00:00") {
		t.Errorf("date says %q", out)
	}
	if out := b.run(t, nil, "sh", "-c", "for i in 1 2 3; do date -u +%Y; done; (date -u +%Y); date -u +%Y | cat"); out != strings.Repeat("2037\n", 5) {
		t.Errorf("dates of a shell are %q", out)
	}
}

// A reading should cost less than 300 ns more than the machine's. One by a system call is answered
// by another process; few programs make them.
func BenchmarkReading(b *testing.B) {
	x := newBench(b, 1)
	for _, what := range []string{"cost", "cost of calls"} {
		env := []string{reportVar + "=" + what}
		programs := map[string]func() (string, error){
			"lab time": func() (string, error) { return x.run(b, env, self(b)), nil },
			"machine": func() (string, error) {
				cmd := exec.Command(self(b))
				cmd.Env = env
				out, err := cmd.Output()
				return string(out), err
			},
		}
		for _, by := range slices.Sorted(maps.Keys(programs)) {
			b.Run(what+" by "+by, func(b *testing.B) {
				best := math.Inf(1)
				for b.Loop() {
					out, err := programs[by]()
					ns, parse := strconv.ParseFloat(strings.TrimSpace(out), 64)
					if err = errors.Join(err, parse); err != nil {
						b.Fatal(err)
					}
					best = min(best, ns)
				}
				b.ReportMetric(best, "ns/reading")
			})
		}
	}
}

func ptr(ts *unix.Timespec) unsafe.Pointer { return unsafe.Pointer(ts) }
