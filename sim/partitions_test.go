package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"weft/clocksync"
	"weft/fabric"
	"weft/transport"
	"weft/units"
)

// recordingHost is a fake that records what it receives and when.
type recordingHost struct {
	*fake
	diary []string
}

func (d *recordingHost) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	if in.Port != 0 { // a switch asks: it is not answered, and what was asked tells how long that waited
		d.diary = append(d.diary, fmt.Sprintf("%d from %d, 0 bytes: %x", now, in.Src, in.Header))
		return transport.Placement{}, nil
	}
	d.diary = append(d.diary, fmt.Sprintf("%d from %d, %d bytes, marked %t: %x", now, in.Src, in.Payload, in.CE, in.Header[:4]))
	return d.fake.Receive(now, in)
}

// podPartitions returns a partition for each pod of a fat-tree of k-port switches, with as many
// core switches as remain in others.
func podPartitions(k, cores int, cfg *fabric.Config) (partition []int32, count int) {
	half := k / 2
	for n := range cfg.Hosts + len(cfg.Switches) {
		s := n - cfg.Hosts
		switch {
		case s < 0:
			partition = append(partition, int32(n/(half*half)))
		case s < k*half:
			partition = append(partition, int32(s/half))
		case s < 2*k*half:
			partition = append(partition, int32((s-k*half)/half))
		default:
			partition = append(partition, int32(k+s%cores))
		}
	}
	return partition, k + cores
}

// rackPartitions returns a partition for each rack of a fat-tree of k-port switches, and two for
// the other switches.
func rackPartitions(k int, cfg *fabric.Config) (partition []int32, count int) {
	racks := k * k / 2
	for n := range cfg.Hosts + len(cfg.Switches) {
		s := n - cfg.Hosts
		switch {
		case s < 0:
			partition = append(partition, int32(n/(k/2)))
		case s < racks:
			partition = append(partition, int32(s))
		default:
			partition = append(partition, int32(racks+s%2))
		}
	}
	return partition, racks + 2
}

// The pods of a large fat-tree are split into racks, unless the links in them are shorter than
// those between pods.
func TestPodsAreSplitIntoRacks(t *testing.T) {
	const k = 24
	cfg := fatTree(k, fast)
	part, parts := cfg.Partition()
	seen := map[int32]bool{}
	for h := range cfg.Hosts {
		if seen[part[h]] = true; part[h] != part[cfg.Hosts+h/(k/2)] {
			t.Fatalf("host %d is in partition %d, its switch in %d", h, part[h], part[cfg.Hosts+h/(k/2)])
		}
	}
	if len(seen) <= k || parts <= len(seen) {
		t.Errorf("%d partitions, %d with hosts", parts, len(seen))
	}
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; int(min(p.From, p.To)) < cfg.Hosts+k*k/2 {
			p.Delay /= 2
		}
	}
	part, _ = cfg.Partition()
	for h := range cfg.Hosts {
		if pod := h / (k * k / 4); part[h] != part[pod*k*k/4] {
			t.Fatalf("host %d is in another partition than the first of its pod", h)
		}
	}
}

// setBalance has all switches balance flows in one way.
func setBalance(cfg *fabric.Config, b fabric.Balance) {
	for s := range cfg.Switches {
		cfg.Switches[s].Balance = b
	}
	for i := range cfg.Ports {
		cfg.Ports[i].Light = 5000
	}
}

// parallelWork does all the work at the same time.
func parallelWork(n int, work func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { work(i) })
	}
	all.Wait()
}

// linkDelays returns the delays of links between switches, as the switches have measured them.
func linkDelays(t *testing.T, s *Sim, cfg fabric.Config) (all []string) {
	for k, links := range cfg.SwitchLinks() {
		for i, l := range links {
			d, ok := s.bridges.Bridges[k].Delay(i)
			if toHost := int(cfg.Ports[l.Out].To) < cfg.Hosts; ok == toHost || ok && d != units.Microsecond+8*units.Nanosecond {
				t.Errorf("switch %d measured link %d as %v %v", k, i, d, ok)
			}
			all = append(all, fmt.Sprint(k, i, d))
		}
	}
	return all
}

// A network in partitions, worked through one after the other, in the opposite order, or at the
// same time, has every packet arrive at the instant, with the mark and in the order in which it
// does in a network in one piece.
func TestPartsAreTheWhole(t *testing.T) {
	const k, packets = 4, 60
	backwards := func(n int, work func(int)) {
		for i := n - 1; i >= 0; i-- {
			work(i)
		}
	}
	for name, change := range map[string]func(*fabric.Config){
		"lossy": func(cfg *fabric.Config) {
			for i := range cfg.Ports {
				cfg.Ports[i].Loss = 0.01
			}
		},
		"small buffers": func(cfg *fabric.Config) {
			for i := range cfg.Ports {
				cfg.Ports[i].Buffer = 30_000
			}
		},
		"lossless": func(cfg *fabric.Config) { *cfg = lossless(*cfg, 20_000) },
		"adaptive": func(cfg *fabric.Config) { setBalance(cfg, fabric.Adaptive) },
		"bridges":  func(cfg *fabric.Config) { cfg.Stations = clocksync.EventPort },
		"spray":    func(cfg *fabric.Config) { setBalance(cfg, fabric.Spray) },
		"slow core": func(cfg *fabric.Config) {
			for i := range cfg.Ports {
				if int(cfg.Ports[i].From) >= cfg.Hosts+k*k/2 {
					cfg.Ports[i].Rate /= 7
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := fast
			p.ECN = fabric.ECNConfig{On: true, Kmin: 10_000, Kmax: 60_000, Pmax: 0.8}
			links := func(now units.Time, net *fabric.Network, up bool) error {
				net.Links().SetUp(now, up, 60, 61)
				return nil
			}
			type split func(*fabric.Config) ([]int32, int)
			pods := func(cfg *fabric.Config) ([]int32, int) { return podPartitions(k, 2, cfg) }
			racks := func(cfg *fabric.Config) ([]int32, int) { return rackPartitions(k, cfg) }
			diaries := func(split split, each func(int, func(int))) (all []string, c fabric.Counters) {
				cfg := fatTree(k, p)
				change(&cfg)
				r := rand.New(rand.NewPCG(3, 4))
				var hosts []*recordingHost
				for h := range cfg.Hosts {
					dst := (h + 1 + r.IntN(cfg.Hosts-1)) % cfg.Hosts
					if h%3 == 0 {
						dst = 5 - h/15*5 // an incast
					}
					f := newFake(h, dst, packets, 30)
					f.rto = 300 * units.Microsecond
					if h == dst {
						f = newFake(h, 0, 0, 0)
					}
					hosts = append(hosts, &recordingHost{fake: f})
				}
				opts := Options{Each: each, Actions: []Action{
					{At: 20 * units.Microsecond, Do: func(now units.Time, net *fabric.Network) error { return links(now, net, false) }},
					{At: 61 * units.Microsecond, Do: func(now units.Time, net *fabric.Network) error { return links(now, net, true) }},
				}}
				opts.SampleEvery, opts.Sample = 10*units.Microsecond, func(now units.Time, port int, q units.Bytes) {
					all = append(all, fmt.Sprint(now, port, q))
				}
				if cfg.Stations != 0 {
					opts.PeerDelay, opts.Transparent = 20*units.Microsecond, true
				}
				if split != nil {
					opts.Parts, opts.Count = split(&cfg)
				}
				s := newSim(t, cfg, hosts, opts)
				if err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
				for _, h := range hosts {
					all = append(all, h.diary...)
				}
				if s.bridges != nil {
					all = append(all, linkDelays(t, s, cfg)...)
				}
				return all, s.Counters()
			}
			want, total := diaries(nil, nil)
			if len(want) < 16*packets || total.Marks == 0 {
				t.Fatalf("%d lines, %+v", len(want), total)
			}
			for order, by := range map[string]struct {
				split split
				each  func(int, func(int))
			}{
				"forwards": {pods, nil}, "backwards": {pods, backwards}, "at once": {pods, parallelWork},
				"racks": {racks, nil}, "racks at once": {racks, parallelWork},
			} {
				got, _ := diaries(by.split, by.each)
				// The partitions finish the stretch in which the last host is done.
				got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(want, s) && strings.Contains(s, ", 0 bytes") })
				if !slices.Equal(got, want) {
					for i := range want {
						if i >= len(got) || got[i] != want[i] {
							t.Errorf("%s: line %d of %d (%d): got %q, want %q", order, i, len(want), len(got), got[min(i, len(got)-1)], want[i])
							break
						}
					}
				}
			}
		})
	}
}

// A link that becomes shorter at the very instant at which a packet starts on it is used no sooner
// by a network in partitions than by one in one piece: what has just started is posted, and on no
// link yet.
func TestPartsWhenALineChangesAsAPacketStarts(t *testing.T) {
	const start = 18_095_200 * units.Picosecond // of the sixth packet that leaves the first switch
	slow := fabric.PortConfig{Link: fabric.Link{Rate: 10 * units.Gbps, Delay: 50 * units.Microsecond}, Buffer: units.MB}
	diary := func(at units.Time, partitions []int32) []string {
		cfg := fabric.Config{Hosts: 2, Switches: make([]fabric.SwitchConfig, 2)}
		for _, l := range []struct {
			from, to fabric.NodeID
			fabric.PortConfig
		}{{0, 2, fast}, {2, 0, fast}, {1, 3, fast}, {3, 1, fast}, {2, 3, slow}, {3, 2, slow}} {
			l.From, l.To = l.from, l.to
			cfg.Ports = append(cfg.Ports, l.PortConfig)
		}
		cfg.Switches[0].Groups, cfg.Switches[0].Route = [][]int32{{1}, {4}}, []int32{0, 1}
		cfg.Switches[1].Groups, cfg.Switches[1].Route = [][]int32{{5}, {3}}, []int32{0, 1}
		hosts := []*recordingHost{{fake: newFake(0, 1, 20, 20)}, {fake: newFake(1, 0, 0, 0)}}
		opts := Options{Actions: []Action{{At: at, Do: func(now units.Time, net *fabric.Network) error {
			return net.Links().Set(now, 4, fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond})
		}}}}
		if partitions != nil {
			opts.Parts, opts.Count = partitions, 2
		}
		s := newSim(t, cfg, hosts, opts)
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return slices.Concat(hosts[0].diary, hosts[1].diary)
	}
	for _, at := range []units.Time{start - 1, start, start + 1} {
		want, got := diary(at, nil), diary(at, []int32{0, 1, 0, 1})
		if len(want) < 40 || !slices.Equal(got, want) {
			t.Errorf("a change at %d ps: in partitions %q, in one piece %q", at, got, want)
		}
	}
}
