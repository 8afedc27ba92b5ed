package deploy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/control"
	"weft/internal/privilege"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

func TestNamesDoNotEscape(t *testing.T) {
	root := newStatePath(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc", "A", "-a", "a\x00b", "a.lock", strings.Repeat("a", 64), "ä"} {
		if err := CheckName(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
		if _, err := Down(t.Context(), root, name, Options{}); err == nil {
			t.Errorf("%q was taken down", name)
		}
	}
	if _, err := os.Lstat(root); err == nil {
		t.Error("a state directory was made for no lab")
	}
}

func TestStateDirectoryIsPrivate(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o755)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{open: "others may enter it", file: "not a directory", link: "not a directory"} {
		if _, err := OpenRoot(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if initial, _ := privilege.InitialUserNS(); initial && os.Geteuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRoot(theirs); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Error(err)
		}
	}
}

// newGuardedLab deploys the lab "guarded" of two hosts until the end of the test, and returns its
// state directory and a handle.
func newGuardedLab(t *testing.T) (root string, h *Handle) {
	t.Helper()
	testenv.NeedNamespaces(t)
	h, _ = openLab(t, "guarded")
	return h.root.Path(), h
}

// Only the lab's owner reaches its files and its socket. If their modes are opened, the supervisor
// still rejects others.
func TestPrivSocketIsPrivate(t *testing.T) {
	root, h := newGuardedLab(t)
	for name, want := range map[string]os.FileMode{
		"": os.ModeDir | 0o700, socketFile: os.ModeSocket | 0o600, journalFile: 0o600, labFile: 0o600, deploymentFile: 0o600, eventsFile: 0o600, logFile: 0o600,
	} {
		info, err := os.Lstat(filepath.Join(root, "guarded", name))
		if err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	testenv.NeedRoot(t) // to be somebody else
	stranger := func() string {
		cmd := exec.Command("/proc/self/exe", "stranger", filepath.Join(root, "guarded", socketFile))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := stranger(); !strings.Contains(out, "permission denied") {
		t.Errorf("a stranger connects: %s", out)
	}
	for dir := filepath.Join(root, "guarded"); dir != "/"; dir = filepath.Dir(dir) { // open every folder
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o011 != 0o011 {
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(dir, info.Mode())
		}
	}
	if err := os.Chmod(filepath.Join(root, "guarded", socketFile), 0o666); err != nil {
		t.Fatal(err)
	}
	if out := stranger(); !strings.Contains(out, "this lab belongs to another user") {
		t.Errorf("a stranger is served: %s", out)
	}
	_ = h
}

// strangerRole asks a supervisor for its state.
func strangerRole(args []string) error {
	sock, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: args[0], Net: "unix"})
	if err != nil {
		return err
	}
	conn := control.New(sock)
	_ = conn.SendValue(kindState, nil)
	_, err = conn.Expect(kindState, nil)
	return err
}

// The supervisor rejects bad requests, and the lab stays up.
func TestPrivBadRequestsAreRejected(t *testing.T) {
	root, h := newGuardedLab(t)
	dialRaw := func() *net.UnixConn {
		sock, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(root, "guarded", socketFile), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		_ = sock.SetDeadline(time.Now().Add(quiettest.Patience))
		return sock
	}
	oversized := append(binary.BigEndian.AppendUint32(nil, 1<<31), 5, 0, 'W', 'f')
	for _, b := range [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0xff}, 4096), oversized, {}} {
		sock := dialRaw()
		_, _ = sock.Write(b)
		_ = sock.CloseWrite()
		if answer, err := io.ReadAll(sock); err != nil && !errors.Is(err, syscall.ECONNRESET) || len(answer) > 0 && !bytes.Contains(answer, []byte("error")) {
			t.Errorf("% .20x: answered %q, %v", b, answer, err)
		}
		sock.Close()
	}
	for _, c := range []struct {
		kind string
		body any
		want string
	}{
		{"format-disk", nil, "unknown request"},
		{kindExec, map[string]any{"node": "h0", "args": []string{"true"}}, "needs 3 file descriptors, or 1 terminal; got 0"},
		{kindExec, map[string]any{"node": "h0", "uid": 0}, "uid"},
		{kindExec, "h0", "cannot unmarshal"},
		{kindLink, Link{Link: "../../etc"}, "has no link"},
		{kindNode, Node{Node: "h0", Action: "rm -rf"}, "unknown action"},
		{kindNode, Node{Node: "fabric", Action: NodeKill}, "has no node"},
		{kindCapture, Capture{What: "h0"}, "needs 1 file descriptor; got 0"},
		{kindLink, Link{Link: "h0-switch0", Set: "loss=7.5"}, "7.5"},
	} {
		conn := control.New(dialRaw())
		if err := conn.SendValue(c.kind, c.body); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Expect("anything", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.kind, c.body, err, c.want)
		}
		conn.Close()
	}
	if s, err := h.State(); err != nil || s.Broken != "" || len(s.Nodes) != 3 {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}

// A program in a node, even as its root, reaches neither the machine, nor the lab's files, nor
// other networks.
func TestPrivNodesAreConfined(t *testing.T) {
	root, h := newGuardedLab(t)
	s, err := h.State()
	if err != nil {
		t.Fatal(err)
	}
	inside := func(script string) (code int, out string) { t.Helper(); return runScript(t, h, script) }
	other := filepath.Join(t.TempDir(), "state") // another user's state directory
	elsewhere := filepath.Join(other, "socket")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	far, err := os.MkdirTemp("/var/tmp", "socket-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(far)
	for _, path := range []string{elsewhere, filepath.Join(far, "socket")} {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	for what, script := range map[string]string{
		"write to the machine's files":     "touch /weft-was-here",
		"write to /etc":                    "echo x >> /etc/hosts",
		"mount":                            "mount -t tmpfs none /mnt",
		"make the root writable":           "mount -o remount,rw /",
		"make a device":                    "mknod /tmp/disk b 8 0",
		"signal the supervisor":            fmt.Sprintf("kill -0 %d", s.Supervisor),
		"enter the machine's network":      "nsenter --net=/proc/1/ns/net -t 1 true && test $(ip -o link | wc -l) -gt 2",
		"leave for another address":        "ip route get 192.0.2.1",
		"make a namespace":                 "unshare --mount true",
		"make a user namespace":            "unshare --user true || unshare --user --net true",
		"read the machine's memory":        "head -c1 /dev/mem || head -c1 /dev/kmem",
		"change the machine's settings":    "echo 1 > /proc/sys/kernel/panic",
		"load a module":                    "modprobe dummy",
		"trace the node's own first":       "cat /proc/1/environ",
		"see a process of the machine":     fmt.Sprintf("test -d /proc/%d/ns && test $(ls -d /proc/[0-9]* | wc -l) -gt 6", s.Supervisor),
		"reach the lab's journal":          "cat " + filepath.Join(root, "guarded", journalFile),
		"reach the lab's socket":           "test -e " + filepath.Join(root, "guarded", socketFile),
		"reach another lab's supervisor":   "test -e " + elsewhere,
		"reach a socket of the machine":    "test -e " + filepath.Join(far, "socket"),
		"find a socket of the machine":     "find / -xdev -type s 2>/dev/null | grep . || find /usr /etc /var /run /tmp /opt /home -type s 2>/dev/null | grep .",
		"reach a container engine":         "test -e /var/run/docker.sock || test -e /run/docker.sock || test -e /run/containerd",
		"read the machine's passwords":     "cat /etc/shadow",
		"look into root's home":            "find /root /home /srv /mnt -mindepth 1 | grep .",
		"read keys of hosts":               "test -e /etc/ssh",
		"be root":                          "test $(id -u) = 0",
		"see keys of the machine":          "test -s /proc/keys",
		"find anything of the lab's files": "test -n \"$(ls " + root + ")\"",
	} {
		if code, out := inside(script); code == 0 {
			t.Errorf("a program in a node can %s:\n%s", what, out)
		}
	}
	if code, out := inside("grep -q h1 /etc/hosts && touch /tmp/mine && ip -o link | grep -q eth0"); code != 0 {
		t.Errorf("a node has not what it should have: %s", out)
	}
	if _, err := os.Lstat("/weft-was-here"); err == nil {
		t.Error("it was here")
	}
	for _, pid := range []int{s.Nodes[0].PID, childPID(t, s.Supervisor, "weft-fabric")} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapBnd:\t0000000000", "Uid:\t65534"} {
			if os.Geteuid() == 0 && !strings.Contains(string(text), want) {
				t.Errorf("process %d has not %q:\n%s", pid, want, text)
			}
		}
	}
}

// childPID returns the PID of a supervisor's process by its name in ps.
func childPID(t *testing.T, supervisor int, is string) int {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for child := range strings.FieldsSeq(string(text)) {
			name, _ := os.ReadFile("/proc/" + child + "/comm")
			if pid, err := strconv.Atoi(child); err == nil && string(name) == is+"\n" {
				return pid
			}
		}
	}
	t.Fatalf("the supervisor has no %s", is)
	return 0
}

// runScript runs a script in the first node and returns its exit code and output.
func runScript(t *testing.T, h *Handle, script string) (code int, out string) {
	t.Helper()
	return runProgram(t, h, Exec{Node: "h0", Args: []string{"/bin/sh", "-c", script}})
}

// runProgram runs a program and returns its exit code and output.
func runProgram(t *testing.T, h *Handle, e Exec) (code int, out string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	text := make(chan string, 1)
	go func() { b, _ := io.ReadAll(read); text <- string(b) }()
	exit, err := h.Exec(t.Context(), e, null, write, write)
	write.Close()
	out = <-text
	read.Close()
	if err != nil {
		t.Fatal(err)
	}
	return exit.Code, out
}

// A program in a node is limited in processes and memory, and leaves room for the next.
func TestPrivProgramsAreBounded(t *testing.T) {
	_, h := newGuardedLab(t)
	testenv.NeedRoot(t)
	if !boot.HasUser(boot.ProgramUser(1)) {
		t.Skip("processes of a node are counted where its programs can be a user of their own")
	}
	_, out := runScript(t, h, "i=0; while [ $i -lt 1500 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo started $i")
	running := strings.Count(processesRunning("sleep\x0060\x00"), "\n")
	if running < 100 || running > runtime.MaxProcesses || strings.Contains(out, "started 1500") {
		t.Errorf("%d of 1500 programs run, %d are allowed: %.300s", running, runtime.MaxProcesses, out)
	}
	if code, out := runScript(t, h, "kill -9 -1; true"); code > 128+9 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := runScript(t, h, "dd if=/dev/zero of=/dev/null bs=4G count=1 2>&1"); code == 0 {
		t.Errorf("a program takes 4 GiB: %s", out)
	}
	if code, out := runScript(t, h, "dd if=/dev/zero of=/tmp/big bs=1M count=80 2>&1"); code == 0 {
		t.Errorf("a node writes 80 MB to memory: %s", out)
	}
}

// processesRunning lists, one on each line, the processes with a command line.
func processesRunning(line string) string {
	var found strings.Builder
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if text, _ := os.ReadFile(f); string(text) == line {
			found.WriteString(f + "\n")
		}
	}
	return found.String()
}

// Even the owner's programs are rejected if they run in the network of a node, of any lab.
func TestPrivSocketIsNotForNodes(t *testing.T) {
	root, _ := newGuardedLab(t)
	cmd := exec.Command("/proc/self/exe", "stranger", filepath.Join(root, "guarded", socketFile))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "is in another network namespace") {
		t.Errorf("got %s", out)
	}
}

// A paused node runs no program, and the caller need not wait.
func TestPrivExecInAPausedNode(t *testing.T) {
	_, h := newGuardedLab(t)
	if err := h.Node(Node{Node: "h0", Action: NodePause}); err != nil {
		t.Fatal(err)
	}
	exit, err := h.Exec(t.Context(), Exec{Node: "h0", Args: []string{"true"}}, os.Stdin, os.Stdout, os.Stderr)
	if err != nil || exit.Code != CodeNode || !strings.Contains(exit.Ended, "h0 is paused") {
		t.Errorf("got %+v, %v", exit, err)
	}
	if err := h.Node(Node{Node: "h0", Action: NodeResume}); err != nil {
		t.Fatal(err)
	}
	if code, out := runScript(t, h, "true"); code != 0 {
		t.Errorf("afterwards: %d %s", code, out)
	}
}

// A user's own program is visible in a node with its folder, read-only. What lies beside that
// folder is not visible.
func TestPrivUserProgram(t *testing.T) {
	_, h := newGuardedLab(t)
	dir, err := os.MkdirTemp("/var/tmp", "own-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tools := filepath.Join(dir, "tools")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(tools, 0o755), os.WriteFile(filepath.Join(dir, "secret"), nil, 0o644),
		os.WriteFile(filepath.Join(tools, "data"), []byte("beside"), 0o644),
		os.WriteFile(filepath.Join(tools, "own"), []byte("#!/bin/sh\ncat ${0%/*}/data; test ! -e "+dir+"/secret && echo; touch ${0%/*}/new; id -un\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	_, err = h.Exec(t.Context(), Exec{Node: "h0", Args: []string{filepath.Join(tools, "own")}}, os.Stdin, write, write)
	write.Close()
	out, _ := io.ReadAll(read)
	if err != nil || !strings.HasPrefix(string(out), "beside\n") || !strings.Contains(string(out), "Read-only") {
		t.Errorf("%v, said %q", err, out)
	}
	if _, err := os.Stat(filepath.Join(tools, "new")); err == nil {
		t.Error("it was written to")
	}
}

// If a supervisor refuses a connection and closes it before the request was sent, its reason is
// still reported.
func TestRefusalBeforeTheRequest(t *testing.T) {
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := theirs.SendError(errors.New("this lab belongs to another user")); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if err := (&client{conn: ours}).send(kindExec, nil); err == nil || err.Error() != "this lab belongs to another user" {
		t.Error(err)
	}
}
