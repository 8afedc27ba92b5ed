package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	oscillator "weft/clocksync/clock"
	"weft/fabric"
	"weft/host"
	"weft/nodeimg/agent"
	"weft/nodeimg/tcp"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/transport/cc/wasm"
	"weft/units"
)

// Experiment is the configuration of a run.
type Experiment struct {
	Lab     string // name, for messages
	Fabric  fabric.Config
	Changes []fabric.Change // changes of the network, by time
	Plans   []host.Plan     // by host
	Addrs   []netip.Addr    // IPv4, by host
	// IPv4, by switch: source addresses of notifications of coordinated congestion management, and
	// of the measurement of links; nil without either
	Switches []netip.Addr
	Prefix   int          // length of the subnet's prefix; 0: 8
	Dilation float64      // real time divided by lab time
	TCP      tcp.Settings // of hosts' routes, in lab time
	BaseRTT  units.Time   // of the network; the verdict compares lateness with it
	// shortest queueing delay that a connection aims at, another limit of lateness; 0: none steers
	// by delay
	DelayTarget units.Time

	Module *wasm.Module // the congestion control of Plans, if it is a module

	// Parts is the part of the modelled fabric that each host and switch belongs to, by
	// fabric.NodeID; nil: it is in one piece
	Parts []int32

	Kernel *Kernel // the machine's kernel carries packets; nil: the modelled fabric

	// switches correct PTP's event messages for their residence time
	Transparent bool
	// and for the delay of links, measured at this interval, as peer-to-peer transparent clocks; 0:
	// they do not
	PeerDelay units.Time
	Control   bool // with PeerDelay: its messages are served before data

	SampleQueues units.Time // interval of queue samples; 0: none
	Windows      bool       // record changes of congestion windows

	FrameSchedule frames.Schedule // of Frames

	// Stall is the real time without progress after which the workload is given up; 0: it follows
	// from the dilation.
	Stall time.Duration

	Programs []Program // programs that hosts run beside the workload
	Groups   []Group   // programs of the workload, which the run waits for

	// Clocks are what the clocks of programs show in a deployed lab, by host; nil: lab time.
	// NoClocks, if not empty, is why they show nothing. In a run they are those of Plans.
	Clocks   []oscillator.Config
	NoClocks string

	Captures []Capture // of frames in the modelled fabric

	// Ended, if not nil, receives the end of a host's program in a deployed lab.
	Ended func(host int, err error)

	// During, if not nil, is called in its own goroutine once lab time has begun and the network
	// carries packets. The run ends when the workload is done and During has returned. An error of
	// During ends it at once.
	During func(context.Context, runtime.Cluster) error

	// Progress and Samples are called from one goroutine, with progress and with queue samples as
	// they arrive. Both may be nil; without Samples, the samples are in the Outcome.
	Progress func(Progress)
	Samples  func([]realtime.Sample)

	// Frames, if not nil, is called in the same way with frames of the network.
	Frames func([]frames.Frame)

	// Conns, if not nil, is called in the same way with frames of connections of one host, at
	// instants of FrameSchedule. They may come long after the network's of those instants. The
	// kernel datapath has none.
	Conns func([]frames.Frame)

	// Steps, if not nil, is called in the same way with the actions of switches for coordinated
	// congestion management.
	Steps func([]fabric.Step)

	Processes Processes

	// Rows is the row of the summary that shows an item, by item; nil: each has its own.
	Rows []int

	// Sockets says which hosts send through sockets although the others have bypass NICs, by host;
	// nil: none.
	Sockets []bool

	more bool // the processes run another experiment afterwards
}

// Capture is a capture of frames from the start of a run.
type Capture struct {
	Of realtime.Capture
	// receives copies of frames, one record per message; stays the caller's
	Socket int
}

// Processes says how to start the processes of a run. The zero value runs this program as "weft
// node" and "weft fabric".
type Processes struct {
	Launch runtime.Launch // nil: the built-in runtime
	// its name, part of the key of the measured capacity; empty: namespace
	Runtime string
	// the runtime starts no processes that drive several nodes
	NoAgents bool
	Self     string   // program; empty: this one
	Env      []string // added to their environment
	// their output, line by line; nil: only its end, in errors
	Stderr io.Writer
	// Bypass gives the agents of hosts NICs that bypass the kernel: memory that they share with the
	// fabric process (package rings). Programs of hosts use the interface as ever.
	Bypass bool
	// veth pairs even if TAP devices are available
	Veth bool

	// Machines starts the parts of a network on other machines, by part; nil: all on this one. What
	// has descriptors of this machine stays out: captures, modules, programs, bypass NICs.
	Machines []runtime.Launch

	// For deployed labs: see boot.NodeSpec.Hidden and runtime.Spec.Ahead.
	Hidden []string
	Ahead  runtime.Ahead

	Step func(step string) // see runtime.Spec.Step

	// receives the progress of Calibrate, from one goroutine, if it has to measure; may be nil
	Measuring func(done, of int)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total units.Bytes
	At          units.Time // lab time
}

// Outcome is the result of a run. After an error it has what was collected until then.
type Outcome struct {
	Flows     []host.Flow
	Dones     []host.Done
	Transport transport.Counters // of all hosts
	TimedOut  []transport.TimedOut
	RTT       *stats.Dist // of every acknowledgement
	// queueing delay at receivers: the delay of a data packet minus that of the idle path
	OneWay *stats.Dist
	// waiting time in switches, per delivered data packet
	QueueDelay *stats.Dist
	Windows    []agent.Window    // by host, then by time
	Samples    []realtime.Sample // unless Experiment.Samples is set
	Fabric     fabric.Counters
	Fidelity   record.Fidelity
	// lab time until the last host was done, or until the run failed
	Elapsed units.Time
	// share of the processors that other programs took, in [0, 1]
	Foreign  float64
	Warnings []string
	Refused  []record.Refused
	Groups   []GroupEnd // how Experiment.Groups ended
	Beside   int64      // carried packets outside of the workload

	Report  *realtime.Report // of the fabric process; nil: it sent none
	Results []*agent.Results // by host; nil: it sent none
}

// check returns all errors of x, joined.
func (x *Experiment) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if x.Dilation < 1 {
		bad("dilation %g is below 1", x.Dilation)
	}
	if len(x.Plans) == 0 || len(x.Plans) != len(x.Addrs) || len(x.Plans) != x.Fabric.Hosts {
		bad("%d plans, %d addresses and %d hosts in the network", len(x.Plans), len(x.Addrs), x.Fabric.Hosts)
	}
	if x.Processes.Bypass && x.Kernel != nil {
		bad("bypass NICs on the kernel datapath, which carries what leaves interfaces")
	}
	if x.Sockets != nil && len(x.Sockets) != len(x.Plans) {
		bad("sockets of %d hosts, the lab has %d", len(x.Sockets), len(x.Plans))
	}
	if n := len(x.Plans) + len(x.Fabric.Switches); x.Parts != nil && (len(x.Parts) != n || x.Kernel != nil ||
		x.Processes.Bypass) {
		bad("a network in parts of %d nodes, on the kernel datapath or with bypass NICs", len(x.Parts))
	}
	if n := len(x.Processes.Machines); n > 0 && n != x.count() {
		bad("%d machines for %d parts of the network", n, x.count())
	}
	if x.BaseRTT <= 0 {
		bad("base round trip of %d ps", x.BaseRTT)
	}
	for i, a := range x.Addrs {
		if !a.Is4() {
			bad("address of host %d: %v is not IPv4", i, a)
		}
	}
	return errors.Join(errs...)
}

// stall returns the real time without progress after which a run is given up.
func (x *Experiment) stall() time.Duration {
	if x.Stall > 0 {
		return x.Stall
	}
	// Twenty milliseconds of lab time, or as many round trips if those are longer, and long enough
	// for any connection to double its retransmission timeout twice. A run that further attempts
	// may help waits longer: see run.retries.
	longest := max(20*max(units.Millisecond, x.BaseRTT), 8*x.rto())
	return max(10*time.Second, time.Duration(float64(longest.Duration())*x.Dilation))
}

// rto returns the largest minimum retransmission timeout of the connections.
func (x *Experiment) rto() (longest units.Time) {
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			longest = max(longest, x.Plans[h].Conns[i].RTOMin)
		}
	}
	return longest
}

// minRTO returns the smallest minimum retransmission timeout of the connections; 0: there are
// none.
func (x *Experiment) minRTO() (least units.Time) {
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			if rto := x.Plans[h].Conns[i].RTOMin; least == 0 || rto < least {
				least = rto
			}
		}
	}
	return least
}

// settle returns the real time without progress after which the hosts' last reports are up to date:
// they have reported a few times since, and nothing is in flight.
func (x *Experiment) settle() time.Duration {
	return max(time.Second, time.Duration(float64((4*x.BaseRTT).Duration())*x.Dilation))
}

// mtu returns the largest payload of a data packet among the hosts.
func (x *Experiment) mtu() units.Bytes {
	var m units.Bytes
	for i := range x.Plans {
		m = max(m, x.Plans[i].Endpoint.MTU)
	}
	return m
}

// ipMTU returns the MTU of every node's interface.
func (x *Experiment) ipMTU() units.Bytes { return host.InterfaceMTU(x.Plans) }

// maxFrame returns the size of the longest frame, with its Ethernet header.
func (x *Experiment) maxFrame() int {
	const ethernet = 14
	return int(x.ipMTU()) + ethernet
}

// ahead returns how long before their departure packets are handed to the fabric. A NIC fetches the
// next packet while one is on the wire. Nodes do the same, early enough to cover an ordinary
// wake-up.
func (x *Experiment) ahead() units.Time {
	const wakeUp = 400 * time.Microsecond
	packet := units.Never
	for i := range x.Plans {
		packet = min(packet, x.Plans[i].Endpoint.LineRate.TransmitTime(x.mtu()))
	}
	return min(packet, units.Time(float64(units.FromDuration(wakeUp))/x.Dilation))
}

// pause returns how long an arrival may wait for more, so that one wake-up handles all of them: a
// hundredth of the base round trip, a fifth of what the verdict allows.
func (x *Experiment) pause() units.Time { return x.BaseRTT / 100 }
