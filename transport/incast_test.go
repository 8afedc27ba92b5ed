package transport_test

import (
	"flag"
	"fmt"
	"testing"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/internal/testnet"
	"weft/units"
)

var scan = flag.Bool("scan", false, "print the parameter scan behind docs/adr/0011")

// rttMean is an observer that averages round trips.
type rttMean struct {
	n           int64
	rtt, oneWay units.Time
	from        units.Time
}

func (m *rttMean) Acked(now units.Time, _ transport.ConnID, rtt, oneWay units.Time) {
	if now < m.from {
		return
	}
	m.n++
	m.rtt += rtt
	m.oneWay += oneWay
}

func (m *rttMean) Window(units.Time, transport.ConnID, units.Bytes, units.Bandwidth) {}

type incastResult struct {
	baseRTT, meanRTT units.Time
	slowdown, min    float64
	dropped          int
	maxQueue         units.Bytes
}

// incast runs n hosts sending size bytes each to one.
func incast(t testing.TB, n int, size units.Bytes, p pc4.Params) incastResult {
	m := &rttMean{}
	net, err := testnet.New(testnet.Config{
		Hosts: n + 1, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4096, Buffer: 300 * units.KB,
		Observer: func(int) transport.Observer { return m },
	})
	if err != nil {
		t.Fatal(err)
	}
	var last, first units.Time
	for i := 1; i <= n; i++ {
		c := transport.ConnID(i)
		err := net.Connect(transport.Spec{
			ID: c, Src: transport.HostID(i), Dst: 0, Kind: "pc4", PC4: p, Initial: 100 * units.Gbps / units.Bandwidth(n),
		})
		if err != nil {
			t.Fatal(err)
		}
		net.Hosts[0].Expect(c, 1)
		net.Events[i] = func(e transport.Event) {
			last = e.At
			if first == 0 {
				first = e.At
			}
		}
	}
	net.Events[0] = func(e transport.Event) { net.Hosts[0].Expect(e.Conn, -1) }
	for i := 1; i <= n; i++ {
		if err := net.Send(i, transport.ConnID(i), transport.Message{ID: 1, Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	net.Run(units.Second)
	base := net.Paths.Delay(4096+56+46) + net.Paths.Delay(52+46)
	packets := (size + 4095) / 4096
	alone := base + (100*units.Gbps).TransmitTime(4198)*units.Time(packets-1)
	return incastResult{
		baseRTT: base, meanRTT: m.rtt / units.Time(max(m.n, 1)), slowdown: float64(last) / float64(alone), min: float64(first) / float64(alone), dropped: net.Dropped,
		maxQueue: net.MaxQueue,
	}
}

func TestScan(t *testing.T) {
	if !*scan {
		t.Skip("run with -scan")
	}
	for _, paced := range []float64{1, 2, 4, 1000} {
		for _, soft := range []float64{0, 2} {
			pc4.PacedBelow, pc4.Soft = paced, soft
			for _, ai := range []float64{0.005, 0.01, 0.02} {
				p := pc4.Defaults()
				p.AI, p.HAI = ai, 2*ai
				s := ""
				for _, n := range []int{1, 2, 4, 8, 10, 16} {
					r := incast(t, n, 40*units.MB/units.Bytes(n), p)
					s += fmt.Sprintf(" |%2d: %.2f sd %.3f-%.3f q %3d d%d", n, float64(r.meanRTT)/float64(r.baseRTT+p.TargetQtime), r.min/float64(n), r.slowdown/float64(n), r.maxQueue/1000, r.dropped)
				}
				fmt.Printf("paced<%-4v soft %v ai %.3f%s\n", paced, soft, ai, s)
			}
		}
	}
}
