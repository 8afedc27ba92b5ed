package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/runtime"
	"weft/orchestrator/topology"
	"weft/units"
)

const fatTree = `
weft: 1
name: programs
topology: {kind: fat-tree, k: 4, link: {rate: 100Gbps, delay: 1us}}
workload:
  - {collective: all-to-all, ranks: 2, size: 8KB}
`

// dilation of the lab in which programs are run: its links are of 100 Mb/s, and of 1 ms.
const dilation = 1000

// runWhileUp runs a lab and calls do while it is up.
func runWhileUp(t *testing.T, text string, do func(ctx context.Context,
	c runtime.Cluster) error) *experiment.Experiment {
	t.Helper()
	testenv.NeedEmulation(t)
	testenv.NeedNamespaces(t) // to enter the nodes
	l, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := experiment.Build(l[0])
	if err != nil {
		t.Fatal(err)
	}
	spec := emulate.Experiment{
		Lab: l[0].Name, Fabric: x.Fabric, Plans: x.Plans, Prefix: topology.PrefixLen,
		Dilation: dilation, BaseRTT: x.BaseRTT, During: do, Processes: emulate.Processes{Self: weft},
	}
	for h := range x.Plans {
		spec.Addrs = append(spec.Addrs, topology.HostAddr(topology.NodeID(h)))
	}
	before := takeTraces(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := emulate.Run(ctx, spec); err != nil {
		t.Fatal(err)
	}
	before.nothingLeft(t, nil, wait)
	return x
}

// runProgram runs a program of this machine in a node and returns what it prints.
func runProgram(ctx context.Context, c runtime.Cluster, node string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.Exec(ctx, node, runtime.Command{Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), err
}

// ping returns the shortest of some round trips, in real time; 0 if some did not end in time.
func ping(ctx context.Context, c runtime.Cluster, from, to topology.NodeID, size units.Bytes) (time.Duration, error) {
	out, err := runProgram(ctx, c, fmt.Sprintf("h%d", from), "ping", "-n", "-q", "-c", "8", "-i", "0.03",
		"-s", strconv.Itoa(int(size)), "-M", "do", topology.HostAddr(to).String())
	if err != nil {
		return 0, err
	}
	least := regexp.MustCompile(`= ([0-9.]+)/`).FindStringSubmatch(out)
	if least == nil {
		return 0, fmt.Errorf("ping said\n%s", out)
	}
	if !strings.Contains(out, " 0% packet loss") { // it does not wait long for the last
		return 0, nil
	}
	ms, err := strconv.ParseFloat(least[1], 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}

// The network is there for any program: ping measures the lab's delays, near and far, of small
// packets and large.
func TestPrivPingAcrossTheFatTree(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	type echo struct {
		to   topology.NodeID
		size units.Bytes
		took time.Duration
	}
	echoes := []echo{{to: 1, size: 56}, {to: 2, size: 56}, {to: 15, size: 56}, {to: 15, size: 4000}}
	quiettest.Check(t, 3, func() error {
		x := runWhileUp(t, fatTree, func(ctx context.Context, c runtime.Cluster) (err error) {
			for i := range echoes {
				if echoes[i].took, err = ping(ctx, c, 0, echoes[i].to, echoes[i].size); err != nil {
					return err
				}
			}
			return nil
		})
		for _, e := range echoes {
			const headers = 8 + 20 + 14 + 4 // ICMP, IPv4, Ethernet and its checksum
			path := x.Graph.Path(0, e.to)
			want := dilation * 2 * x.Graph.Delay(path, e.size+headers).Duration()
			t.Logf("h0 to h%d over %d links, %d bytes: %v, of the model %v", e.to, len(path), e.size, e.took, want)
			if e.took < want*99/100 || e.took > want*11/10 {
				return fmt.Errorf("h0 to h%d, %d bytes: the shortest round trip took %v; the model's takes %v, and "+
					"10 %% more is accepted", e.to, e.size, e.took, want)
			}
		}
		return nil
	})
}

// TCP of the kernel gets through, at no more than the rate of the link.
func TestPrivTCPAcrossTheFatTree(t *testing.T) {
	testenv.NeedProgram(t, "iperf3")
	var report struct {
		End struct {
			Received struct {
				Bytes float64 `json:"bytes"`
				Rate  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	runWhileUp(t, fatTree, func(ctx context.Context, c runtime.Cluster) error {
		ctx, cancel := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() {
			_, err := runProgram(ctx, c, "h15", "iperf3", "-s")
			served <- err
		}()
		defer func() { cancel(); <-served }()
		var out string
		var err error
		if what := eventually(patience, func() string { // until the server listens
			if out, err = runProgram(ctx, c, "h0", "iperf3", "-J", "-t", "2", "-c", topology.HostAddr(15).String()); err != nil {
				return err.Error()
			}
			if err = json.Unmarshal([]byte(out), &report); err != nil {
				return err.Error()
			}
			if report.End.Received.Bytes == 0 {
				return "nothing was received: " + out
			}
			return ""
		}); what != "" {
			return fmt.Errorf("iperf3: %s", what)
		}
		return nil
	})
	const line = 100e9 / dilation
	got := report.End.Received
	t.Logf("TCP: %.1f Mb/s of %.0f", got.Rate/1e6, line/1e6)
	if got.Bytes < 1e6 || got.Rate >= line {
		t.Errorf("TCP carried %.0f bytes at %.1f Mb/s over links of %.0f Mb/s", got.Bytes, got.Rate/1e6, line/1e6)
	}
}
