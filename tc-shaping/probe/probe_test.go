package probe_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"weft/internal/testenv"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
)

func TestMain(m *testing.M) { umltest.Main(m) }

// On any kernel, each part works or has a reason, and the trials leave nothing behind.
func TestPrivProbe(t *testing.T) {
	testenv.NeedNamespaces(t)
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	c, err := probe.Probe()
	if err != nil {
		t.Skip(err)
	}
	for _, p := range qdisc.Parts() {
		t.Logf("%s: %q", p, c.Missing[p])
		if err := probe.Try(p); err != nil && !errors.Is(err, probe.ErrAbsent) {
			t.Errorf("%s: the attempt itself is wrong: %v", p, err)
		}
	}
	if c.Tick <= 0 || c.Tick > 10*time.Millisecond || c.Psched != 64*time.Nanosecond {
		t.Errorf("timers of %v, bursts in %v", c.Tick, c.Psched)
	}
	after, err := net.Interfaces()
	if err != nil || len(after) != len(before) {
		t.Errorf("interfaces were %v, are %v (%v)", before, after, err)
	}
	if err := probe.Try("cake"); err == nil {
		t.Error("a part that is none was found")
	}
}

// With one processor, a trial would eventually start on the process's first thread and leave it in
// another namespace.
func TestPrivTryLeavesTheProcessWhereItIs(t *testing.T) {
	testenv.NeedNamespaces(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_ = probe.Try(qdisc.PartFIFO) // an error is fine here: the kernel may lack it
	}
	if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
		t.Errorf("the process was in %s, and is in %s (%v)", before, after, err)
	}
}

func TestUMLHasEverything(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	c, err := probe.Probe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Complete(); err != nil {
		t.Error(err)
	}
}
