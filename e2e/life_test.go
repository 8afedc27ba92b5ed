package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/deploy"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// byHand is a lab of 16 hosts that runs in real time: its links are slow enough for that.
const byHand = `
weft: 1
name: by-hand
topology: {kind: fat-tree, k: 4, link: {rate: 20Mbps, delay: 1ms}, mtu: 1300}
queues: {buffer: 200KB, ecn: off}
engine: {dilation: 1}
`

// withState gives the workspace a state directory of its own for deployed labs, which the test
// empties.
func (d *workspace) withState() *workspace {
	d.t.Helper()
	testenv.NeedEmulation(d.t)
	d.t.Setenv(deploy.RootVar, filepath.Join(d.dir, "state"))
	before := takeTraces(d.t)
	d.t.Cleanup(func() {
		d.run("destroy", "--all").wantCode(0)
		before.nothingLeft(d.t, nil, wait)
	})
	return d
}

// deployed returns a workspace with a deployed lab.
func deployed(t *testing.T, text string) *workspace {
	t.Helper()
	d := newWorkspace(t).withState()
	d.run("deploy", d.writeLab("lab.yaml", text)).wantCode(0)
	return d
}

// inspect reads the state of the only deployed lab.
func (d *workspace) inspect() *deploy.State {
	d.t.Helper()
	s := new(deploy.State)
	if err := json.Unmarshal([]byte(d.run("inspect", "--json").wantCode(0).stdout), s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// graphOf builds the topology of a lab.
func graphOf(t *testing.T, text string) *topology.Graph {
	t.Helper()
	l, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := topology.Build(l[0].Topology)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// roundTrip has a node of the deployed lab ping another and returns the shortest round trip.
func (d *workspace) roundTrip(from, to string) time.Duration {
	d.t.Helper()
	r := d.run("exec", from, "--", "ping", "-n", "-q", "-c", "8", "-i", "0.05", "-s", "56", to).wantCode(0)
	least := regexp.MustCompile(`= ([0-9.]+)/`).FindStringSubmatch(r.stdout)
	if least == nil {
		d.t.Fatal(r.stdout)
	}
	ms, err := strconv.ParseFloat(least[1], 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// Hosts find each other by name, and ping takes as long as the lab says.
func TestPrivDeployedPing(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	d := deployed(t, byHand)
	g := graphOf(t, byHand)
	for _, to := range []topology.NodeID{1, 2, 15} {
		const wire = 56 + 8 + 20 + 14 + 4
		want := 2 * g.Delay(g.Path(0, to), wire).Duration()
		quiettest.Check(t, 3, func() error {
			got := d.roundTrip("h0", fmt.Sprint("h", to))
			t.Logf("h0 to h%d: %v, of the lab %v", to, got, want)
			if got < want*99/100 || got > want*11/10 {
				return fmt.Errorf("h0 to h%d takes %v; the lab says %v, and 10 %% more is accepted", to, got, want)
			}
			return nil
		})
	}
}

// iperfReport is the part of iperf3's report that the tests read.
type iperfReport struct {
	Start struct {
		MSS int `json:"tcp_mss_default"`
	} `json:"start"`
	End struct {
		Received struct {
			Rate  float64 `json:"bits_per_second"`
			Bytes float64 `json:"bytes"`
		} `json:"sum_received"`
	} `json:"end"`
}

// iperf runs a server in one node and a client in another, and returns what the client reports.
func (d *workspace) iperf(args ...string) iperfReport {
	d.t.Helper()
	server := d.start("exec", "h15", "--", "iperf3", "-s", "-1", "--forceflush")
	server.awaitOutput(&server.stdout, "listening")
	r := d.run(append([]string{"exec", "h0", "--", "iperf3", "-J", "-c", "h15"}, args...)...).wantCode(0)
	server.wait()
	var got iperfReport
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		d.t.Fatalf("%v\n%s", err, r.stdout)
	}
	return got
}

// Weft's captures of a node and of a port are what tshark expects.
func TestPrivDeployedCaptures(t *testing.T) {
	testenv.NeedProgram(t, "tshark")
	testenv.NeedProgram(t, "ping")
	d := deployed(t, byHand)
	quiettest.Check(t, 3, func() error {
		d.run("exec", "h0", "--", "ping", "-c", "1", "h15").wantCode(0) // from here on no address has to be resolved
		node := d.start("capture", "h0", "-w", "node.pcapng", "--count", "6")
		port := d.start("capture", "edge0->h0", "-w", "port.pcapng", "--count", "3")
		for _, p := range []*process{node, port} {
			p.awaitOutput(&p.stderr, "capturing")
		}
		d.run("exec", "h0", "--", "ping", "-c", "3", "-i", "0.1", "h15").wantCode(0)
		node.wait().wantCode(0)
		port.wait().wantCode(0)
		fields := func(file, filter string, names ...string) [][]string {
			args := []string{"-r", filepath.Join(d.dir, file), "-Y", filter, "-T", "fields"}
			for _, n := range names {
				args = append(args, "-e", n)
			}
			out, err := exec.Command("tshark", args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var rows [][]string
			for line := range strings.Lines(string(out)) {
				rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
			}
			return rows
		}
		requests := fields("node.pcapng", "icmp.type == 8", "frame.time_epoch", "frame.packet_flags_direction")
		replies := fields("node.pcapng", "icmp.type == 0", "frame.time_epoch", "frame.packet_flags_direction")
		leaving := fields("port.pcapng", "icmp.type == 0", "frame.time_epoch")
		if len(requests) != 3 || len(replies) != 3 || len(leaving) != 3 {
			t.Fatalf("tshark sees %d requests and %d replies at the node, and %d replies at the port; want 3 of each",
				len(requests), len(replies), len(leaving))
		}
		g := graphOf(t, byHand)
		const wire = 56 + 8 + 20 + 14 + 4
		back := g.Delay(g.Path(0, 15), wire)
		last := units.Millisecond + (20 * units.Mbps).TransmitTime(wire) // from the port to the node
		for i := range requests {
			at := func(row []string) units.Time {
				s, err := strconv.ParseFloat(row[0], 64)
				if err != nil {
					t.Fatal(err)
				}
				return units.Time(s * float64(units.Second))
			}
			asked, left, came := at(requests[i]), at(leaving[i]), at(replies[i])
			if took := came - asked; took < 2*back*99/100 || took > 2*back*11/10 {
				return fmt.Errorf("the reply came %v after the request; the lab says %v", took, 2*back)
			}
			if took := came - left; took < last*99/100 || took > last*12/10 {
				return fmt.Errorf("the reply came %v after it left the port; the lab says %v", took, last)
			}
		}
		return nil
	})
}

// A capture that ends since the lab crashed is not one that ends since the lab was destroyed, and a
// capture of a host that sends nothing says why.
func TestPrivCapturesOfALabThatEnds(t *testing.T) {
	for _, crash := range []bool{false, true} {
		d := deployed(t, byHand)
		d.run("node", "h1", "kill").wantCode(0)
		d.run("capture", "h1", "-w", "h1.pcapng", "--for", "100ms").wantCode(0).wantOnStderr("note: h1 was killed", "h1 restart")
		d.run("capture", "h1", "-w", "h1.pcapng", "--count", "3", "--for", "100ms").wantCode(1).
			wantOnStderr("0 of 3 packets of h1 came within 100ms")
		p, few := d.start("capture", "h0", "-w", "x.pcapng"), d.start("capture", "h2", "-w", "y.pcapng", "--count", "3")
		p.awaitOutput(&p.stderr, "capturing")
		few.awaitOutput(&few.stderr, "capturing")
		if !crash {
			d.run("destroy").wantCode(0)
			p.wait().wantCode(0)
			few.wait().wantCode(1).wantOnStderr("of 3 packets of h2 came before lab by-hand ended")
			continue
		}
		if err := syscall.Kill(d.inspect().Supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.wait().wantCode(1).wantOnStderr("has crashed", "weft clean")
	}
}

// What is done to a deployed lab shows.
func TestPrivDeployedLinksAndNodes(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	d := deployed(t, byHand)
	g := graphOf(t, byHand)
	const wire = 56 + 8 + 20 + 14 + 4
	idle := 2 * g.Delay(g.Path(0, 1), wire).Duration()
	unreachable := func(what string) {
		t.Helper()
		if r := d.run("exec", "h0", "--", "ping", "-c1", "-W1", "h1"); r.code != 1 {
			t.Errorf("%s: ping ended with %d\n%s", what, r.code, r.stdout)
		}
	}
	d.run("link", "by-hand", "h1-edge0", "down").wantCode(0)
	unreachable("a link is down")
	d.run("link", "by-hand", "edge0-h1", "up").wantCode(0)
	d.run("link", "by-hand", "h1-edge0", "set", "delay=21ms").wantCode(0)
	slower := quiettest.Start()
	if got := d.roundTrip("h0", "h1"); got < idle+39*time.Millisecond {
		t.Errorf("with 20 ms more each way the round trip takes %v instead of %v", got, idle)
	} else if got > idle+45*time.Millisecond {
		slower.Late(t, "with 20 ms more each way the round trip takes %v instead of %v", got, idle)
	}
	d.run("link", "by-hand", "h1-edge0", "set", "delay=1ms,loss=100%").wantCode(0)
	unreachable("a link loses everything")
	d.run("link", "by-hand", "h1-edge0", "set", "loss=0").wantCode(0)
	d.run("link", "by-hand", "h1-edge0", "set", "duplicate=100%,reorder=100%,reorder_by=1us").wantCode(0)
	if r := d.run("exec", "h0", "--", "ping", "-c3", "-i0.1", "h1").wantCode(0); !strings.Contains(r.stdout, "(DUP!)") {
		t.Errorf("a link on which every packet comes twice: %s", r.stdout)
	}
	for _, l := range d.inspect().Links {
		if l.Name == "h1-edge0" && (l.Duplicate != 1 || l.Reorder != 1 || l.ReorderByUS != 1 || !l.Changed) {
			t.Errorf("inspect says %+v", l)
		}
	}
	d.run("link", "by-hand", "h1-edge0", "set", "duplicate=0,reorder=0").wantCode(0)
	if r := d.run("exec", "h0", "--", "ping", "-c3", "-i0.1", "h1").wantCode(0); strings.Contains(r.stdout, "(DUP!)") {
		t.Errorf("a link that is in order again: %s", r.stdout)
	}
	d.run("node", "by-hand", "h1", "pause").wantCode(0)
	unreachable("a node is paused")
	d.run("node", "by-hand", "h1", "resume").wantCode(0)
	d.roundTrip("h0", "h1")
	d.run("node", "by-hand", "h1", "kill").wantCode(0)
	unreachable("a node is killed")
	d.run("exec", "h1", "--", "true").wantCode(deploy.CodeNode).wantOnStderr("h1 has ended (it was killed by weft node)", "restart")
	if n := d.inspect().Nodes[1]; n.State != "dead" || n.PID != 0 {
		t.Errorf("a killed node: %+v", n)
	}
	d.run("node", "by-hand", "h1", "restart").wantCode(0)
	d.roundTrip("h0", "h1")

	var events []string
	for line := range strings.Lines(d.run("events").wantCode(0).stdout) {
		var e deploy.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e.Event)
	}
	if got, want := strings.Join(events, " "), "deployed link-down link-up link link link link link paused resumed "+
		"killed restarted"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, args := range [][]string{
		{"link", "by-hand", "h1-h2", "down"}, {"node", "by-hand", "edge0", "kill"}, {"exec", "h99", "--", "true"},
		{"capture", "edge0", "-w", "x.pcapng"}, {"link", "other", "h1-edge0", "down"},
	} {
		if r := d.run(args...); r.code != 1 || !strings.HasPrefix(r.stderr, "weft: ") {
			t.Errorf("weft %v: code %d, %s", args, r.code, r.stderr)
		}
	}
}

// Deploying again changes nothing; another version of the lab replaces it, and --dry-run says so
// and why.
func TestPrivDeployIsIdempotent(t *testing.T) {
	d := deployed(t, byHand)
	id := d.inspect().Deployment
	if r := d.run("deploy", "lab.yaml").wantCode(0); !strings.Contains(r.stdout, "up already") ||
		d.inspect().Deployment != id {
		t.Errorf("deployed again: %s", r.stdout)
	}
	if r := d.run("deploy", "lab.yaml", "--dry-run").wantCode(0); !strings.Contains(r.stdout, "left as it is") {
		t.Error(r.stdout)
	}
	other := []string{"deploy", "lab.yaml", "--set", "topology.link.delay=2ms"}
	if r := d.run(append(other, "--dry-run")...).wantCode(0); !strings.Contains(r.stdout,
		"topology.link.delay changes from 1ms to 2ms") || d.inspect().Deployment != id {
		t.Error(r.stdout)
	}
	d.run(other...).wantCode(0)
	if s := d.inspect(); s.Deployment == id || s.Links[0].DelayUS != 2000 {
		t.Errorf("the lab was not replaced: %+v", s.Links[0])
	}
	d.run("destroy", "lab.yaml").wantCode(0)
	d.run("destroy", "lab.yaml").wantCode(0).wantOnStderr("not deployed")
}

// Labs stand side by side, each with addresses of its own, and nobody hears of the other.
func TestPrivLabsSideBySide(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	d := newWorkspace(t).withState()
	for i, name := range []string{"one", "two"} {
		text := fmt.Sprintf("weft: 1\nname: %s\ntopology: {kind: star, hosts: 2, link: {rate: 10Mbps, delay: "+
			"%dms}}\nengine: {dilation: 1}\n", name, 1+9*i)
		d.run("deploy", d.writeLab(name+".yaml", text)).wantCode(0)
	}
	d.run("exec", "h0", "--", "true").wantCode(2).wantOnStderr("2 labs are deployed: one, two")
	d.run("destroy").wantCode(2)
	for i, name := range []string{"one", "two"} {
		s := new(deploy.State)
		if err := json.Unmarshal([]byte(d.run("inspect", name, "--json").wantCode(0).stdout), s); err != nil {
			t.Fatal(err)
		}
		if want := topology.Subnet(i + 1); s.Subnet != want.Prefix().String() ||
			s.Nodes[1].Address != want.HostAddr(1).String() {
			t.Errorf("%s has %s, and h1 %s; expected %v", name, s.Subnet, s.Nodes[1].Address, want.Prefix())
		}
		r := d.run("exec", "--lab", name, "h0", "--", "ip", "-o", "-4", "addr", "show", "eth0").wantCode(0)
		if !strings.Contains(r.stdout, fmt.Sprintf("10.%d.0.1/16", i+1)) {
			t.Errorf("%s: %s", name, r.stdout)
		}
	}
	d.run("link", "two", "h1-switch0", "down").wantCode(0)
	d.run("exec", "--lab", "two", "h0", "--", "ping", "-c1", "-W1", "h1").wantCode(1)
	d.run("exec", "--lab", "one", "h0", "--", "ping", "-c1", "-W1", "h1").wantCode(0)
	if r := d.run("exec", "--lab", "one", "h0", "--", "sh", "-c", "exit 42"); r.code != 42 {
		t.Errorf("exit code %d", r.code)
	}
}

// Ctrl-C ends a program in a node and leaves the lab; while a lab is being deployed it leaves
// nothing.
func TestPrivInterruptedVerbs(t *testing.T) {
	d := deployed(t, byHand)
	p := d.start("exec", "h0", "--", "sleep", "100")
	if what := eventually(patience, func() string {
		if r := d.run("exec", "h0", "--", "pgrep", "-x", "sleep"); r.code != 0 {
			return "the program does not run"
		}
		return ""
	}); what != "" {
		t.Fatal(what)
	}
	p.signal(syscall.SIGINT)
	p.wait().wantCode(130)
	if s := d.inspect(); s.Broken != "" {
		t.Error(s.Broken)
	}
	d.run("destroy").wantCode(0)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		for _, after := range []time.Duration{20, 80, 150} {
			p := d.start("deploy", "lab.yaml")
			<-time.After(after * time.Millisecond)
			_ = p.cmd.Process.Signal(s)     // it may have ended
			if r := p.wait(); r.code == 0 { // it was faster
				d.run("destroy").wantCode(0)
			} else if r.code != 130 && r.signal == 0 {
				t.Errorf("%v: exit code %d: %s", s, r.code, r.stderr)
			}
			if r := d.run("destroy").wantCode(0); !strings.Contains(r.stderr, "no lab is deployed") {
				t.Errorf("%v after %v ms left a lab: %s", s, int(after), r.stderr)
			}
		}
	}
}

// What is measured between nodes is what the lab says; a link that was changed since is found out.
func TestPrivDeployedCheck(t *testing.T) {
	d := deployed(t, strings.Replace(byHand, "kind: fat-tree, k: 4, link: {rate: 20Mbps, delay: 1ms}",
		"kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link: {rate: 20Mbps, delay: 1ms}, tiers: "+
			"{host: {loss: 2%}}", 1))
	check := func(code int) map[string]deploy.Measured {
		t.Helper()
		var all []deploy.Measured
		r := d.run("inspect", "--check", "--json")
		if r.code != 0 && r.code != 3 {
			r.wantCode(code)
		}
		if err := json.Unmarshal([]byte(r.stdout), &all); err != nil {
			t.Fatal(err)
		}
		byName := map[string]deploy.Measured{}
		for _, m := range all {
			t.Logf("%s: %.2f of %.2f Mb/s, %.0f of %.0f us, %.2f of %.2f %%", m.Link, m.RateBPS/1e6,
				m.AskedRateBPS/1e6, m.DelayUS, m.AskedDelayUS, 100*m.Loss, 100*m.AskedLoss)
			byName[m.Link] = m
		}
		return byName
	}
	quiettest.Check(t, 3, func() (err error) {
		for name, m := range check(0) {
			if !m.OK || !m.Tried {
				err = errors.Join(err, fmt.Errorf("%s: %+v", name, m))
			}
		}
		return err
	})
	d.run("link", "by-hand", "h3-leaf1", "set", "rate=10Mbps,delay=3ms").wantCode(0)
	d.run("link", "by-hand", "h0-leaf0", "down").wantCode(0)
	quiettest.Check(t, 3, func() error {
		all := check(3)
		if m := all["h0-leaf0"]; m.OK || m.Tried || m.Why != "it is down" {
			t.Errorf("a link that is down: %+v", m)
		}
		if m := all["h3-leaf1"]; m.OK || m.Bad != "rate, delay, settings" {
			return fmt.Errorf("a slow link: %+v", m)
		}
		if m := all["h1-leaf0"]; !m.OK {
			return fmt.Errorf("a link that nobody touched: %+v", m)
		}
		return nil
	})
}

// A link with a setting that is not the lab's is never ok, whether probes could tell it or not, and
// is again when it was set back.
func TestPrivCheckFindsEveryChange(t *testing.T) {
	d := deployed(t, "weft: 1\nname: check\ntopology: {kind: star, hosts: 3, link: {rate: 20Mbps, delay: 1ms}}\n")
	for change, back := range map[string]string{
		"loss=0.01%": "loss=0", "bit_errors=1e-12": "bit_errors=0", "duplicate=0.01%": "duplicate=0", "jitter=1us": "jitter=0s",
		"reorder=0.01%,reorder_by=1us": "reorder=0", "rate=19.99Mbps": "rate=20Mbps", "delay=1.001ms": "delay=1ms",
	} {
		setting, _, _ := strings.Cut(change, "=")
		d.run("link", "check", "h1-switch0", "set", change).wantCode(0)
		r := d.run("inspect", "--check").wantCode(3)
		row := regexp.MustCompile(`(?m)^h1-switch0 .*changed since the lab was deployed: the link has ` + setting + `=.*$`)
		if !row.MatchString(r.stdout) {
			t.Errorf("%s: %s", change, r.stdout)
		}
		d.run("link", "check", "h1-switch0", "set", back).wantCode(0)
	}
	quiettest.Check(t, 3, func() error {
		if r := d.run("inspect", "--check"); r.code != 0 {
			return fmt.Errorf("exit code %d: %s", r.code, r.stdout)
		}
		return nil
	})
}
