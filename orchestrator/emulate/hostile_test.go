package emulate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/dockertest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/params"
	"weft/results/record"
	"weft/transport/cc/uec"
	"weft/units"
)

// attackTimes returns how long a host attacks in a test, and its pause between two frames.
// WEFT_HOSTILE=60s attacks for a minute without pauses.
func attackTimes(t *testing.T) (d, rest time.Duration) {
	if text := os.Getenv("WEFT_HOSTILE"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d, 0
	}
	return time.Second, 100 * time.Microsecond
}

// runAttacked runs an all-to-all of four hosts, the last of which sends whatever can be sent.
func runAttacked(t *testing.T, x Experiment) *Outcome {
	t.Helper()
	o, err := Run(t.Context(), attacked(t, x))
	if err != nil {
		t.Fatalf("the lab ended: %v", err)
	}
	return o
}

// attacked returns x with a last host that sends whatever can be sent.
func attacked(t *testing.T, x Experiment) Experiment {
	x.During = func(ctx context.Context, c runtime.Cluster) error {
		d, rest := attackTimes(t)
		on := target{network: [4]byte{10, 255, 255, 254}}
		for _, a := range x.Addrs[:3] {
			on.victims = append(on.victims, a.As4())
		}
		for h := range x.Plans[:3] {
			for _, c := range x.Plans[h].Conns {
				if c.Src != 3 && c.Dst != 3 {
					on.conns = append(on.conns, uint32(c.ID))
				}
			}
		}
		const enough = 100 // frames, which a busy machine sends in several attacks
		var sent int64
		for seed := uint64(1); sent < enough && ctx.Err() == nil; seed++ {
			attack, end := context.WithTimeout(ctx, d)
			n, err := attackFrom(attack, c.Node(3).PID, on, rest, seed)
			end()
			if err != nil {
				return err
			}
			sent += n
		}
		t.Logf("%d frames were sent", sent)
		return nil
	}
	x.Processes.Stderr = os.Stderr
	return x
}

// checkRefusals checks that the data is right, and that the run reports the refused
// packets by host and reason, and is not ok.
func checkRefusals(t *testing.T, o *Outcome, ranks int) {
	t.Helper()
	checkData(t, o, ranks)
	checkRefused(t, o,
		record.Refused{Host: "h3", By: record.ByNetwork, Why: "malformed"},
		record.Refused{Host: "h3", By: record.ByNetwork, Why: "without a destination"},
		record.Refused{Host: "h3", By: record.ByNetwork, Why: "with an IP address as its source that is not the host's"},
		record.Refused{Host: "h0", By: record.ByHost, Why: "unreadable"},
		record.Refused{Host: "h1", By: record.ByHost, Why: "of no connection with their sender"},
	)
	t.Logf("verdict %s because of %q; refused %+v", o.Fidelity.Verdict, o.Fidelity.Reasons, o.Refused)
	if o.Fidelity.Verdict == record.OK || !strings.Contains(strings.Join(o.Fidelity.Reasons, "\n"), "crossed the network") ||
		o.Beside == 0 {
		t.Errorf("the verdict is %s, because %q; %d packets beside the workload", o.Fidelity.Verdict,
			o.Fidelity.Reasons, o.Beside)
	}
	for h, n := range o.Report.Beside {
		if (n > 0) != (h == 3) {
			t.Errorf("h%d is a source of %d packets beside the workload", h, n)
		}
	}
}

// checkData checks that the data of all ranks is right.
func checkData(t *testing.T, o *Outcome, ranks int) {
	t.Helper()
	if len(o.Dones) != ranks {
		t.Errorf("%d ranks are done, want %d", len(o.Dones), ranks)
	}
	for _, d := range o.Dones {
		if d.Wrong != 0 || d.Checked == 0 {
			t.Errorf("rank %d has %d wrong elements of %d", d.Rank, d.Wrong, d.Checked)
		}
	}
	if o.Report == nil || o.Report.Broken != "" {
		t.Fatalf("the network: %+v", o.Report)
	}
}

// checkRefused checks that the run reports such packets, and that all that were refused are h3's.
func checkRefused(t *testing.T, o *Outcome, all ...record.Refused) {
	t.Helper()
	for _, want := range all {
		found := false
		for _, r := range o.Refused {
			found = found || r.Host == want.Host && r.By == want.By && r.Why == want.Why && r.Packets > 0
		}
		if !found {
			t.Errorf("%+v is not reported; the report has %+v", want, o.Refused)
		}
	}
	for _, r := range o.Refused {
		if r.By == record.ByNetwork && r.Host != "h3" || r.By == record.ByHost && r.From != "h3" {
			t.Errorf("the report does not blame h3: %+v", r)
		}
	}
}

// Whatever a host sends, the lab stays up, the data of all is right, and the run reports it.
func TestPrivHostileNode(t *testing.T) { bothNICs(t, checkHostileNode) }

func checkHostileNode(t *testing.T, bypass bool) {
	x := allToAll(4, 20, 20, 1000)
	x.Processes.Bypass = bypass
	checkRefusals(t, runAttacked(t, x), 80)
}

// The same where switches trim, and where rejections and credits decide what senders do.
func TestPrivHostileNodeUEC(t *testing.T) { bothNICs(t, checkHostileNodeUEC) }

func checkHostileNodeUEC(t *testing.T, bypass bool) {
	x := allToAll(4, 20, 20, 1000)
	x.Processes.Bypass = bypass
	control := params.Defaults[uec.Params]()
	control.CC = uec.Both
	params.SetDefaults(&control) // of credits
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			c := &x.Plans[h].Conns[i]
			c.Kind, c.CC, c.Initial, c.NetRTT = "uec", control, 0, x.BaseRTT
		}
	}
	for i := range x.Fabric.Ports {
		p := &x.Fabric.Ports[i]
		p.Buffer, p.Trim.On = 10*units.KB, true
		if int(p.From) >= x.Fabric.Hosts {
			p.Rate /= 2 // so that queues grow
		}
	}
	o := runAttacked(t, x)
	checkRefusals(t, o, 80)
	if o.Fabric.Trimmed == 0 {
		t.Error("nothing was trimmed")
	}
}

// Where the kernel carries packets, frames with a forged source address do not cross it, and the
// run reports them.
func TestUMLHostileNode(t *testing.T) {
	if !underUML(t) {
		return
	}
	o := runOnKernel(t, attacked(t, onKernel(allToAll(4, 20, 1, 40_000))))
	checkData(t, o, 4)
	checkRefused(t, o,
		record.Refused{Host: "h3", By: record.ByNetwork, Why: "without a destination"},
		record.Refused{Host: "h3", By: record.ByNetwork, Why: "with an IP or MAC address as its source that is not the host's"},
		record.Refused{Host: "h0", By: record.ByHost, Why: "unreadable"},
	)
	if t.Logf("verdict %s because of %q; refused %+v", o.Fidelity.Verdict, o.Fidelity.Reasons, o.Refused); o.Fidelity.Verdict == record.OK {
		t.Error("the verdict is ok")
	}
}

// The same from a container.
func TestPrivHostileContainer(t *testing.T) {
	x := allToAll(4, 20, 20, 1000)
	x.Processes = containers(t)
	checkRefusals(t, runAttacked(t, x), 80)
}

// containers returns how to run a lab in containers of an engine of the test's own.
func containers(t *testing.T) Processes {
	testenv.NeedNamespaces(t)
	host := dockertest.Host(t)
	if _, err := docker.Probe(t.Context(), host); err != nil {
		t.Skip(err)
	}
	weft := filepath.Join(t.TempDir(), "weft")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", weft,
		"weft/cmd/weft")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return Processes{Launch: docker.Launch, Runtime: "docker", Self: weft}
}
