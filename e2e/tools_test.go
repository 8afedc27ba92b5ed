package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/deploy"
	"weft/transport/wire"
)

// In both runtimes people's own tools work in the nodes of a lab of 16 hosts: ping, iperf3, tcpdump
// and tshark.
func TestPrivToolsInNodes(t *testing.T) {
	for _, runtime := range []string{"namespace", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "docker" {
				needDocker(t)
			}
			d := newWorkspace(t).withState()
			d.run("deploy", d.writeLab("lab.yaml", byHand), "--runtime", runtime).wantCode(0)
			if s := d.inspect(); s.Runtime != runtime {
				t.Fatalf("it runs in %s", s.Runtime)
			}
			for _, tool := range []struct {
				name string
				test func(t *testing.T, d *workspace)
			}{
				{"ping", pingsEveryHost}, {"tcpdump", seesWithTcpdump}, {"tshark", seesWithTshark},
				{"iperf3", fillsTheLink},
			} {
				t.Run(tool.name, func(t *testing.T) {
					testenv.NeedProgram(t, tool.name)
					at := *d
					at.t = t
					tool.test(t, &at)
				})
			}
		})
	}
}

// pingsEveryHost checks that every host answers the first one's ping.
func pingsEveryHost(t *testing.T, d *workspace) {
	g := graphOf(t, byHand)
	for h := 1; h < g.Hosts; h++ {
		d.run("exec", "h0", "--", "ping", "-c1", "-W60", fmt.Sprint("h", h)).wantCode(0)
	}
}

// pingInBackground has a node ping another until the test ends.
func (d *workspace) pingInBackground(from, to string) {
	d.t.Helper()
	p := d.start("exec", from, "--", "ping", "-i", "0.05", to)
	p.awaitOutput(&p.stdout, "bytes from")
}

// What tcpdump writes to standard output in a node is a whole file, and nothing else.
func seesWithTcpdump(t *testing.T, d *workspace) {
	d.pingInBackground("h15", "h0")
	r := d.run("exec", "h0", "--", "tcpdump", "-i", "eth0", "-c", "3", "-w", "-", "icmp").wantCode(0)
	r.wantOnStderr("3 packets captured")
	file := filepath.Join(d.dir, "tcpdump.pcap")
	if err := os.WriteFile(file, []byte(r.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tcpdump", "-n", "-r", file).Output()
	if err != nil || strings.Count(string(out), "ICMP echo") != 3 {
		t.Errorf("%v: %s", err, out)
	}
}

// tshark captures in a node by itself, with a program of its own.
func seesWithTshark(t *testing.T, d *workspace) {
	d.pingInBackground("h15", "h0")
	r := d.run("exec", "h0", "--", "tshark", "-n", "-i", "eth0", "-c", "4", "-f", "icmp", "-T", "fields", "-e",
		"ip.src", "-e", "icmp.type")
	if r.code != 0 && strings.Contains(r.stderr, "ermission") { // distributions keep dumpcap for a group
		t.Skipf("tshark may not capture as an ordinary user here: %s", r.stderr)
	}
	r.wantCode(0)
	if !strings.Contains(r.stdout, "\t8") || !strings.Contains(r.stdout, "\t0") {
		t.Errorf("tshark sees %q", r.stdout)
	}
}

// What iperf3 gets through is the rate of the lab's links, less the headers of each packet.
func fillsTheLink(t *testing.T, d *workspace) {
	const line, ethernet = 20e6, 14 + 4
	checkRate(t, "TCP", 0.03, func() (got, want float64) {
		tcp := d.iperf("-t", "3", "-O", "1")
		const headers = 20 + 20 + 12 // IPv4, TCP, its timestamps
		payload := float64(tcp.Start.MSS)
		return tcp.End.Received.Rate, line * payload / (payload + headers + ethernet)
	})
	checkRate(t, "UDP", 0.03, func() (got, want float64) {
		udp := d.iperf("-u", "-b", "25M", "-l", "1200", "-t", "2")
		return udp.End.Received.Rate, line * 1200 / (1200 + 8 + 20 + ethernet)
	})
}

// checkRate fails the test unless a rate in b/s is within a share of the lab's. See
// quiettest.Check.
func checkRate(t *testing.T, what string, share float64, measure func() (got, want float64)) {
	t.Helper()
	quiettest.Check(t, 3, func() error {
		got, want := measure()
		t.Logf("%s: %.3f Mb/s, the lab says %.3f (%+.2f %%)", what, got/1e6, want/1e6, 100*(got/want-1))
		if got < want*(1-share) || got > want*(1+share) {
			return fmt.Errorf("%s: %.3f Mb/s; the lab says %.3f, and %.0f %% are accepted", what, got/1e6, want/1e6,
				100*share)
		}
		return nil
	})
}

// Wireshark's tools understand Weft's headers in Weft's captures, by the dissector that weft
// prints.
func TestPrivDissectorOnACapture(t *testing.T) {
	testenv.NeedProgram(t, "tshark")
	testenv.NeedProgram(t, "bash")
	d := deployed(t, byHand)
	script := d.writeLab("weft.lua", d.run("schema", "dissector").wantCode(0).stdout)
	cnp := make([]byte, wire.CNPSize)
	(&wire.CNP{Conn: 7, PSN: 8, Path: 9}).Encode(cnp)
	text := ""
	for _, b := range cnp {
		text += fmt.Sprintf(`\x%02x`, b)
	}
	p := d.start("capture", "h0", "-w", "h0.pcapng", "--for", "10s")
	p.awaitOutput(&p.stderr, "capturing")
	address := d.inspect().Nodes[15].Address
	d.run("exec", "h0", "--", "bash", "-c", fmt.Sprintf("printf '%s' | dd bs=1k iflag=fullblock status=none > "+
		"/dev/udp/%s/%d", text, address, wire.Port)).wantCode(0)
	p.wait().wantCode(0).wantOnStderr("captured") // with the question for the address, which comes first
	out, err := exec.Command("tshark", "-X", "lua_script:"+filepath.Join(d.dir, script), "-r",
		filepath.Join(d.dir, "h0.pcapng"), "-Y", "weft",
		"-T", "fields", "-E", "separator=|", "-e", "ip.dst", "-e", "weft.type", "-e", "weft.conn", "-e", "weft.psn",
		"-e", "weft.cnp.path").Output()
	if want := address + "|4|7|8|9"; err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("tshark says %q, want %q (%v)", out, want, err)
	}
}

// A deployed lab is what its file says, and says what it is: the JSON of inspect has its nodes,
// links and subnet.
func TestPrivInspectJSON(t *testing.T) {
	d := deployed(t, byHand)
	var s deploy.State
	in := json.NewDecoder(strings.NewReader(d.run("inspect", "--json").wantCode(0).stdout))
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		t.Fatal(err)
	}
	g := graphOf(t, byHand)
	if len(s.Nodes) != len(g.Nodes) || len(s.Links) != len(g.Links) || s.Memory == "" || !s.Committed ||
		s.Broken != "" {
		t.Errorf("%d nodes, %d links, memory %q, committed %v, broken %q", len(s.Nodes), len(s.Links), s.Memory,
			s.Committed, s.Broken)
	}
	for i := range g.Links {
		if k := &s.Links[i]; k.Name != g.Links[i].Name || k.RateBPS != int64(g.Links[i].Rate) ||
			k.DelayUS != g.Links[i].Delay.Microseconds() {
			t.Errorf("link %d: %+v, want %+v", i, k, g.Links[i])
		}
	}
}
