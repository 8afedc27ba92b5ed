package transport

import (
	"slices"
	"strings"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/transport/cc/uec"
	"weft/units"
)

// written returns parameters with their defaults, but for what set writes.
func written[T any, S interface {
	*T
	params.Section
}](set func(*T)) T {
	p := params.Defaults[T, S]()
	set(&p)
	return p
}

// A written window, or what a window follows from, that leaves the path of one connection empty is
// named, for good or while it grows; one that fills it is not, and neither is a default.
func TestWindowsThatLeaveTheirPathEmpty(t *testing.T) {
	const kb, us = units.KB, units.Microsecond
	none := func(*swift.Params) {}
	most := func(p *swift.Params) { p.MaxWindow = 10 * kb }
	first := func(p *swift.Params) { p.InitialWindow = 5 * kb }
	both := func(p *swift.Params) { p.MaxWindow, p.InitialWindow = 30*kb, 5*kb }
	inside := func(set func(*swift.Params)) ccm.Params {
		p := written(set)
		return ccm.Params{Swift: &p, Timeout: units.Millisecond, Paths: 1, LastResort: ccm.Tag}
	}
	open := func(base string) pc4.Params {
		return written(func(p *pc4.Params) { p.BaseRate, p.Initial, p.InitialWindow = base, pc4.AtWindow, 10*kb })
	}
	utilization := func(t units.Time) hpcc.Params { return written(func(p *hpcc.Params) { p.BaseRTT = t }) }
	cwnd := func(p *strack.Params) { p.MaxCWND = 0.5 }
	credits := func(most, rate float64) uec.Params {
		return uec.Params{CC: uec.RCCC, Entropies: 64, MaxCWND: most, CreditRate: rate, PerCredit: 16 * units.KiB}
	}
	const fast, slow = 100 * units.Gbps, 10 * units.Gbps // the path holds 159 KB, or 20 KB
	for _, x := range []struct {
		name, kind string
		p          cc.Params
		narrow     units.Bandwidth // of the second link
		delay      units.Time      // of the path, in one direction
		want       []string
	}{
		{"Swift", "swift", written(none), fast, 6 * us, nil},
		{"Swift, a small window", "swift", written(most), fast, 6 * us, []string{"swift.max_window"}},
		{"Swift, a small first window", "swift", written(first), fast, 6 * us, []string{"swift.initial_window"}},
		{"Swift, a smaller first window", "swift", written(both), fast, 6 * us, []string{"swift.max_window"}},
		{"Swift, a window for the slow link", "swift", written(both), slow, 6 * us, nil},
		{"Swift, too small for it", "swift", written(most), slow, 6 * us, []string{"swift.max_window"}},
		{"Swift in CCM", "ccm", inside(none), fast, 6 * us, nil},
		{"Swift in CCM, a small window", "ccm", inside(most), fast, 6 * us, []string{"ccm.swift.max_window"}},
		{"Swift in CCM, a small first one", "ccm", inside(first), fast, 6 * us, []string{"ccm.swift.initial_window"}},
		{"Swift in CCM, a short path", "ccm", inside(none), fast, us / 4, nil},
		{"HPCC", "hpcc", utilization(0), fast, 6 * us, nil},
		{"HPCC, a short t", "hpcc", utilization(us), fast, 6 * us, []string{"hpcc.t"}},
		{"HPCC, a longer t", "hpcc", utilization(25 * us), fast, 6 * us, nil},
		{"HPCC, a long t", "hpcc", utilization(50 * us), fast, 6 * us, []string{"hpcc.t"}},
		{"PC4", "pc4", pc4.Defaults(), fast, 6 * us, nil},
		{"PC4 at a window, with base rates", "pc4", open(pc4.Controller), fast, 6 * us, nil},
		{"PC4 at a window, counting flows", "pc4", open(pc4.Observed), fast, 6 * us, nil},
		{"PC4 at a window, with Table I", "pc4", open(pc4.Table), fast, 6 * us, nil},
		{"PC4 at a window, without", "pc4", open(pc4.Off), fast, 6 * us, []string{"pc4.initial"}},
		{"STrack, half a window", "strack", written(cwnd), fast, 6 * us, []string{"strack.max_cwnd"}},
		{"spray, half a window", "spray", written(cwnd), fast, 6 * us, []string{"strack.max_cwnd"}},
		{"UEC", "uec", written(func(*uec.Params) {}), fast, us / 4, nil},
		{"UEC, one packet", "uec", written(func(p *uec.Params) { p.CWND = 1 }), fast, us / 4, []string{"uec.cwnd"}},
		{"UEC, half a window", "uec", written(func(p *uec.Params) { p.MaxCWND = 0.5 }), fast, 6 * us,
			[]string{"uec.max_cwnd"}},
		{"UEC, credits", "uec", credits(1.5, 0.99), fast, 6 * us, nil},
		{"UEC, few credits", "uec", credits(1.5, 0.5), fast, 6 * us, []string{"uec.credit_rate"}},
		{"UEC, little credit", "uec", credits(0.1, 0.99), fast, 6 * us, []string{"uec.max_cwnd"}},
		{"HPCC, half of each link", "hpcc", written(func(p *hpcc.Params) { p.Eta = 0.5 }), fast, 6 * us,
			[]string{"hpcc.eta"}},
		{"RoCE, a rate", "roce", params.Defaults[dcqcn.Params](), fast, 6 * us, nil},
	} {
		there := Path{Propagation: x.delay, Rates: []units.Bandwidth{fast, x.narrow}}
		back := Path{Propagation: x.delay, Rates: []units.Bandwidth{x.narrow, fast}}
		s := &Spec{ID: 1, Dst: 1, Kind: x.kind, CC: x.p, Forward: there, Reverse: back}
		cfg := Config{MTU: 4096, LineRate: fast}
		var err error
		if s.Selects() {
			s.Selective.AckEvery, err = AckEvery(cfg, s)
		}
		var found []cc.Misfit
		if err == nil {
			found, err = Misfits(cfg, s, 0)
		}
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var got []string
		for _, m := range found {
			got = append(got, strings.TrimPrefix(m.Key, "transport."))
			if !strings.Contains(m.What, "; expected ") {
				t.Errorf("%s: no way out: %s", x.name, m.What)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v: %v", x.name, got, x.want, found)
		}
	}
}

// A connection alone has the whole path, whatever a controller has planned for it among others.
func TestPlannedSharesAreNoMisfits(t *testing.T) {
	link := Path{Propagation: 6 * units.Microsecond, Rates: []units.Bandwidth{100 * units.Gbps, 100 * units.Gbps}}
	s := &Spec{ID: 1, Dst: 1, Kind: "pc4", CC: pc4.Defaults(), Forward: link, Reverse: link, Initial: units.Gbps}
	if found, err := Misfits(Config{MTU: 4096, LineRate: 100 * units.Gbps}, s, 0); err != nil || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}
