package labclock

import (
	"math"
	"math/big"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func newPage(t testing.TB, lines Lines) *Page {
	t.Helper()
	p, err := NewPage(lines)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Clocks advance by their rate, from their value on, and show it before their base.
func TestPageShowsLines(t *testing.T) {
	p := newPage(t, Exact(0, 1))
	rapid.Check(t, func(t *rapid.T) {
		l := Line{Base: rapid.Int64Range(0, 1<<55).Draw(t, "base"), Value: rapid.Int64Range(0, 1<<61).Draw(t, "value"),
			Rate: 1 / rapid.Float64Range(0.5, 1e6).Draw(t, "dilation")}
		since := rapid.Int64Range(0, 1<<55).Draw(t, "since")
		if err := p.Set(Lines{Mono: l, Real: Line{Base: l.Base, Value: 5, Rate: 1}}); err != nil {
			t.Fatal(err)
		}
		exact, _ := new(big.Float).Mul(big.NewFloat(l.Rate), new(big.Float).SetInt64(since)).Int64()
		if got := p.Mono(l.Base+since) - l.Value; math.Abs(float64(got-exact)) > 1+float64(since)*math.Ldexp(1, -52) {
			t.Fatalf("%d ns after its base it gained %d ns, want %d", since, got, exact)
		}
		if got := p.Mono(l.Base - 1); got != l.Value {
			t.Fatalf("before its base it shows %d, want %d", got, l.Value)
		}
		if got := p.Real(l.Base + since); got != 5+since {
			t.Fatalf("the other clock shows %d, want %d", got, 5+since)
		}
	})
}

// CLOCK_MONOTONIC is ahead of the machine's, and CLOCK_REALTIME begins in 2037.
func TestExactClocks(t *testing.T) {
	for _, t0 := range []int64{0, 1, 4e14, 6e14, 1e15, 15e15} {
		l := Exact(t0, 1000)
		if ahead := l.Mono.Value - t0; ahead < step/2 || ahead > 2*step || l.Mono.Value%step != 0 {
			t.Errorf("at %d CLOCK_MONOTONIC begins at %d", t0, l.Mono.Value)
		}
		if l.Real.Value != Begin || l.Mono.Base != t0 || l.Real.Base != t0 {
			t.Errorf("at %d: %+v", t0, l)
		}
	}
}

func TestLinesThatAreNoClocks(t *testing.T) {
	p := newPage(t, Exact(0, 1))
	for _, l := range []Line{{Rate: 0}, {Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: 4}, {Rate: 1e-19},
		{Value: -1, Rate: 1}} {
		if err := p.Set(Lines{Mono: l, Real: Line{Rate: 1}}); err == nil {
			t.Errorf("%+v became a clock", l)
		}
	}
}

// Readers see one line or another, and never a mixture.
func TestPageIsReadWhileItIsWritten(t *testing.T) {
	lines := func(i int64) Lines { return Lines{Mono: Line{i, i, 1}, Real: Line{i, i, 1}} }
	p := newPage(t, lines(0))
	const now = 1 << 40
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := p.Mono(now); got != now {
					t.Errorf("it shows %d, want %d", got, now)
					return
				}
			}
		})
	}
	for i := range int64(100000) {
		if err := p.Set(lines(i)); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}

// An owner that dies, or is preempted, while it writes leaves readers what the clocks showed.
func TestPageThatIsHalfWritten(t *testing.T) {
	for sets := range 3 {
		p := newPage(t, Lines{Mono: Line{5, 5, 1}, Real: Line{7, 7, 1}})
		for range sets {
			if err := p.Set(Lines{Mono: Line{5, 5, 1}, Real: Line{7, 7, 1}}); err != nil {
				t.Fatal(err)
			}
		}
		other := 1 - int(*p.word(atSequence)&1)
		*p.word(atMono + other*copyWords + lineBase) = 1000
		*p.word(atReal + other*copyWords + lineBase) = 1000
		if mono, real := p.Mono(50), p.Real(50); mono != 50 || real != 50 {
			t.Errorf("after %d changes: the clocks show %d and %d, want 50", sets, mono, real)
		}
	}
}

// Whoever gets the file cannot change the clocks.
func TestPagesAreSealed(t *testing.T) {
	p := newPage(t, Exact(0, 1))
	fd := int(p.file.Fd())
	if _, err := unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("it was mapped to be written")
	}
	if _, err := unix.Pwrite(fd, []byte{1}, 0); err == nil {
		t.Error("it was written")
	}
	if err := unix.Ftruncate(fd, 0); err == nil {
		t.Error("it was cut")
	}
}
