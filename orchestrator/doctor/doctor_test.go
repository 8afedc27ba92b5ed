package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/dockertest"
	"weft/internal/testenv"
	"weft/orchestrator/uml"
	"weft/tc-shaping/probe"
)

func TestMain(m *testing.M) {
	code := testenv.Main(m.Run)
	dockertest.Stop()
	os.Exit(code)
}

func find(t *testing.T, fs []Finding, name string) Finding {
	t.Helper()
	for _, f := range fs {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("nothing is said about %q", name)
	return Finding{}
}

// On any machine every test has a result, and every missing feature has a cost.
func TestCheck(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	fs := Check(t.Context(), Options{PacketRate: func(context.Context) (float64, error) { return 123456, nil }})
	took := time.Since(start)
	seen := map[string]bool{}
	for _, f := range fs {
		if f.Name == "" || f.Detail == "" || seen[f.Name] {
			t.Errorf("%+v", f)
		}
		if (f.State == OK) != (f.Cost == "") || (f.State == OK) != (f.Fix == "") {
			t.Errorf("cost or fix: %+v", f)
		}
		seen[f.Name] = true
	}
	var out strings.Builder
	if err := WriteTable(&out, fs); err != nil {
		t.Fatal(err)
	}
	t.Logf("in %v:\n%s", took, out.String())
	if f := find(t, fs, "packet rate"); f.Detail != "123456 packets/s through the fabric" {
		t.Errorf("%+v", f)
	}
	after, err := net.Interfaces()
	if err != nil || len(after) != len(interfaces) {
		t.Errorf("interfaces were %v, are %v (%v)", interfaces, after, err)
	}
}

// If Weft can create namespaces, the findings about them agree with what works.
func TestPrivCheck(t *testing.T) {
	testenv.NeedNamespaces(t)
	fs := Check(t.Context(), Options{})
	for _, name := range []string{"privileges", "namespaces"} {
		if f := find(t, fs, name); f.State != OK {
			t.Errorf("%+v", f)
		}
	}
	if find(t, fs, "TAP").State != OK && find(t, fs, "veth and AF_PACKET").State != OK {
		t.Error("no kind of cable can be had")
	}
	for _, f := range fs {
		absent := strings.HasPrefix(f.Detail, probe.ErrAbsent.Error())
		if strings.HasPrefix(f.Name, "qdisc ") && f.State == Missing && !absent {
			t.Errorf("%s: the attempt itself is wrong: %s", f.Name, f.Detail)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range Check(ctx, Options{}) {
		if f.Detail != context.Canceled.Error() {
			t.Errorf("%+v", f)
		}
	}
}

func TestPacketRateFails(t *testing.T) {
	fs := Check(t.Context(), Options{PacketRate: func(context.Context) (float64, error) {
		return 0,
			errors.New("no fabric")
	}})
	if f := find(t, fs, "packet rate"); f.State != Degraded || f.Detail != "no fabric" {
		t.Errorf("%+v", f)
	}
}

// Errors of package docker are not prefixed with Docker twice.
func TestDocker(t *testing.T) {
	absent := "unix://" + filepath.Join(t.TempDir(), "absent")
	for host, want := range map[string]string{
		absent: "there is no engine (dial unix " + strings.TrimPrefix(absent, "unix://") +
			": connect: no such file or directory)",
		"tcp://192.0.2.1:2375": "DOCKER_HOST is tcp://192.0.2.1:2375, but nodes are wired from this machine",
	} {
		got := containers(host).run(t.Context())
		if got.State != Missing || !strings.HasPrefix(got.Detail, want) || got.Fix == "" {
			t.Errorf("got %+v, expected %s", got, want)
		}
	}
}

func TestPrivDocker(t *testing.T) {
	host := dockertest.Host(t)
	got := containers(host).run(t.Context())
	if got.State == OK != strings.HasSuffix(got.Detail, host) || !strings.Contains(got.Detail, "API 1.") {
		t.Errorf("%+v", got)
	}
	t.Logf("%+v", got)
}

var golden = []Finding{
	{Name: "TAP", State: OK, Detail: "works"},
	{Name: "qdisc red", State: Missing, Detail: "neither built\nin nor a module", Cost: "no marking",
		Fix: "another kernel"},
	{Name: "cores", State: Degraded, Detail: "1", Cost: "time", Fix: "money"},
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := WriteTable(&out, golden); err != nil {
		t.Fatal(err)
	}
	want := `TAP        ok        works
qdisc red  missing   neither built in nor a module
cores      degraded  1

qdisc red (missing)
  costs  no marking
  get it another kernel

cores (degraded)
  costs  time
  get it money
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	if err := WriteTable(full, golden); err == nil {
		t.Error("written to a full disk without an error")
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, golden); err != nil {
		t.Fatal(err)
	}
	var back []Finding
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != len(golden) || back[1] != golden[1] {
		t.Errorf("got %+v, %v", back, err)
	}
	if !strings.Contains(out.String(), `"state": "ok"`) {
		t.Error(out.String())
	}
}

// Every result says whether and how to get a separate kernel.
func TestUserModeLinux(t *testing.T) {
	f := find(t, Check(t.Context(), Options{BootUML: func(context.Context, *uml.Kernel) (time.Duration, error) {
		return 0, errors.New("it ended before it had booted")
	}}), "User Mode Linux")
	installed := strings.Contains(f.Detail, "it ended")
	if f.State != Degraded || !installed && !strings.Contains(f.Detail, "linux.uml is not in PATH") ||
		!strings.Contains(f.Fix, "apt-get install user-mode-linux") {
		t.Errorf("%+v", f)
	}
	if !installed {
		t.Skip(f.Detail)
	}
	if f := find(t, Check(t.Context(), Options{}), "User Mode Linux"); f.State != OK || !strings.Contains(f.Detail,
		"--kernel uml") {
		t.Errorf("%+v", f)
	}
	t.Setenv("PATH", t.TempDir())
	if f := find(t, Check(t.Context(), Options{}), "User Mode Linux"); f.State != Degraded ||
		!strings.Contains(f.Detail, "not in PATH") {
		t.Errorf("%+v", f)
	}
}
