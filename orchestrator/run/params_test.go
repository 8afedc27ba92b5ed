package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/transport"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/units"
)

// The presets of a lab are the sets of the transport, at every rate, and so are their switches.
func TestPresetsAreTheSetsOfTheTransport(t *testing.T) {
	names := map[string]string{"sigcomm15": "paper", "alibaba": "mellanox"}
	for _, set := range dcqcn.Sets() {
		name := set.Name
		if n, ok := names[name]; ok {
			name = n
		}
		l := parse(t, star+"transport: {kind: roce, roce: {preset: "+name+"}}")
		for _, line := range []units.Bandwidth{10 * units.Gbps, 25 * units.Gbps, 40 * units.Gbps, 100 * units.Gbps, 400 * units.Gbps} {
			if diff := cmp.Diff(set.Params(line), dcqcnParams(l.Transport.RoCE, line)); diff != "" {
				t.Errorf("%s at %v, -transport +lab:\n%s", name, line, diff)
			}
			e := l.Queues.ECN
			got := dcqcn.Marking{Kmin: e.Kmin.On(line, 0), Kmax: e.Kmax.On(line, 0), Pmax: e.Pmax}
			// simai's is a table of three rates; its value at 100 Gb/s scales with the link here.
			if set.Marking != nil && (name != "simai" || line == 100*units.Gbps) && got != set.Marking(line) {
				t.Errorf("%s at %v: marks at %+v, the transport says %+v", name, line, got, set.Marking(line))
			}
		}
	}
}

// What a lab leaves open is what the transports come with.
func TestDefaultsAreThoseOfTheTransports(t *testing.T) {
	line := 100 * units.Gbps
	lone := func(kind string) string { return star + "transport: {kind: " + kind + "}" }
	if diff := cmp.Diff(dcqcn.Defaults(), dcqcnParams(parse(t, lone("roce")).Transport.RoCE, line)); diff != "" {
		t.Errorf("roce: %s", diff)
	}
	if diff := cmp.Diff(swift.Defaults(), swiftParams(parse(t, lone("swift")).Transport.Swift)); diff != "" {
		t.Errorf("swift: %s", diff)
	}
	if diff := cmp.Diff(hpcc.Defaults(), hpccParams(parse(t, lone("hpcc")).Transport.HPCC, line)); diff != "" {
		t.Errorf("hpcc: %s", diff)
	}
	for _, kind := range []string{"strack", "spray"} {
		p := parse(t, lone(kind)).Transport.STrack
		if diff := cmp.Diff(strack.Defaults(), strackParams(p)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		recovery := transport.Selective{
			AckEvery: transport.DefaultAckEvery, Threshold: transport.DefaultThreshold, ProbeAfter: transport.DefaultProbeAfter,
		}
		if diff := cmp.Diff(recovery, selective(p)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	want := pc4.Defaults()
	want.InitialWindow = 0 // it starts from the base rate
	if diff := cmp.Diff(want, pc4Params(parse(t, lone("pc4")).Transport.PC4)); diff != "" {
		t.Errorf("pc4: %s", diff)
	}
}
