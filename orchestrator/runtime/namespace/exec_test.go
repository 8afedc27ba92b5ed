package namespace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// A program finds in a node the host's files to read, a folder of its own to write to, one
// interface, and only the node's processes.
func TestPrivInsideANode(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(2))
	if notes := append(c.Node(0).Report.Notes, c.Node(0).Report.Lacks...); len(notes) > 0 {
		t.Skipf("this machine grants less: %s", strings.Join(notes, "; "))
	}
	for _, s := range []struct{ script, want string }{
		{"hostname", "h0"},
		{"touch /etc/weft-was-here 2>&1; touch /usr/weft-was-here 2>&1; touch /dev/shm/.. 2>&1", "Read-only file system"},
		{"echo text > /tmp/a && echo text > /run/a && echo text > /dev/shm/a && cat /tmp/a /run/a /dev/shm/a | tr '\\n' ' '", "text text text"},
		{"echo 1 2>&1 > /proc/sys/net/ipv4/ip_forward", "Read-only file system"},
		{"ls -x /sys/class/net", "eth0  lo"},
		{"ls /proc | grep -c '^1$'", "1"},
		{"cat /proc/1/comm", "weft-h0"},
		{"echo $$; test $$ -lt 100 && echo few", "few"}, // PIDs are the namespace's own
		{"cat /proc/net/dev | grep -c :", "2"},
		{"cat /proc/net/if_inet6 2>/dev/null | grep -c eth0", "0"},
		{"ls /dev | tr '\\n' ' '", "fd full null random shm stderr stdin stdout tty urandom zero"},
		{"ls -A /tmp /run | grep -v a", "/run:"},
		{"grep -E 'CapEff|CapBnd' /proc/self/status | cut -f2 | tr '\\n' ' '", "0000000000003400 0000000000003400"},
		{"grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1"},
		{"echo x > /dev/null && echo written", "written"},
		{"pwd", "/tmp"},
		{"mount -t tmpfs x /mnt 2>&1 || echo refused", "refused"},
		{"cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6 2>/dev/null || echo 1", "1"},
	} {
		if out, _ := runIn(t, c, "h0", "sh", "-c", s.script); !strings.Contains(out, s.want) {
			t.Errorf("%s\n got %q\nwant %q", s.script, out, s.want)
		}
	}
	for _, file := range []string{"/tmp/a", "/run/a", "/dev/shm/a", "/etc/weft-was-here"} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s appeared on the host", file)
		}
	}
	if ip, err := exec.LookPath("ip"); err == nil {
		out, _ := runIn(t, c, "h0", ip, "-d", "addr", "show", "eth0")
		for _, want := range []string{"mtu 4200", "qlen 10000", "qdisc pfifo", "02:00:0a:00:00:01", "inet 10.0.0.1/16", "UP,LOWER_UP"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing in:\n%s", want, out)
			}
		}
		if out, _ := runIn(t, c, "h0", ip, "neigh"); !strings.Contains(out, "10.0.0.2 dev eth0 lladdr 02:00:0a:00:00:02 PERMANENT") {
			t.Errorf("neighbours:\n%s", out)
		}
	}
}

func TestPrivExecFails(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(1))
	_, err := runIn(t, c, "h0", "sh", "-c", "exit 7")
	if exit := (*runtime.StatusError)(nil); !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("got %v, want exit status 7", err)
	}
	if _, err := runIn(t, c, "h0", "no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := runIn(t, c, "h9", "true"); !errors.Is(err, runtime.ErrNoNode) || !strings.Contains(err.Error(), "h9") {
		t.Errorf("got %v", err)
	}
	if _, err := runIn(t, c, "h0"); err == nil {
		t.Error("nothing was run without an error")
	}
}

// A program left running in a node ends with the lab, and its children with it.
func TestPrivProgramsEndWithTheNode(t *testing.T) {
	c := launchLab(t, runtimetest.Lab(1))
	if out, err := runIn(t, c, "h0", "sh", "-c", "sleep 987 >/dev/null 2>&1 & (sleep 986 >/dev/null 2>&1 &) ; true"); err != nil {
		t.Fatal(err, out)
	}
	if n := countSleeps(t); n != 2 {
		t.Errorf("%d programs run in the node, want 2", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := countSleeps(t); n != 0 {
		t.Errorf("%d programs outlived their node", n)
	}
}

// countSleeps returns the number of running sleep programs.
func countSleeps(t *testing.T) (n int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if text, _ := os.ReadFile(f); string(text) == "sleep\x00987\x00" || string(text) == "sleep\x00986\x00" {
			n++
		}
	}
	return n
}
