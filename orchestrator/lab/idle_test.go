package lab

import (
	"strings"
	"testing"
)

// A parameter that is written and would do nothing is refused where it stands, with a way out; one
// that nobody wrote is not.
func TestIdleParametersAreRefused(t *testing.T) {
	const roce, mtu = "transport: {kind: roce, roce: ", "\nqueues: {ecn: off}"
	for _, c := range []struct{ text, path, says string }{
		{"transport: {kind: swift, swift: {fs_range: 0s, fs_min: 1}}", "transport.swift.fs_min", "fs_range is 0"},
		{"transport: {kind: swift, swift: {fs_range: 0s, fs_max: 99}}", "transport.swift.fs_max", "expected an fs_range such as 100us"},
		{"transport: {kind: swift, swift: {fs_range: 0s}}", "", ""},
		{"transport: {kind: swift, swift: {fs_min: 1}}\nsweep: {transport.swift.fs_range: [0s, 10us]}", "", ""},
		{"transport: {kind: swift, swift: {initial_window: 80KB, max_window: 70KB}}", "transport.swift.initial_window", "above max_window, 70KB"},
		{"transport: {kind: swift, swift: {initial_window: 70KB, max_window: 70KB}}", "", ""},
		{"transport: {kind: swift, swift: {initial_window: 14B}}", "transport.swift.initial_window", "below min_window, 15B"},
		{"transport: {kind: swift, swift: {retx_reset: 8}}", "transport.swift.retx_reset", "above tries, 7"},
		{"transport: {kind: swift, swift: {retx_reset: 7}}", "", ""},
		{"transport: {kind: swift, swift: {tries: 3}}", "", ""},
		{roce + "{split: messages}}", "transport.roce.split", "expected qps above 1"},
		{roce + "{split: messages, qps: 2}}", "", ""},
		{roce + "{rai: 5Mbps}}" + mtu, "transport.roce.rai", "queues.ecn is off"},
		{roce + "{preset: paper}}" + mtu, "transport.roce.preset", "expected queues.ecn: on"},
		{roce + "{recovery: selective-repeat, rto_min: 1ms, tries: 3, qps: 2, split: messages}}" + mtu, "", ""},
		{roce + "{rai: 5Mbps}}\nsweep: {queues.ecn: [on, off]}", "", ""},
		{"transport: {kind: pc4, roce: {rai: 5Mbps}}\nsweep: {transport.kind: [pc4, roce]}\nqueues: {ecn: {kmin: 1KB, kmax: 2KB}}", "", ""},
		{"transport: {kind: ccm, ccm: {roce: {qps: 2}}}", "transport.ccm.roce.qps", "a recovery of its own"},
		{"transport: {kind: ccm, ccm: {roce: {recovery: go-back-n}}}", "transport.ccm.roce.recovery", "a recovery of its own"},
		{"transport: {kind: ccm, ccm: {inner: swift, swift: {recovery: go-back-n}}}", "transport.ccm.swift.recovery", "a recovery of its own"},
		{"transport: {kind: ccm, ccm: {inner: pc4, pc4: {recovery: go-back-n}}}", "transport.ccm.pc4.recovery", "a recovery of its own"},
		{"transport: {kind: ccm}\nqueues: {routing: ecmp}", "queues.routing", "whatever this says"},
		{"transport: {kind: ccm}\nqueues: {routing: spray}", "", ""},
		{"transport: {kind: ccm}\nqueues: {routing: spray}\nsweep: {transport.kind: [ccm, pc4]}", "", ""},
		{"transport: {kind: spray, strack: {fresh_paths: false}}", "transport.strack.fresh_paths", "takes paths in turn"},
		{"transport: {kind: spray, strack: {fresh_paths: false}}\nsweep: {transport.kind: [strack, spray]}", "", ""},
		{"transport: {kind: pc4, pc4: {rtt: measured, paced_below: 8}}", "transport.pc4.paced_below", "every window is paced"},
		{"transport: {kind: pc4, pc4: {target_qtime: 0s, ai: 1%}}", "transport.pc4.ai", "not above epsilon, 100ns"},
		{"transport: {kind: pc4, pc4: {target_qtime: scaled, ai: 1%}}", "", ""},
		{"transport: {kind: strack, strack: {md_requires_ecn: true, gamma: 0.5}}" + mtu, "transport.strack.gamma", "queues.ecn is off"},
		{"queues: {ecn: {kmin: 1bdp, kmax: 1bdp, pmax: 0.5}}", "queues.ecn.pmax", "both are 1bdp"},
		{"queues: {ecn: {kmin: 1bdp, kmax: 1bdp, pmax: 1}}", "", ""},
		{"report: [busbw, rates]", "report.1", "set measure.rates"},
		{"report: [credit, busbw]\nmeasure: {rates: 1us}", "report.0", "set measure.cwnd"},
		{"report: [rates, queues]\nmeasure: {rates: 1us}", "", ""},
		{"report: [rates]\nsweep: {measure.rates: [off, 1us]}", "", ""},
		{"report: [busbw]\nmeasure: {view: off}", "", ""},
	} {
		_, err := Parse("lab.yaml", []byte("weft: 1\nname: x\ntopology: {kind: star, hosts: 3}\n"+c.text), Options{})
		switch {
		case c.path == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.path != "" && (err == nil || !strings.Contains(err.Error(), ": "+c.path+": ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want one problem of %s that says %q", c.text, err, c.path, c.says)
		}
	}
}
