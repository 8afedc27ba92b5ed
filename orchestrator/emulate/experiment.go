package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// Experiment is what is to be run.
type Experiment struct {
	Lab      string // its name, for messages
	Fabric   fabric.Config
	Changes  []fabric.Change // of the network, by their instants
	Plans    []host.Plan     // by host
	Addrs    []netip.Addr    // IPv4, by host
	Switches []netip.Addr    // IPv4, by switch, from which they send: notifications of coordination, or what measures their links; else nil
	Prefix   int             // length of the one subnet that holds them all; 0: 8
	Dilation float64         // real time per lab time
	BaseRTT  units.Time      // of the network: what lateness is measured by

	Kernel *Kernel // who carries packets: the machine's kernel; nil: the modelled fabric

	Transparent bool       // switches correct PTP's event messages for the time that they waited in them
	PeerDelay   units.Time // and for the delay of links, which they measure so often: peer-to-peer transparent clocks; 0: they do not
	Control     bool       // with PeerDelay: what measures links is served before data

	SampleQueues units.Time // interval of queue samples; 0: none
	Windows      bool       // record changes of congestion windows

	// Stall is how long the workload may stand still, in real time, before it is given up; 0: by the dilation.
	Stall time.Duration

	Programs []Program // what hosts run besides
	Captures []Capture // of the modelled fabric's frames

	// Ended is told, in a lab that stands, how the program of a host ended by itself; nil: nobody is.
	Ended func(host int, err error)

	// During is called when lab time has begun, from a goroutine of its own: the lab is up and carries anything.
	// The run ends when the workload is done and During has returned; an error ends it at once. It may be nil.
	During func(context.Context, runtime.Cluster) error

	// Progress is called now and then, from one goroutine. Samples is called with queue samples as they come,
	// likewise; nil: they are in the Outcome. Both may be nil.
	Progress func(Progress)
	Samples  func([]realtime.Sample)

	// Steps is called with what switches do for coordinated congestion management, likewise; nil: nobody is told.
	Steps func([]fabric.Step)

	Processes Processes

	more bool // the processes run another experiment afterwards
}

// Capture is of frames of a run, from the first on.
type Capture struct {
	Of     realtime.Capture
	Socket int // that copies are sent to, a record per message; it stays the caller's
}

// Processes says how the processes of a run are started. The zero value runs this program as "weft node" and
// "weft fabric".
type Processes struct {
	Launch               runtime.Launch // nil: the built-in runtime
	Runtime              string         // its name, by which the machine's capacity is known; empty: namespace
	NoAgents             bool           // it starts no processes that drive several nodes
	Self                 string         // program; empty: this one
	NodeArgs, FabricArgs []string       // nil: node, fabric
	Env                  []string       // added to their environment
	Stderr               io.Writer      // what they write, line by line; nil: only the last of it, in errors
	Veth                 bool           // veth pairs even where TAP devices could be had

	// Of labs that stand: see boot.NodeSpec.Hidden and runtime.Spec.Ahead.
	Hidden []string
	Ahead  func(runtime.Op) (done func(error) error, err error)

	Step func(step string) // see runtime.Spec.Step

	Measuring func(done, of int) // told, from one goroutine, how far Calibrate is if it has to measure; may be nil
}

// Progress is how far a run is.
type Progress struct {
	Done, Total units.Bytes
	At          units.Time // lab time
}

// Outcome is what a run brings back. After an error it is what was collected by then.
type Outcome struct {
	Flows      []host.Flow
	Dones      []host.Done
	Transport  transport.Counters // of all hosts
	TimedOut   []transport.TimedOut
	RTT        *stats.Dist       // of every acknowledgement
	OneWay     *stats.Dist       // queueing delay that receivers measured: what a data packet took beyond the idle path
	QueueDelay *stats.Dist       // waiting in switches, per delivered data packet
	Windows    []agent.Window    // by host, and by time at each
	Samples    []realtime.Sample // unless Experiment.Samples took them
	Fabric     fabric.Counters
	Fidelity   record.Fidelity
	Elapsed    units.Time // lab time until the last host was done; of a run that failed, until it did
	Foreign    float64    // share of the processors that other programs took, in [0, 1]
	Warnings   []string
	Refused    []record.Refused
	Beside     int64 // packets carried that are no part of the workload

	favoured bool // nodes had real-time scheduling

	Report  *realtime.Report // of the fabric process; nil: it sent none
	Results []*agent.Results // by host; nil: it sent none
}

// check reports what is wrong with x, everything at once.
func (x *Experiment) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if x.Dilation < 1 {
		bad("dilation %g is below 1", x.Dilation)
	}
	if len(x.Plans) == 0 || len(x.Plans) != len(x.Addrs) || len(x.Plans) != x.Fabric.Hosts {
		bad("%d plans, %d addresses and %d hosts in the network", len(x.Plans), len(x.Addrs), x.Fabric.Hosts)
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

// stall is how long nothing may move before a run is given up.
func (x *Experiment) stall() time.Duration {
	if x.Stall > 0 {
		return x.Stall
	}
	// Twenty milliseconds of lab time, or as many round trips if those are longer; and long enough for any connection to double
	// its retransmission timeout twice. Where more attempts may help they are waited for: see run.retries.
	longest := max(20*max(units.Millisecond, x.BaseRTT), 8*x.rto())
	return max(10*time.Second, time.Duration(float64(longest.Duration())*x.Dilation))
}

// rto is the longest of the connections' least retransmission timeouts.
func (x *Experiment) rto() (longest units.Time) {
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			longest = max(longest, x.Plans[h].Conns[i].RTOMin)
		}
	}
	return longest
}

// settle is how long nothing may move, in real time, until what the hosts say they wait for is what they still wait for: they
// have said so a few times since, and what was under way has come.
func (x *Experiment) settle() time.Duration {
	return max(time.Second, time.Duration(float64((4*x.BaseRTT).Duration())*x.Dilation))
}

// mtu is the largest payload of a data packet among the hosts.
func (x *Experiment) mtu() units.Bytes {
	var m units.Bytes
	for i := range x.Plans {
		m = max(m, x.Plans[i].Endpoint.MTU)
	}
	return m
}

// ipMTU is the MTU of every node's interface.
func (x *Experiment) ipMTU() units.Bytes { return host.InterfaceMTU(x.Plans) }

// ahead is how long before they are due packets are handed to the fabric. A NIC fetches the next packet while
// one is on the line; so do the nodes, by as much as covers an ordinary wake-up.
func (x *Experiment) ahead() units.Time {
	const wakeUp = 400 * time.Microsecond
	packet := units.Never
	for i := range x.Plans {
		packet = min(packet, x.Plans[i].Endpoint.LineRate.TransmitTime(x.mtu()))
	}
	return min(packet, units.Time(float64(units.FromDuration(wakeUp))/x.Dilation))
}

// pause is how long what has come may wait for more, to be handled with one wake-up: a hundredth of the base
// round trip, a fifth of what the verdict allows.
func (x *Experiment) pause() units.Time { return x.BaseRTT / 100 }
