package emulate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/units"
)

// makeRacks turns a star into racks of two hosts with a switch each, in a row, in as many parts.
func makeRacks(t *testing.T, x *Experiment) {
	t.Helper()
	line := x.Fabric.Ports[0]
	hosts, racks := len(x.Plans), len(x.Plans)/2
	x.Fabric.Ports, x.Fabric.Switches = nil, make([]fabric.SwitchConfig, racks)
	out := map[[2]int]int32{}
	link := func(a, b int) {
		for _, ends := range [][2]int{{a, b}, {b, a}} {
			line.From, line.To = fabric.NodeID(ends[0]), fabric.NodeID(ends[1])
			out[ends] = int32(len(x.Fabric.Ports))
			x.Fabric.Ports = append(x.Fabric.Ports, line)
		}
	}
	for h := range hosts {
		link(h, hosts+h/2)
	}
	for r := 1; r < racks; r++ {
		link(hosts+r-1, hosts+r)
	}
	for r := range racks {
		for h := range hosts {
			to := hosts + r + min(1, max(-1, h/2-r))
			if h/2 == r {
				to = h
			}
			sw := &x.Fabric.Switches[r]
			sw.Route = append(sw.Route, int32(len(sw.Groups)))
			sw.Groups = append(sw.Groups, []int32{out[[2]int{hosts + r, to}]})
		}
	}
	var err error
	if x.Parts, err = x.Fabric.Cut(racks); err != nil {
		t.Fatal(err)
	}
	x.BaseRTT *= units.Time(racks)
}

// Each part has a fabric process with its hosts, and what they report is put together.
func TestPrivParts(t *testing.T) {
	testenv.NeedNamespaces(t)
	x := allToAll(6, 20, 2, 1000)
	makeRacks(t, &x)
	x.SampleQueues = 2 * units.Microsecond
	checkOnTime(t, x, func(o *Outcome) error {
		if got, want := len(o.Flows), 6*5*2; got != want {
			t.Errorf("%d flows, want %d", got, want)
		}
		if !slices.IsSortedFunc(o.Samples, func(a, b realtime.Sample) int { return int(a.At - b.At) }) || len(o.Samples) == 0 {
			t.Errorf("%d samples, not in order of time", len(o.Samples))
		}
		if o.Fidelity.Crossings == 0 {
			t.Error("nothing crossed")
		}
		if c := o.Report.Crossings; c.In != c.Out {
			t.Errorf("%+v left, %+v arrived", c.Out, c.In)
		}
		return nil
	})
}

// The end of the process of a part ends the run, which says which part it was.
func TestPrivDeathOfAPartIsReportedByName(t *testing.T) {
	testenv.NeedNamespaces(t)
	for _, end := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
		x, underWay := endlessWorkload()
		makeRacks(t, &x)
		killed := make(chan quiettest.Stopwatch, 1)
		x.During = func(ctx context.Context, c runtime.Cluster) error {
			underWay(ctx)
			killed <- quiettest.Start()
			if err := unix.Kill(c.(*machines).all[1].Fabric().PID, end); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
		o, err := Run(t.Context(), x)
		(<-killed).AtMost(t, silence+3*time.Second, "the end after the fabric of m2 got "+end.String())
		var exit *runtime.ExitError
		if end == unix.SIGKILL && (!errors.As(err, &exit) || exit.Name != "fabric of m2") {
			t.Errorf("%v: %v", end, err)
		}
		if err == nil || !strings.Contains(err.Error(), "m2") || o == nil || o.Fidelity.Verdict != record.Invalid {
			t.Errorf("%v: %v, %+v", end, err, o)
		}
	}
}
