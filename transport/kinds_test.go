package transport

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weft/transport/cc"
	"weft/transport/cc/hpcc"
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

func newToy(p toyParams, l cc.Link) *toy { return &toy{units.Bytes(p.Packets), l.Packet} }

func (*toy) OnStart(units.Time)          {}
func (*toy) OnSent(units.Time, cc.Sent)  {}
func (*toy) OnAck(units.Time, cc.Ack)    {}
func (*toy) OnLoss(units.Time, cc.Loss)  {}
func (c *toy) Window() units.Bytes       { return c.packets * c.packet }
func (*toy) PacingRate() units.Bandwidth { return 0 }
func toyNetwork() Path {
	return Path{Propagation: units.Microsecond, Rates: []units.Bandwidth{100 * units.Gbps}}
}
func toySpec(p cc.Params, k string) Spec {
	return Spec{ID: 1, Dst: 1, Kind: k, CC: p, Forward: toyNetwork(), Reverse: toyNetwork()}
}
func registered(t *testing.T, k ...kind) {
	was := kinds
	kinds = append(was[:len(was):len(was)], k...)
	t.Cleanup(func() { kinds = was })
}
func opened(t *testing.T, h HostID, s Spec) *Endpoint {
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

// Who is meant for a lossless network says so where it is registered.
func TestWantsLossless(t *testing.T) {
	for name, want := range map[string]bool{"roce": true, "hpcc": true, "swift": false, "pc4": false, "strack": false, "gossip": false} {
		if got := WantsLossless(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A congestion control is its package and a line of the table: with those it crosses to a node as JSON, and carries a message, a
// window at a time.
func TestOneLineRegistersACongestionControl(t *testing.T) {
	registered(t, register("toy", plain(newToy)))
	text, err := json.Marshal(toySpec(toyParams{Packets: 3}, "toy"))
	if err != nil {
		t.Fatal(err)
	}
	var s Spec
	if err := json.Unmarshal(text, &s); err != nil || s.CC != (toyParams{Packets: 3}) {
		t.Fatalf("%v: %s came back as %+v", err, text, s)
	}
	a, b := opened(t, 0, s), opened(t, 1, s)
	if err := a.Send(0, 1, Message{ID: 7, Size: 8000}); err != nil {
		t.Fatal(err)
	}
	var rounds []int
	now := units.Time(0)
	for len(rounds) < 10 {
		now += units.Microsecond
		sent := deliver(t, now, a, b)
		if sent == 0 {
			break
		}
		rounds = append(rounds, sent)
		now += units.Microsecond
		deliver(t, now, b, a)
	}
	if len(rounds) != 3 || rounds[0] != 3 || rounds[1] != 3 || rounds[2] != 2 {
		t.Errorf("8 packets left as %v, want windows of 3", rounds)
	}
}

// deliver hands everything that may leave from one endpoint to the other.
func deliver(t *testing.T, now units.Time, from, to *Endpoint) (packets int) {
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

// What a connection is set to must be its kind's, and in range; every kind reads back what it writes.
func TestKindsRefuseWhatIsNotTheirs(t *testing.T) {
	registered(t, register("toy", plain(newToy)))
	for want, s := range map[string]Spec{
		"toy: no packets":                toySpec(toyParams{}, "toy"),
		"toy has parameters hpcc.Params": toySpec(hpcc.Defaults(), "toy"),
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
	if !AsksTelemetry("hpcc") || AsksTelemetry("toy") || AsksTelemetry("tcp") {
		t.Error("telemetry is asked for by the wrong ones")
	}
}
