package fabric

import (
	"testing"

	"weft/eventqueue"
	"weft/units"
)

// wiring builds a Config: links in both directions, and routes over all shortest paths.
type wiring struct {
	Config
	port PortConfig // settings of the ports that link adds
}

// wire returns the nodes of a network without links, whose ports have 100 Gb/s, 1 µs and a big
// buffer.
func wire(hosts, switches int) *wiring {
	w := &wiring{port: PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}, Buffer: units.GB}}
	w.Hosts = hosts
	w.Switches = make([]SwitchConfig, switches)
	for s := range w.Switches {
		w.Switches[s].Seed = uint64(s) + 1
	}
	return w
}

// link joins two nodes and returns the port from a to b; the port back follows it.
func (w *wiring) link(a, b int) int {
	p := w.port
	p.From, p.To = NodeID(a), NodeID(b)
	w.Ports = append(w.Ports, p)
	p.From, p.To = NodeID(b), NodeID(a)
	w.Ports = append(w.Ports, p)
	return len(w.Ports) - 2
}

// route fills in every switch's groups: for each host all neighbours one step closer.
func (w *wiring) route() Config {
	for s := range w.Switches {
		w.Switches[s].Route = make([]int32, w.Hosts)
		w.Switches[s].Groups = nil
	}
	for h := range w.Hosts {
		steps := w.stepsTo(h)
		for s := range w.Switches {
			sw := &w.Switches[s]
			var ports []int32
			for i, p := range w.Ports {
				if int(p.From) == w.Hosts+s && steps[p.From] > 0 && steps[p.To] == steps[p.From]-1 {
					ports = append(ports, int32(i))
				}
			}
			sw.Route[h] = -1
			if len(ports) > 0 {
				sw.Route[h] = int32(len(sw.Groups))
				sw.Groups = append(sw.Groups, ports)
			}
		}
	}
	return w.Config
}

// stepsTo returns each node's distance to host h in links; -1 where there is no path. Hosts do not
// forward.
func (w *wiring) stepsTo(h int) []int {
	steps := make([]int, w.Hosts+len(w.Switches))
	for i := range steps {
		steps[i] = -1
	}
	steps[h] = 0
	for next := []int{h}; len(next) > 0; next = next[1:] {
		if at := next[0]; at == h || at >= w.Hosts {
			for _, p := range w.Ports {
				if int(p.To) == at && steps[p.From] < 0 {
					steps[p.From] = steps[at] + 1
					next = append(next, int(p.From))
				}
			}
		}
	}
	return steps
}

// chain returns a network of host 0, a number of switches in a row, and host 1.
func chain(switches int) *wiring {
	w := wire(2, switches)
	at := 0
	for s := range switches {
		w.link(at, 2+s)
		at = 2 + s
	}
	w.link(at, 1)
	return w
}

// funnel is hosts 1, 2, ... that send to host 0 through one switch. The port to host 0 has the
// settings of last; it is port 0.
func funnel(senders int, last PortConfig) *wiring {
	w := wire(1+senders, 1)
	w.Hosts = 1 + senders
	sw := w.Hosts
	fast := w.port
	w.port = last
	w.link(sw, 0)
	w.port = fast
	for h := 1; h <= senders; h++ {
		w.link(h, sw)
	}
	return w
}

// world runs a network and keeps what arrives.
type world struct {
	t        testing.TB
	queue    *eventqueue.Queue
	net      *Network
	arrivals []arrival
	idles    []idling
	onIdle   func(now units.Time, h HostID)
	onEvent  func(now units.Time)
}

type arrival struct {
	at     units.Time
	packet Packet
}

type idling struct {
	at units.Time
	h  HostID
}

// change changes properties of a port's link.
func (w *world) change(now units.Time, port int, how func(*Link)) error {
	l := w.net.Links().State(port)
	how(&l)
	return w.net.Links().Set(now, port, l)
}

func newWorld(t testing.TB, cfg Config) *world {
	t.Helper()
	w := &world{t: t, queue: eventqueue.New(0)}
	net, err := New(cfg, w.queue, w)
	if err != nil {
		t.Fatal(err)
	}
	w.net = net
	return w
}

func (w *world) Deliver(now units.Time, p *Packet) {
	w.arrivals = append(w.arrivals, arrival{now, *p})
	w.net.Put(p)
}

func (w *world) Idle(now units.Time, h HostID) {
	w.idles = append(w.idles, idling{now, h})
	if w.onIdle != nil {
		w.onIdle(now, h)
	}
}

// send injects a packet of class 1 that is ECN-capable, changed before that; Context numbers it.
func (w *world) send(now units.Time, src, dst HostID, size units.Bytes, number int, change ...func(*Packet)) {
	p := w.net.Get()
	p.Src, p.Dst, p.Size, p.Class, p.ECN = src, dst, size, 1, ECT0
	p.FlowHash = FlowHash(src, dst, uint16(number), 4793)
	p.Context = int64(number)
	for _, c := range change {
		c(p)
	}
	w.net.Inject(now, p)
}

// run fires everything that is due up to the instant until, and checks conservation after each.
func (w *world) run(until units.Time) {
	w.t.Helper()
	for {
		id, at, ok := w.queue.Next()
		if !ok || at > until {
			break
		}
		w.queue.Pop()
		if !w.net.Owns(id) {
			w.t.Fatalf("entity %d is nobody's", id)
		}
		w.net.Fire(at, id)
		if w.onEvent != nil {
			w.onEvent(at)
		}
		w.check()
	}
	w.check()
}

func (w *world) check() {
	w.t.Helper()
	if err := w.net.CheckConservation(); err != nil {
		w.t.Fatal(err)
	}
}

// marked returns the numbers of the packets that arrived with congestion experienced.
func (w *world) marked() (numbers []int) {
	for _, a := range w.arrivals {
		if a.packet.ECN == CE {
			numbers = append(numbers, int(a.packet.Context))
		}
	}
	return numbers
}

// numbers returns the numbers of the packets that arrived, in order.
func (w *world) numbers() (numbers []int) {
	for _, a := range w.arrivals {
		numbers = append(numbers, int(a.packet.Context))
	}
	return numbers
}
