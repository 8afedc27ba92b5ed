package fabric

import (
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

const (
	kB  = units.KB
	mB  = units.MB
	kiB = units.KiB
)

// thr = (buffer - Σheadroom - Σreserve - shared_used) >> shift; alpha is 2^-shift, and may be
// anything else.
func TestDynamicThreshold(t *testing.T) {
	for _, c := range []struct {
		shared, used units.Bytes
		alpha        float64
		want         units.Bytes
	}{
		{12 * units.MiB, 0, 1. / 8, 12 * units.MiB >> 3},
		{12 * units.MiB, 1 * units.MiB, 1. / 8, 11 * units.MiB >> 3},
		{1_000_007, 0, 1. / 8, 1_000_007 >> 3}, // rounded down
		{1_000_007, 999_999, 1. / 8, 1},
		{1_000_007, 1_000_000, 1. / 8, 0},
		{1_000_007, 1_000_007, 1, 0},
		{10 * mB, 4 * mB, 1, 6 * mB},
		{10 * mB, 4 * mB, 0.0625, 375 * kB}, // conweave's ingress alpha
		{10 * mB, 9 * mB, 16, 1 * mB},       // ns3-rdma's: not above what is free
	} {
		m := memory{shared: c.shared, used: c.used}
		a := account{alpha: c.alpha}
		if got := a.threshold(&m); got != c.want {
			t.Errorf("shared %d, used %d, alpha %g: %d, want %d", c.shared, c.used, c.alpha, got, c.want)
		}
	}
	// What the account uses itself counts as usable.
	m := memory{shared: 10 * mB, used: 9 * mB}
	a := account{alpha: 16, reserve: 4 * kB, held: 104 * kB}
	if got := a.threshold(&m); got != 1*mB+100*kB {
		t.Errorf("%d", got)
	}
	// A static threshold is what was asked for, or what there is.
	if a := (account{xoff: 96 * kiB}); a.threshold(&m) != 96*kiB {
		t.Errorf("static: %d", a.threshold(&m))
	}
	if a := (account{xoff: 2 * mB, held: 300 * kB}); a.threshold(&m) != 1300*kB {
		t.Errorf("static: %d", a.threshold(&m))
	}
}

// admit:   drop iff hdrm+size > headroom and shared_used+size > thr
// account: new = held+size; new <= reserve: reserved; new-reserve > thr: headroom;
//
//	else shared += min(size, new-reserve)
func TestAdmission(t *testing.T) {
	// 4 kB of reserve, 10 kB of headroom; what is shared is 80 kB, of which an eighth of what is
	// free may be used.
	for _, c := range []struct {
		name             string
		held, over, used units.Bytes // used: of the shared memory, by everybody
		size             units.Bytes
		admits           bool
		wantHeld, wantOv units.Bytes
		wantUsed         units.Bytes
	}{
		{"reserve", 0, 0, 0, 4000, true, 4000, 0, 0},
		{"reserve, nothing free", 0, 0, 80_000, 1000, true, 1000, 0, 80_000},
		{"half reserve, half shared", 3500, 0, 0, 1000, true, 4500, 0, 500},
		{"shared", 5000, 0, 1000, 1000, true, 6000, 0, 2000},
		{"up to the threshold", 12_000, 0, 8000, 1000, true, 13_000, 0, 9000},    // thr 9000, would use 9000
		{"above the threshold", 12_001, 0, 8001, 1000, true, 12_001, 1000, 8001}, // thr 8999, would use 9001
		{"above, others use it", 5000, 0, 78_000, 1000, true, 5000, 1000, 78_000},
		{"headroom to the brim", 13_000, 9000, 9000, 1000, true, 13_000, 10_000, 9000},
		{"headroom full", 13_000, 9001, 9000, 1000, false, 0, 0, 0},
		{"headroom full, reserve not", 0, 10_000, 80_000, 1000, true, 1000, 10_000, 80_000}, // ours
		{"headroom full, shared not", 4000, 10_000, 0, 1000, true, 5000, 10_000, 1000},
	} {
		m := memory{shared: 80_000, used: c.used}
		a := account{alpha: 1. / 8, reserve: 4000, headroom: 10_000, held: c.held, over: c.over}
		if got := a.admits(&m, c.size); got != c.admits {
			t.Errorf("%s: admits %t", c.name, got)
			continue
		}
		if !c.admits {
			continue
		}
		a.add(&m, c.size)
		if a.held != c.wantHeld || a.over != c.wantOv || m.used != c.wantUsed {
			t.Errorf("%s: held %d, headroom %d, shared %d; want %d, %d, %d", c.name, a.held, a.over, m.used, c.wantHeld, c.wantOv, c.wantUsed)
		}
	}
}

// release: take from headroom first, then shared, then reserve.
func TestRelease(t *testing.T) {
	for _, c := range []struct{ held, over, used, size, wantHeld, wantOver, wantUsed units.Bytes }{
		{13_000, 5000, 9000, 1000, 13_000, 4000, 9000},
		{13_000, 400, 9000, 1000, 12_400, 0, 8400},
		{13_000, 0, 9000, 1000, 12_000, 0, 8000},
		{4300, 0, 300, 1000, 3300, 0, 0},
		{4300, 200, 300, 1000, 3500, 0, 0},
		{4000, 0, 50, 1000, 3000, 0, 50},
	} {
		m := memory{shared: 80_000, used: c.used}
		a := account{alpha: 1. / 8, reserve: 4000, headroom: 10_000, held: c.held, over: c.over}
		a.remove(&m, c.size)
		if a.held != c.wantHeld || a.over != c.wantOver || m.used != c.wantUsed {
			t.Errorf("%+v: held %d, headroom %d, shared %d", c, a.held, a.over, m.used)
		}
	}
}

// pause when hdrm > 0 or shared_used >= thr; resume when hdrm == 0 and (shared_used == 0 or
// shared_used + offset <= thr); static: resume when hdrm == 0 and shared_used <= xon.
func TestPauseAndResume(t *testing.T) {
	dynamic := account{alpha: 1. / 8, reserve: 4000, headroom: 10_000, offset: 3000}
	static := account{xoff: 9000, xon: 6000, headroom: 10_000}
	for _, c := range []struct {
		a                account
		held, over, used units.Bytes
		pause, resume    bool
	}{
		{dynamic, 0, 0, 0, false, true},
		{dynamic, 12_888, 0, 8888, false, false}, // thr 8889
		{dynamic, 12_889, 0, 8889, true, false},  // thr 8888
		{dynamic, 10_222, 0, 6222, false, true},  // thr 9222
		{dynamic, 10_223, 0, 6223, false, false}, // thr 9222
		{dynamic, 5000, 1, 1000, true, false},
		{dynamic, 4000, 0, 80_000, true, true}, // nothing of the shared memory used, nothing free
		{static, 8999, 0, 8999, false, false},
		{static, 9000, 0, 9000, true, false},
		{static, 6001, 0, 6001, false, false},
		{static, 6000, 0, 6000, false, true},
		{static, 6000, 1, 6000, true, false},
	} {
		m := memory{shared: 80_000, used: c.used}
		a := c.a
		a.held, a.over = c.held, c.over
		if a.mustPause(&m) != c.pause || a.mayResume(&m) != c.resume {
			t.Errorf("alpha %g, held %d, headroom %d, used %d: pause %t, resume %t", a.alpha, c.held, c.over, c.used,
				a.mustPause(&m), a.mayResume(&m))
		}
	}
}

// A lossy queue may have alpha times what is free, and never more than is free.
func TestLossyThreshold(t *testing.T) {
	for _, c := range []struct {
		alpha             float64
		used, queue, size units.Bytes
		want              bool
	}{
		{1, 0, 79_000, 1000, true},
		{1, 40_000, 39_000, 1000, true},
		{1, 40_000, 39_001, 1000, false},
		{0.25, 40_000, 9000, 1000, true},
		{0.25, 40_000, 9001, 1000, false},
		{8, 79_500, 0, 501, false},
		{8, 79_500, 3500, 500, true},
		{0, 79_000, 70_000, 1000, true},
		{0, 79_000, 70_000, 1001, false},
	} {
		m := memory{shared: 80_000, used: c.used, alpha: c.alpha}
		if got := m.admits(c.queue, c.size); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// DT converges to the closed form: n queues that all want more than they get hold alpha/(1+n·alpha)
// of the memory each.
func TestDynamicThresholdsShareEvenly(t *testing.T) {
	for _, n := range []int{1, 2, 5, 16} {
		for _, alpha := range []float64{1. / 8, 1, 4} {
			m := memory{shared: 10 * mB, alpha: alpha}
			queues := make([]units.Bytes, n)
			for grew := true; grew; {
				grew = false
				for i := range queues {
					if m.admits(queues[i], 100) {
						queues[i] += 100
						m.used += 100
						grew = true
					}
				}
			}
			want := alpha / (1 + float64(n)*alpha) * float64(m.shared)
			for i, q := range queues {
				if float64(q) < want-1000 || float64(q) > want+1000 {
					t.Errorf("%d queues, alpha %g: queue %d has %d, want %.0f", n, alpha, i, q, want)
				}
			}
		}
	}
}

// Whatever comes and goes: no part is negative or beyond its size, nothing is left at the end, and
// what was held is always the sum of what was added.
func TestAccountsConserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := memory{shared: units.Bytes(rapid.IntRange(1, 50_000).Draw(t, "shared"))}
		accounts := make([]account, rapid.IntRange(1, 4).Draw(t, "accounts"))
		packets := make([][]units.Bytes, len(accounts))
		for i := range accounts {
			accounts[i] = account{
				reserve:  units.Bytes(rapid.IntRange(0, 5000).Draw(t, "reserve")),
				headroom: units.Bytes(rapid.IntRange(0, 20_000).Draw(t, "headroom")),
			}
			if rapid.Bool().Draw(t, "dynamic") {
				accounts[i].alpha = rapid.SampledFrom([]float64{0.0625, 0.125, 1, 16}).Draw(t, "alpha")
			} else {
				accounts[i].xoff = units.Bytes(rapid.IntRange(1, 30_000).Draw(t, "xoff"))
			}
		}
		check := func() {
			used := units.Bytes(0)
			for i := range accounts {
				a := &accounts[i]
				sum := units.Bytes(0)
				for _, p := range packets[i] {
					sum += p
				}
				used += a.shared()
				if a.held+a.over != sum || a.held < 0 || a.over < 0 || a.over > a.headroom {
					t.Fatalf("account %d: %+v holds %d", i, a, sum)
				}
			}
			if used != m.used || used > m.shared {
				t.Fatalf("used %d, counted %+v", used, m)
			}
		}
		for range 200 {
			i := rapid.IntRange(0, len(accounts)-1).Draw(t, "i")
			a := &accounts[i]
			if size := units.Bytes(rapid.IntRange(1, 2000).Draw(t, "size")); rapid.IntRange(0, 2).Draw(t, "what") > 0 {
				if a.admits(&m, size) {
					a.add(&m, size)
					packets[i] = append(packets[i], size)
				} else if a.held+size <= a.reserve {
					t.Fatalf("%+v refuses %d", a, size)
				}
			} else if len(packets[i]) > 0 {
				a.remove(&m, packets[i][0])
				packets[i] = packets[i][1:]
			}
			check()
		}
	})
}

func TestAlphaAt(t *testing.T) {
	for rate, want := range map[units.Bandwidth]float64{25: 0.125, 99: 0.125, 100: 0.125, 199: 0.125, 200: 0.25, 400: 0.5, 800: 1} {
		if got := AlphaAt(0.125, 100*units.Gbps, rate*units.Gbps); got != want {
			t.Errorf("%d: %g, want %g", rate, got, want)
		}
	}
}
