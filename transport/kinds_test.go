package transport

import (
	"encoding/json"
	"errors"
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
	"weft/units"
)

// toy is a congestion control as simple as can be: a window that never changes.
type toy struct{ packets, packet units.Bytes }

// toyParams are its parameters.
type toyParams struct{ Packets int }

func (p toyParams) Check() error {
	if p.Packets < 1 {
		return errors.New("toy: no packets")
	}
	return nil
}

// newToy returns a controller with a fixed window.
func newToy(p toyParams, l cc.Link) *toy { return &toy{units.Bytes(p.Packets), l.Packet} }

func (*toy) OnStart(units.Time)          {}
func (*toy) OnSent(units.Time, cc.Sent)  {}
func (*toy) OnAck(units.Time, cc.Ack)    {}
func (*toy) OnLoss(units.Time, cc.Loss)  {}
func (c *toy) Window() units.Bytes       { return c.packets * c.packet }
func (*toy) PacingRate() units.Bandwidth { return 0 }

// toyPath returns a path of one link: 100 Gb/s, 1 us.
func toyPath() Path {
	return Path{Propagation: units.Microsecond, Rates: []units.Bandwidth{100 * units.Gbps}}
}

// toySpec returns a connection to host 1 on toyPath.
func toySpec(p cc.Params, k string) Spec {
	return Spec{ID: 1, Dst: 1, Kind: k, CC: p, Forward: toyPath(), Reverse: toyPath()}
}

// registerKinds adds transports for the rest of the test.
func registerKinds(t *testing.T, k ...kind) {
	was := kinds
	kinds = append(was[:len(was):len(was)], k...)
	t.Cleanup(func() { kinds = was })
}

// endpointWith returns an endpoint of host h with one connection open.
func endpointWith(t *testing.T, h HostID, s Spec) *Endpoint {
	t.Helper()
	e, err := New(Config{Host: h, MTU: 1000, LineRate: 100 * units.Gbps})
	if err == nil {
		err = e.Open(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Transports for lossless networks have the fact in their registration.
func TestLosslessTransports(t *testing.T) {
	for name, want := range map[string]bool{"roce": true, "hpcc": true, "swift": false, "pc4": false, "strack": false, "gossip": false} {
		if got := FactsOf(name).Lossless; got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A congestion control is its package and a line of the table: with those it crosses to a node as
// JSON, and carries a message, a window at a time.
func TestOneLineRegistersACongestionControl(t *testing.T) {
	registerKinds(t, register("toy", "", nil, plain(newToy)))
	text, err := json.Marshal(toySpec(toyParams{Packets: 3}, "toy"))
	if err != nil {
		t.Fatal(err)
	}
	var s Spec
	if err := json.Unmarshal(text, &s); err != nil || s.CC != (toyParams{Packets: 3}) {
		t.Fatalf("%v: %s came back as %+v", err, text, s)
	}
	a, b := endpointWith(t, 0, s), endpointWith(t, 1, s)
	if err := a.Send(0, 1, Message{ID: 7, Size: 8000}); err != nil {
		t.Fatal(err)
	}
	var rounds []int
	now := units.Time(0)
	for len(rounds) < 10 {
		now += units.Microsecond
		sent := carryAll(t, now, a, b)
		if sent == 0 {
			break
		}
		rounds = append(rounds, sent)
		now += units.Microsecond
		carryAll(t, now, b, a)
	}
	if len(rounds) != 3 || rounds[0] != 3 || rounds[1] != 3 || rounds[2] != 2 {
		t.Errorf("8 packets left as %v, want windows of 3", rounds)
	}
}

// carryAll moves every packet that may leave one endpoint to the other, and returns their number.
func carryAll(t *testing.T, now units.Time, from, to *Endpoint) (packets int) {
	t.Helper()
	var out Outgoing
	for from.Transmit(now, &out) {
		packets++
		if _, err := to.Receive(now, &Incoming{At: now, Src: from.cfg.Host, Header: out.Header[:out.N], Payload: out.Payload}); err != nil {
			t.Fatal(err)
		}
	}
	return packets
}

// Parameters must be of the connection's kind and in range; every kind decodes what it encodes.
func TestKindsRefuseWhatIsNotTheirs(t *testing.T) {
	registerKinds(t, register("toy", "", nil, plain(newToy)))
	for want, s := range map[string]Spec{
		"toy: no packets":                toySpec(toyParams{}, "toy"),
		"toy has parameters hpcc.Params": toySpec(params.Defaults[hpcc.Params](), "toy"),
		"hpcc has parameters <nil>":      toySpec(nil, "hpcc"),
		`unknown kind "tcp"`:             toySpec(toyParams{Packets: 1}, "tcp"),
	} {
		e, err := New(Config{MTU: 1000, LineRate: units.Gbps})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Open(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, text := range []string{`{"Kind": "tcp"}`, `{"Kind": "toy", "CC": {"Packets": "three"}}`, `{"ID": "x"}`} {
		if err := json.Unmarshal([]byte(text), new(Spec)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	if !FactsOf("hpcc").Telemetry || FactsOf("toy").Telemetry || FactsOf("tcp").Telemetry {
		t.Error("telemetry is asked for by the wrong ones")
	}
}

// The conditions of a transport are in its registration; those of go-back-N go away with selective
// repeat.
func TestNeedsOfTransports(t *testing.T) {
	d, c := params.Defaults[dcqcn.Params](), func(p ccm.Params) ccm.Params { p.Timeout, p.Paths = units.Millisecond, 1; return p }
	pc, sw := pc4.Defaults(), params.Defaults[swift.Params]()
	alone := pc
	alone.BaseRate = pc4.Off
	for _, x := range []struct {
		kind, recovery string
		p              cc.Params
		want           []Condition
	}{
		{"pc4", "", pc, []Condition{SyncedClocks, Announced, InOrder}},
		{"pc4", "", alone, []Condition{SyncedClocks, InOrder}},
		{"roce", "", d, []Condition{Marks, Lossless, InOrder}},
		{"roce", SelectiveRepeat, d, []Condition{Marks}},
		{"swift", "", sw, []Condition{InOrder}},
		{"hpcc", "", params.Defaults[hpcc.Params](), []Condition{Lossless, OnePath, InOrder}},
		{"hpcc", SelectiveRepeat, params.Defaults[hpcc.Params](), []Condition{OnePath}},
		{"pc4", SelectiveRepeat, pc, []Condition{SyncedClocks, Announced}},
		{"swift", SelectiveRepeat, sw, nil},
		{"strack", "", params.Defaults[strack.Params](), []Condition{Marks}},
		{"spray", "", params.Defaults[strack.Params](), []Condition{Marks}},
		{"ccm", SelectiveRepeat, c(ccm.Params{DCQCN: &d, LastResort: ccm.Tag}), []Condition{Marks}},
		{"ccm", GoBackN, c(ccm.Params{DCQCN: &d, LastResort: ccm.Tag}), []Condition{Marks, Lossless, InOrder}},
		{"ccm", SelectiveRepeat, c(ccm.Params{Swift: &sw, LastResort: ccm.Tag}), nil},
		{"ccm", GoBackN, c(ccm.Params{PC4: &pc, LastResort: ccm.Tag}), []Condition{SyncedClocks, Announced, InOrder}},
		{"ccm", SelectiveRepeat, c(ccm.Params{PC4: &pc, LastResort: ccm.Tag}), []Condition{SyncedClocks, Announced}},
		{"ccm", SelectiveRepeat, c(ccm.Params{PC4: &alone, LastResort: ccm.Tag}), []Condition{SyncedClocks}},
	} {
		needs, err := NeedsOf(x.kind, x.p, x.recovery)
		var got []Condition
		for _, n := range needs {
			got = append(got, n.Condition)
			if n.Why == "" {
				t.Errorf("%s does not say why it needs %d", x.kind, n.Condition)
			}
		}
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("%s by %q: %v, %v, want %v", x.kind, x.recovery, got, err, x.want)
		}
	}
	if _, err := NeedsOf("gossip", pc, ""); err == nil {
		t.Error("an unknown transport needs something")
	}
}

// Each key by which a controller helps senders has the values that its registration names. Without
// the help of all, the controller's plan and the flows that it announces change neither a sender's
// start nor what a receiver tells it; with that of one, they do.
func TestHelpOfControllers(t *testing.T) {
	start := func(kind string, set map[string]string, planned units.Bandwidth) [3]int64 {
		section, _, _ := SectionOf(kind)
		params.SetDefaults(section)
		found := 0
		for _, k := range section.Keys() {
			if text, ok := set[k.Name]; ok {
				found++
				if _, err := k.Value.Set(text, false); err != nil {
					t.Errorf("%s: %s: %v", kind, k.Name, err)
				}
			}
		}
		if found < len(set) {
			t.Errorf("%s has %d of the keys %v", kind, found, set)
		}
		c := Spec{ID: 1, Kind: kind, Initial: planned}
		section.Set(&c)
		k, err := kindOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		built, err := k.scheme(&c)
		if err != nil {
			t.Fatal(err)
		}
		const line = 100 * units.Gbps
		sender := built.controller(cc.Link{Line: line, MTU: 4096, Packet: 4200, Baseline: 5 * units.Microsecond, BaseRTT: 10 * units.Microsecond})
		sender.OnStart(0)
		told := built.receiver(line).OnData(0, cc.Data{Size: 4200, Expected: int(line / planned), Observed: 1})
		return [3]int64{int64(sender.Window()), int64(sender.PacingRate()), int64(told.BaseRate)}
	}
	cases := 0
	for _, kind := range Kinds() {
		help := FactsOf(kind).Help
		try := func(key, value string) {
			set := map[string]string{}
			for _, h := range help {
				set[h.Key] = h.Without
			}
			if key != "" {
				set[key] = value
			}
			cases++
			one, two := start(kind, set, 10*units.Gbps), start(kind, set, 20*units.Gbps)
			if (one == two) != (key == "") {
				t.Errorf("%s with %v: %v and %v for plans of 10 and 20 Gb/s", kind, set, one, two)
			}
		}
		if len(help) > 0 {
			try("", "")
		}
		for _, h := range help {
			for _, value := range h.Values {
				try(h.Key, value)
			}
		}
	}
	if cases < 4 {
		t.Errorf("only %d cases", cases)
	}
}
