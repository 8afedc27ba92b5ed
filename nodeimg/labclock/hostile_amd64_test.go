package labclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
)

// python runs a script with lab time, and returns its output and what the keeper complained of.
func (b *bench) python(t *testing.T, script string) (out, complaints string, err error) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := b.command(t, nil, "/usr/bin/python3", "-c", script)
	socket, err := b.keeper.Attach(b.page, write)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Stderr = write
	text, err := cmd.Output()
	socket.Close()
	write.Close()
	said, _ := io.ReadAll(read) // until the session has ended
	return string(text), string(said), err
}

// Every way to start a program ends in one with lab time.
func TestEveryExecIsCovered(t *testing.T) {
	b := newBench(t, 1000)
	for what, script := range map[string]string{
		"from a thread": `
import os, threading, time
threading.Thread(target=lambda: os.execv("/bin/date", ["date", "-u", "+%Y"])).start()
time.sleep(100)`,
		"after failures": `
import os
for path in ["/no/such", "/etc/passwd", "/tmp"]:
    try: os.execv(path, ["x"])
    except OSError: pass
os.execv("/bin/date", ["date", "-u", "+%Y"])`,
		"without descriptors": `
import os, subprocess
r, w = os.pipe()
if os.fork() == 0:
    os.dup2(w, 1); os.closerange(3, 1 << 16); os.close(0); os.close(2)
    os.execv("/bin/date", ["date", "-u", "+%Y"])
os.close(w); print(os.fdopen(r).read(), end="")`,
		"of a descriptor": `
import os, ctypes
fd = os.open("/bin/date", os.O_RDONLY)
os.execve(fd, ["date", "-u", "+%Y"], os.environ)`,
		"with signals": `
import os, signal, subprocess
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
outs = {subprocess.run(["/bin/date", "-u", "+%Y"], capture_output=True).stdout for _ in range(50)}
signal.setitimer(signal.ITIMER_REAL, 0)
assert outs == {b"2037\n"}, outs
print("2037")`,
		"at once": `
import subprocess
all = [subprocess.Popen(["/bin/date", "-u", "+%Y"], stdout=subprocess.PIPE) for _ in range(50)]
outs = {p.communicate()[0] for p in all}
assert outs == {b"2037\n"}, outs
print("2037")`,
		"of a script": `
import os
script = "` + t.TempDir() + `/script"
with open(script, "w") as f: f.write("#!/bin/sh\nexec date -u +%Y\n")
os.chmod(script, 0o755)
os.execv(script, ["x"])`,
		"of a child that vforks": `
import os
os.posix_spawn("/bin/date", ["date", "-u", "+%Y"], os.environ); os.wait()`,
	} {
		if out, said, err := b.python(t, script); err != nil || out != "2037\n" {
			t.Errorf("exec %s: %q, %v; %s", what, out, err, said)
		}
	}
}

// A process may start one program after the other: nothing of one exec is left when the next
// begins.
func TestExecsInTurn(t *testing.T) {
	b := newBench(t, 1000)
	script := filepath.Join(t.TempDir(), "script")
	const text = "#!/bin/sh\n[ $1 = 0 ] && exec date -u +%Y\nexec \"$0\" $(($1-1))\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	start := fmt.Sprintf(`
import subprocess
all = [subprocess.Popen(["%s", "300"], stdout=subprocess.PIPE) for _ in range(4)]
print({p.communicate()[0] for p in all})`, script)
	if out, said, err := b.python(t, start); err != nil || out != "{b'2037\\n'}\n" {
		t.Errorf("%q, %v; %s", out, err, said)
	}
}

// Signals that reach the keeper while it hands over a descriptor change nothing. Standard input is
// a file that can be mapped: it must not pass for the clocks. Ctrl-C does not reach the keeper.
func TestSignalsToTheKeeper(t *testing.T) {
	b := newBench(t, 1000)
	if sid, err := unix.Getsid(b.keeper.PID()); err != nil || sid != b.keeper.PID() {
		t.Errorf("it is in session %d, where a terminal's Ctrl-C would end it; %v", sid, err)
	}
	stop := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			pid := b.keeper.cmd.Process.Pid
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			for _, thread := range threads {
				tid, _ := strconv.Atoi(thread.Name())
				_ = unix.Tgkill(pid, tid, unix.SIGURG) // what Go's runtime sends to preempt
			}
		}
	})
	defer sender.Wait()
	defer close(stop)
	out, said, err := b.python(t, `
import subprocess
for _ in range(4):
    all = [subprocess.Popen(["/bin/date", "-u", "+%Y"], stdin=open("/etc/passwd"), stdout=subprocess.PIPE) for _ in range(50)]
    outs = {p.communicate()[0] for p in all}
    assert outs == {b"2037\n"}, outs
print("2037")`)
	if err != nil || out != "2037\n" {
		t.Errorf("%q, %v; %s", out, err, said)
	}
}

// A program that cannot be given lab time does not run.
func TestNoProgramRunsWithTheWrongClock(t *testing.T) {
	b := newBench(t, 1000)
	out, said, err := b.python(t, `
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True: os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
except OSError: pass
os.execv("/bin/date", ["date"])`)
	if err == nil || out != "" || !strings.Contains(said, "date: the program cannot be given lab time and was killed: a descriptor for its clocks: ") {
		t.Errorf("a program without free descriptors: %q, %q, %v", out, said, err)
	}

	narrow := filepath.Join(t.TempDir(), "narrow")
	if err := os.WriteFile(narrow, narrowProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(narrow).Run(); err != nil {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	_, said, err = b.python(t, fmt.Sprintf("import os; os.execv(%q, ['narrow'])", narrow))
	if err == nil || !strings.Contains(said, "narrow: the program cannot be given lab time and was killed: it is not a 64-bit program") {
		t.Errorf("a 32-bit program: %q, %v", said, err)
	}
}

// narrowProgram returns a 32-bit program that exits with 0.
func narrowProgram(t *testing.T) []byte {
	const at = 0x10000
	code := []byte{0x31, 0xdb, 0x31, 0xc0, 0x40, 0xcd, 0x80} // xor ebx, ebx; xor eax, eax; inc eax; int 0x80
	header := elf.Header32{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: uint32(elf.EV_CURRENT),
		Ehsize: 52, Phoff: 52, Phentsize: 32, Phnum: 1, Entry: at + 52 + 32,
	}
	size := header.Entry - at + uint32(len(code))
	load := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: at, Paddr: at, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: 4096}
	var b bytes.Buffer
	for _, part := range []any{&header, &load, code} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// A static program reads lab time.
func TestStaticProgram(t *testing.T) {
	b := newBench(t, 1000)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "main")
	const text = `
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
	struct timeval v; struct timezone z = {1, 1}; struct timespec s; time_t t, u = time(&t);
	if (gettimeofday(&v, &z) || gettimeofday(&v, NULL) || gettimeofday(NULL, NULL)) return 1;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s) || s.tv_sec) return 2;
	if (clock_gettime(99, &s) != -1) return 3;
	for (clockid_t id = 0; id < 12; id++)
		if (id != 2 && id != 3 && id != 10 && !clock_gettime(id, &s)) printf("%d %ld\n", id, s.tv_sec);
	printf("%d %d %d %d\n", t == u, t == v.tv_sec, z.tz_minuteswest, v.tv_usec < 1000000);
	return 0;
}`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("no C compiler that links static programs: %v: %s", err, out)
	}
	mono, real := b.lines.Mono.Value/second, int64(Begin)/second
	want := ""
	for id := range 12 {
		switch {
		case realClocks>>id&1 != 0:
			want += fmt.Sprintf("%d %d\n", id, real)
		case monoClocks>>id&1 != 0:
			want += fmt.Sprintf("%d %d\n", id, mono)
		}
	}
	if got := b.run(t, nil, program); got != want+"1 1 0 1\n" {
		t.Errorf("it prints\n%swant\n%s", got, want)
	}
}

// Forks cost nothing, and a program that is killed leaves nothing.
func TestForksAndKills(t *testing.T) {
	b := newBench(t, 1000)
	cmd := b.command(t, nil, "/usr/bin/python3", "-c", `
import os, signal, subprocess, sys, time
for _ in range(300):
    if os.fork() == 0: os._exit(0)
    os.wait()
print("forked", flush=True)
while True:
    children = [subprocess.Popen(["/bin/sh", "-c", "while :; do /bin/true; done"], start_new_session=True) for _ in range(8)]
    time.sleep(0.02)
    for c in children: os.killpg(c.pid, signal.SIGKILL)
    for c in children: c.wait()
    print("killed", flush=True)`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make([]byte, len("forked\n"))
	if _, err := io.ReadFull(out, lines); err != nil || string(lines) != "forked\n" {
		t.Fatalf("%q, %v", lines, err)
	}
	t.Logf("300 forks took %v", time.Since(begin))
	for range 8 {
		if _, err := io.ReadFull(out, lines); err != nil || string(lines) != "killed\n" {
			t.Fatalf("%q, %v", lines, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// the shells of the last round are left to the test's namespaces; end those that run here
	_ = exec.Command("/bin/sh", "-c", "kill -9 $(grep -l 'while :; do /bin/true; done' /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3)").Run()
	if out := b.run(t, nil, "date", "-u", "+%Y"); out != "2037\n" {
		t.Errorf("after kills date says %q", out)
	}
}

// Programs that run when their keeper ends keep lab time, and start no others.
func TestKeeperEnds(t *testing.T) {
	b := newBench(t, 1000)
	cmd := b.command(t, nil, "/usr/bin/python3", "-c", `
import subprocess, sys, time
print("up", flush=True)
sys.stdin.readline()
print(time.gmtime().tm_year)
try: print(subprocess.run(["/bin/date"], capture_output=True).stdout)
except OSError as e: print("refused")`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	b.keeper.conn.Close()
	<-b.keeper.Ended()
	in.Close()
	said, err := io.ReadAll(out)
	if err != nil || string(said) != "2037\nrefused\n" {
		t.Errorf("it says %q, %v", said, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A session ends with the last of its programs.
func TestSessionsEnd(t *testing.T) {
	b := newBench(t, 1000)
	for range 5 {
		b.run(t, nil, "sh", "-c", "sleep 0.01 & true")
	}
	pid := b.keeper.cmd.Process.Pid
	quiettest.Await(t, func() error {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		open := 0
		for _, f := range files {
			if to, _ := os.Readlink(f); strings.Contains(to, "seccomp") || strings.Contains(to, "weft-clock") {
				open++
			}
		}
		if err == nil && open > 0 {
			err = fmt.Errorf("the keeper holds %d descriptors", open)
		}
		return err
	})
}
