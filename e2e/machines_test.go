package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/sandbox/sandboxtest"
	"weft/internal/testenv"
)

// acrossLab is a lab of two racks that lasts a while.
const acrossLab = `
weft: 1
name: across
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link: {rate: 100Gbps, delay: 3us}, mtu: 4096}
transport: {kind: pc4}
workload:
  - {collective: all-to-all, size: 1MB}
engine: {dilation: 3000}
`

// far is a machine of its own: a network namespace with a cable to this one.
type far struct {
	d     *workspace
	holds *exec.Cmd // keeps the namespace
	addr  string
	agent *process
}

// inside returns a command in the machine's namespace.
func (f *far) inside(args ...string) *exec.Cmd {
	cmd := f.d.command(args...)
	cmd.Path = "/usr/bin/nsenter"
	cmd.Args = append([]string{"nsenter", "-t", fmt.Sprint(f.holds.Process.Pid), "-n"}, append([]string{weft}, args...)...)
	return cmd
}

// newNamespace returns a process with a network namespace of its own.
func (d *workspace) newNamespace() *exec.Cmd {
	d.t.Helper()
	testenv.NeedNamespaces(d.t)
	testenv.NeedProgram(d.t, "nsenter", "unshare", "ip")
	holds := exec.Command("unshare", "-n", "sh", "-c", "echo up; exec sleep 1000")
	holds.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := holds.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := holds.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = holds.Process.Kill()
		_ = holds.Wait()
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		d.t.Fatalf("no network namespace of its own: %q, %v", said, err)
	}
	return holds
}

// program runs a program, which must succeed.
func (d *workspace) program(args ...string) {
	d.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %v %s", args, err, out)
	}
}

// ip runs ip with the words of a line, and ipIn in the namespace of a process.
func (d *workspace) ip(line string) {
	d.t.Helper()
	d.program(append([]string{"ip"}, strings.Fields(line)...)...)
}

func (d *workspace) ipIn(holds *exec.Cmd, line string) {
	d.t.Helper()
	d.program(append([]string{"nsenter", "-t", fmt.Sprint(holds.Process.Pid), "-n", "ip"}, strings.Fields(line)...)...)
}

// newFar returns machine n with an agent.
func newFar(d *workspace, n int) *far {
	d.t.Helper()
	f := &far{d: d, holds: d.newNamespace(), addr: fmt.Sprintf("192.0.2.%d:7788", 4*n+2)}
	pid, host := fmt.Sprint(f.holds.Process.Pid), fmt.Sprintf("far%d", n)
	d.ip("link add " + host + " type veth peer name eth9 netns " + pid)
	d.ip(fmt.Sprintf("addr add 192.0.2.%d/30 dev %s", 4*n+1, host))
	d.ip("link set " + host + " up")
	for _, c := range []string{fmt.Sprintf("addr add 192.0.2.%d/30 dev eth9", 4*n+2), "link set eth9 up", "link set lo up",
		fmt.Sprintf("route add default via 192.0.2.%d", 4*n+1)} {
		d.ipIn(f.holds, c)
	}
	d.program("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	d.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", host).Run() })
	f.agent = d.startCommand(f.inside("machine", "--listen", f.addr, "--secret", "secret"))
	f.agent.awaitOutput(&f.agent.stderr, "listening")
	return f
}

// newFarPair returns a workspace with a secret and two machines with agents.
func newFarPair(t *testing.T) (d *workspace, a, b *far) {
	t.Helper()
	d = newWorkspace(t)
	d.newSecret()
	return d, newFar(d, 0), newFar(d, 1)
}

// newSecret makes the secret of a workspace.
func (d *workspace) newSecret() {
	if err := os.WriteFile(filepath.Join(d.dir, "secret"), []byte(strings.Repeat("5e", 32)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// A lab runs on two machines, and its data are right; the run ends by the name of a machine that
// dies, and leaves nothing on the other.
func TestPrivMachines(t *testing.T) {
	testenv.NeedEmulation(t)
	d, a, b := newFarPair(t)
	on := a.addr + "," + b.addr
	d.writeLab("lab.yaml", acrossLab)
	r := d.run("run", "lab.yaml", "--engine", "emu", "--on", on, "--secret", "secret").wantCode(0)
	if !strings.Contains(r.stdout, "data verified") || !strings.Contains(r.stdout, "packets between parts of the network") {
		t.Errorf("it printed\n%s", r.stdout)
	}
	machines := "m1 is at " + a.addr + ", m2 is at " + b.addr
	r.wantOnStderr(machines)
	pages, err := filepath.Glob(filepath.Join(d.dir, "runs", "across", "*", "report.html"))
	if err != nil || len(pages) != 1 {
		t.Fatal(err, pages)
	}
	if page, err := os.ReadFile(pages[0]); err != nil || !strings.Contains(string(page), machines) ||
		!strings.Contains(string(page), "--on "+on+" --secret FILE") {
		t.Errorf("%v; the report does not name the machines", err)
	}
	for name, args := range map[string][]string{
		"another secret":   {"--secret", "other"},
		"nobody's address": {"--secret", "secret", "--on", a.addr + ",127.0.0.1:1"},
	} {
		if err := os.WriteFile(filepath.Join(d.dir, "other"), []byte(strings.Repeat("0a", 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		d.run(append([]string{"run", "lab.yaml", "--engine", "emu", "--on", on}, args...)...).wantCode(1)
		if !a.agent.running() || !b.agent.running() {
			t.Fatalf("%s: an agent has ended", name)
		}
	}
	long := d.start("run", "lab.yaml", "--engine", "emu", "--on", on, "--secret", "secret", "--set",
		"workload.0.repeat=2000")
	if what := eventually(patience, func() string {
		if len(childrenOf(a.agent.cmd.Process.Pid)) < 3 || len(childrenOf(b.agent.cmd.Process.Pid)) < 3 {
			return "the processes are not up"
		}
		return ""
	}); what != "" {
		t.Fatal(what)
	}
	<-time.After(2 * time.Second) // some of the workload
	killed := quiettest.Start()
	b.agent.signal(syscall.SIGKILL)
	r = long.wait().wantCode(1)
	killed.AtMost(t, 8*time.Second, "the end after a machine had died")
	if !strings.Contains(r.stdout+r.stderr, "m2") {
		t.Errorf("no word of m2:\n%s%s", r.stdout, r.stderr)
	}
	if what := eventually(patience, func() string {
		if left := childrenOf(a.agent.cmd.Process.Pid); len(left) > 0 {
			return fmt.Sprintf("processes are left on the other machine: %v", left)
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
}

// Programs run on the machine of their host, with the files of the lab, and read the clock of the
// host, also where a protocol corrects it. One that fails ends the run by its host's name.
func TestPrivProgramsOnMachines(t *testing.T) {
	needLabTime(t)
	self := testProgram(t)
	d, a, b := newFarPair(t)
	on := []string{"--on", a.addr + "," + b.addr, "--secret", "secret", "-q"}
	if err := os.WriteFile(filepath.Join(d.dir, "words.txt"), []byte("words of the lab\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const head = "weft: 1\nname: %s\ntopology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2, link: {rate: " +
		"100Gbps, delay: 3us}}\nengine: {kind: emu, dilation: 5000}\n"
	d.writeLab("words.yaml", fmt.Sprintf(head, "words")+"workload: [{program: [sh, -c, 'hostname; cat /lab/words.txt; "+
		"head -c 300000 /dev/zero | wc -c; cut -d\" \" -f41 /proc/self/stat'], files: [words.txt]}]\n")
	d.run(append([]string{"run", "words.yaml"}, on...)...).wantCode(0)
	d.writeLab("fails.yaml", fmt.Sprintf(head, "fails")+"workload: [{program: [sh, -c, 'test $(hostname) != h3 || exit 7']}]\n")
	d.run(append([]string{"run", "fails.yaml"}, on...)...).wantCode(1).wantPrinted("h3: exit status 7")
	logs, err := filepath.Glob(filepath.Join(d.dir, "runs", "words", "*", "output", "0-h2.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	if text, err := os.ReadFile(logs[0]); string(text) != "h2\nwords of the lab\n300000\n0\n" { // and has ordinary scheduling
		t.Errorf("h2 printed %q, %v", text, err)
	}
	d.writeLab("clocks.yaml", fmt.Sprintf(head+"clocks: {preset: bad, offset: ±1ms, sample: 10us}\nworkload: [{program: [%s, %s], "+
		"hosts: [h1, h3], metrics: '(?P<clock_ns>-?\\d+) ns'}]\n", "clocks", self, printClock))
	for sync, settings := range map[string][]string{
		"none": nil, "ptp": {"--set", "clocks.ptp.interval=50us", "--set", "clocks.warmup=2ms"},
	} {
		quiettest.Check(t, 3, func() error {
			d.run(slices.Concat([]string{"run", "clocks.yaml", "--set", "clocks.sync=" + sync, "--out", sync}, on, settings)...).
				wantCode(0)
			runs, err := filepath.Glob(filepath.Join(d.dir, sync, "clocks", "*"))
			if err != nil || len(runs) == 0 {
				return fmt.Errorf("no run: %v", err)
			}
			return checkClocks(t, runs[len(runs)-1], sync != "none")
		})
	}
}

// When the keeper of lab time of another machine is killed, the programs with lab time there end by
// name, in a run and in a deployed lab, whose clocks are synchronized, and the next program of the
// lab has a keeper again.
func TestPrivKeeperKilledOnAMachine(t *testing.T) {
	needLabTime(t)
	d := newWorkspace(t).withState()
	d.newSecret()
	a, b := newFar(d, 0), newFar(d, 1)
	kill := func() {
		t.Helper()
		family := b.agent.family()
		i := slices.IndexFunc(family, func(m member) bool { return m.name == "weft-timekeeper" })
		if i < 0 {
			t.Fatalf("no keeper runs, of %v", family)
		}
		if err := syscall.Kill(family[i].pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	on := []string{"--on", a.addr + "," + b.addr, "--secret", "secret"}
	const says = "died: signal: killed; programs with lab time cannot go on without it"
	d.writeLab("lab.yaml", acrossLab)
	run := d.start(slices.Concat([]string{"run", "lab.yaml"}, on, []string{"--", "sh", "-c",
		"echo up; while :; do sleep 0.1; done"})...)
	for _, host := range []string{"h2", "h3"} { // one that starts later has another keeper
		run.awaitOutput(&run.stdout, host+": up")
	}
	kill()
	run.wait().wantCode(1).wantPrinted("the keeper of lab time of m2 " + says)
	_, s := d.summary()
	if len(s.Programs) != 1 || len(s.Programs[0].Hosts) != 4 {
		t.Fatalf("%+v", s.Programs)
	}
	for _, h := range s.Programs[0].Hosts[2:] {
		if !strings.Contains(h.Ended, says) {
			t.Errorf("%+v", h)
		}
	}
	d.writeLab("lab.yaml", acrossLab+"clocks: {sync: ptp, offset: ±1ms, ptp: {interval: 200us}}\n")
	d.run(append([]string{"deploy", "lab.yaml"}, on...)...).wantCode(0)
	if what := eventually(patience, func() string {
		r := d.run("inspect").wantCode(0)
		if strings.Count(r.stdout, ", locked") != 4 {
			return r.stdout
		}
		return ""
	}); what != "" {
		t.Errorf("clocks are not synchronized:\n%s", what)
	}
	long := d.start("exec", "--clock", "lab", "h3", "--", "sh", "-c", "echo up; exec sleep 60 </dev/null")
	long.awaitOutput(&long.stdout, "up")
	kill()
	long.wait().wantCode(125).wantOnStderr(says)
	d.run("exec", "--clock", "lab", "h3", "--", "date", "+%Y").wantCode(0).wantPrinted("2037")
	d.run("inspect").wantCode(0)
}

// A lab stays up on two machines: programs run in its hosts and reach each other, also at a
// terminal, links go down, hosts end and start again, and packets are captured. It ends with all
// processes, and inspect and a capture name a machine that is lost.
func TestPrivDeployOnMachines(t *testing.T) {
	needLabTime(t)
	d, a, b := newFarPair(t)
	d.writeLab("lab.yaml", acrossLab)
	deploy := []string{"deploy", "lab.yaml", "--on", a.addr + "," + b.addr, "--secret", "secret"}
	nothing := func() {
		t.Helper()
		if what := eventually(patience, func() string {
			left := append(childrenOf(a.agent.cmd.Process.Pid), childrenOf(b.agent.cmd.Process.Pid)...)
			return strings.Join(left, " ")
		}); what != "" {
			t.Errorf("processes %s are left", what)
		}
	}
	d.run(slices.Concat(deploy, []string{"--on", "swarm:2"})...).wantCode(2).wantPrinted("--secret is for agents at addresses")
	d.run(deploy...).wantCode(0)
	d.run(deploy...).wantCode(0).wantPrinted("is up already")
	ping := []string{"exec", "h0", "--", "ping", "-c", "1", "-W", "5", "h3"}
	d.run(ping...).wantCode(0).wantPrinted("1 received")
	d.run("exec", "--clock", "lab", "h3", "--", "date", "+%Y").wantCode(0).wantPrinted("2037")
	d.run("exec", "h3", "--", "sh", "-c", "echo words >&2; exit 5").wantCode(5).wantPrinted("words")
	d.run("inspect").wantCode(0).wantPrinted("m1 is at "+a.addr+", m2 is at "+b.addr, "on m2")
	d.run("link", "across", "h3-leaf1", "down").wantCode(0)
	ping[7] = "1"
	d.run(ping...).wantCode(1)
	d.run("link", "across", "h3-leaf1", "up").wantCode(0)
	d.run("link", "across", "leaf0-spine1", "set", "delay=5us,rate=50Gbps").wantCode(0)
	ping[7] = "5"
	d.run(ping...).wantCode(0)
	for _, link := range []string{"leaf0-spine0", "leaf0-spine1"} { // one of them is on the way
		d.run("link", "across", link, "set", "duplicate=100%").wantCode(0)
	}
	d.run("exec", "h0", "--", "ping", "-c", "2", "-i", "0.2", "-W", "5", "h3").wantCode(0).wantPrinted("DUP!")
	for _, link := range []string{"leaf0-spine0", "leaf0-spine1"} {
		d.run("link", "across", link, "set", "duplicate=0%").wantCode(0)
	}
	d.captureFar(ping)
	d.endFar(ping)
	d.terminalFar()
	d.run("destroy").wantCode(0)
	nothing()
	d.run(deploy...).wantCode(0)
	var long []*process // on the machine that is lost, and on the other
	for _, host := range []string{"h3", "h0"} {
		p := d.start("capture", host, "-w", host+"-long.pcapng")
		p.awaitOutput(&p.stderr, "capturing")
		long = append(long, p)
	}
	program := d.start("exec", "h3", "--", "sh", "-c", "echo up; exec sleep 100")
	program.awaitOutput(&program.stdout, "up")
	b.agent.signal(syscall.SIGKILL)
	d.run("exec", "h3", "--", "true").wantCode(125).wantPrinted("m2", "weft destroy across")
	program.wait().wantCode(125).wantPrinted("m2", "weft destroy across")
	for _, p := range long {
		p.wait().wantCode(1).wantPrinted("m2", "lab across is broken")
	}
	d.run("exec", "h3", "--", "true").wantCode(125).wantPrinted("m2", "weft destroy across")
	d.run("link", "across", "h0-leaf0", "down").wantCode(1).wantPrinted("m2", "weft destroy across")
	d.run("node", "across", "h3", "restart").wantCode(1).wantPrinted("m2", "weft destroy across")
	if what := eventually(patience, func() string {
		if r := d.run("inspect"); !strings.Contains(r.stdout+r.stderr, "m2") {
			return "no word of m2: " + r.stdout
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
	d.run("destroy").wantCode(0)
}

// captureFar captures what a host of a lab on two machines sends and receives, and what crosses
// between them, while ping goes on.
func (d *workspace) captureFar(ping []string) {
	d.t.Helper()
	node := d.start("capture", "h3", "-w", "h3.pcapng", "--count", "6")
	port := d.start("capture", "h3->leaf1", "-w", "port.pcapng", "--count", "3", "--snap", "60")
	for _, p := range []*process{node, port} {
		p.awaitOutput(&p.stderr, "capturing")
	}
	for node.running() || port.running() {
		d.run(ping...).wantCode(0)
	}
	node.wait().wantCode(0).wantPrinted("6 packets captured")
	port.wait().wantCode(0).wantPrinted("3 packets captured")
	if _, err := exec.LookPath("tshark"); err != nil {
		return
	}
	for file, most := range map[string]int{"h3.pcapng": 4, "port.pcapng": 3} { // ARP may be among them
		got := d.tshark(file, "icmp", "icmp.type")
		if len(got) < 2 || len(got) > most+2 || file == "port.pcapng" && slices.Contains(got, "8") {
			d.t.Errorf("%s has pings of types %v", file, got)
		}
	}
}

// endFar kills, restarts, pauses and resumes a host of a lab on two machines.
func (d *workspace) endFar(ping []string) {
	d.t.Helper()
	node := func(does string) { d.run("node", "across", "h3", does).wantCode(0) }
	silent := slices.Clone(ping)
	silent[7] = "1"
	node("kill")
	d.run(silent...).wantCode(1)
	d.run("exec", "h3", "--", "true").wantCode(125).wantPrinted("restart starts it again")
	d.run("inspect").wantCode(0).wantPrinted("dead")
	node("restart")
	d.run(ping...).wantCode(0).wantPrinted("1 received")
	node("restart") // one that runs
	d.run(ping...).wantCode(0)
	d.run("exec", "h3", "--", "hostname").wantCode(0).wantPrinted("h3")
	node("pause")
	d.run(silent...).wantCode(1)
	node("resume")
	d.run(ping...).wantCode(0)
	r := d.run("inspect").wantCode(0)
	r.wantPrinted("on m2")
	if strings.Contains(r.stdout, "dead") {
		d.t.Errorf("a host is dead that runs:\n%s", r.stdout)
	}
}

// terminalFar runs a shell at a terminal in a host on another machine.
func (d *workspace) terminalFar() {
	d.t.Helper()
	x := d.startAtTerminal(33, 101, "exec", "h3", "--", "sh")
	x.typeKeys("stty size; echo $((6*7)) $(hostname)\r")
	x.awaitText("33 101")
	x.awaitText("42 h3")
	x.resize(20, 80)
	x.typeKeys("until test \"$(stty size)\" = '20 80'; do sleep 0.1; done; echo re''sized\r")
	x.awaitText("resized")
	x.typeKeys("echo be''gun; sleep 100\r")
	x.awaitText("begun")
	x.typeKeys(ctrlC + "echo still $((40+2))\r")
	x.awaitText("still 42")
	x.typeKeys("exit 7\r")
	if r := x.wait(); r.code != 7 {
		d.t.Errorf("exit code %d", r.code)
	}
	if after := x.settings(); after != x.was {
		d.t.Errorf("the terminal was left as %+v, it was %+v", after, x.was)
	}
}

// A run on two machines is captured, with what crosses between them, and so is one in two parts on
// this machine: the file has each packet that the port sent. A module controls congestion there.
func TestPrivCapturesAndModulesOnMachines(t *testing.T) {
	testenv.NeedEmulation(t)
	d, a, b := newFarPair(t)
	on := []string{"--on", a.addr + "," + b.addr, "--secret", "secret"}
	d.writeLab("lab.yaml", acrossLab)
	for name, where := range map[string][]string{"far": on, "near": {"--set", "engine.machines=2"}} {
		args := []string{"run", "lab.yaml", "--engine", "emu", "--out", name, "--capture", "h0=" + name + "-h0.pcapng"}
		for _, port := range []string{"leaf0->spine1", "spine1->leaf1", "leaf1->h3"} {
			args = append(args, "--capture", port+"="+name+strings.Replace(port, "->", "-", 1)+".pcapng")
		}
		r := d.run(slices.Concat(args, where)...).wantCode(0)
		if !strings.Contains(r.stdout, "data verified") {
			t.Errorf("%s printed\n%s", name, r.stdout)
		}
		d.checkCaptured(name, r.stderr)
	}
	window := sandboxtest.Answer(50_000)
	for want, event := range map[string][]byte{"": window, "module tiny: after a": sandboxtest.After(100, sandboxtest.Trap())} {
		lab := d.writeModule(sandboxtest.Code(window, event))
		text, err := os.ReadFile(filepath.Join(d.dir, lab))
		if err != nil {
			t.Fatal(err)
		}
		d.writeLab(lab, strings.Replace(string(text), "{kind: star, hosts: 3}",
			"{kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2, link: {rate: 100Gbps, delay: 3us}}", 1))
		r := d.run(append([]string{"run", lab, "--engine", "emu", "--dilation", "3000"}, on...)...)
		if failed := want != ""; (r.code != 0) != failed || failed && !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("exit code %d; want %q\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
}

// checkCaptured checks that the captures of a run have the packets that its ports have counted.
func (d *workspace) checkCaptured(out, said string) {
	d.t.Helper()
	runs, err := filepath.Glob(filepath.Join(d.dir, out, "across", "2*"))
	if err != nil || len(runs) != 1 {
		d.t.Fatal(runs, err)
	}
	counts := map[string]string{}
	for line := range strings.Lines(d.run("results", "export", runs[0], "ports", "csv").wantCode(0).stdout) {
		if f := strings.Split(line, ","); len(f) > 2 {
			counts[f[0]] = f[1]
		}
	}
	seen := 0
	for _, f := range regexp.MustCompile(`packets of (\S+) in .+: ([\d,]+)`).FindAllStringSubmatch(said, -1) {
		point, n := f[1], strings.ReplaceAll(f[2], ",", "")
		if want, port := counts[point]; port && n != want || n == "0" {
			d.t.Errorf("%s: %s packets of %s were captured of %s", out, n, point, want)
		}
		seen++
	}
	if seen != 4 {
		d.t.Errorf("%s: %d captures\n%s", out, seen, said)
	}
}

// What a program on another machine prints is not lost, and its input neither, if somebody reads it
// later than a connection between machines may stand still.
func TestPrivSlowStreamsOnMachines(t *testing.T) {
	needLabTime(t)
	d, a, b := newFarPair(t)
	d.writeLab("lab.yaml", acrossLab)
	d.run("deploy", "lab.yaml", "--on", a.addr+","+b.addr, "--secret", "secret").wantCode(0)
	defer d.run("destroy")
	const size, stands = 20_000_000, 5 * time.Second
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	prints := d.command("exec", "h3", "--", "head", "-c", fmt.Sprint(size), "/dev/zero")
	prints.Stdout = theirs
	if err := prints.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	reads := d.command("exec", "h0", "--", "sh", "-c", fmt.Sprintf("sleep %.0f; wc -c", stands.Seconds()))
	reads.Stdin = strings.NewReader(strings.Repeat("x", size))
	input := d.startCommand(reads)
	<-time.After(stands)
	if n, err := io.Copy(io.Discard, ours); n != size || err != nil {
		t.Errorf("%d bytes of %d were printed, %v", n, size, err)
	}
	if err := prints.Wait(); err != nil {
		t.Error(err)
	}
	input.wait().wantCode(0).wantPrinted(fmt.Sprint(size))
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) (all []string) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
