package e2e

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/nodeimg/labclock"
	"weft/results/store"
)

// roundTrip is the first argument that makes this test program measure round trips over TCP: on h0
// it answers the other hosts, whose number is the second argument.
const roundTrip = "round-trip"

// measureRoundTrip is what the test program does then.
func measureRoundTrip(args []string) (code int) {
	if err := exchange(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func exchange(args []string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if name == "h0" {
		listener, err := net.Listen("tcp", "h0:7000")
		if err != nil {
			return err
		}
		for range len(args[0]) {
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			if _, err := io.Copy(conn, conn); err != nil {
				return err
			}
		}
		return nil
	}
	var conn net.Conn
	if what := eventually(patience, func() string { // until h0 listens
		if conn, err = net.Dial("tcp", "h0:7000"); err != nil {
			return err.Error()
		}
		return ""
	}); what != "" {
		return errors.New(what)
	}
	defer conn.Close()
	message := make([]byte, 64)
	best := time.Hour
	for range 20 {
		begin := time.Now()
		if _, err := conn.Write(message); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
		best = min(best, time.Since(begin))
	}
	fmt.Printf("%d B %.2f us in %d\n", len(message), float64(best.Nanoseconds())/1e3, time.Now().UTC().Year())
	return nil
}

// A program of the workload runs on its hosts beside a collective, over the lab's network and in
// its time: a round trip over TCP takes what the links say. Its output, files and numbers are kept.
func TestPrivProgramInTheWorkload(t *testing.T) {
	needLabTime(t)
	self := testProgram(t)
	d := newWorkspace(t)
	name := d.writeLab("rtt.yaml", fmt.Sprintf(`
weft: 1
name: rtt
topology: {kind: star, hosts: 3, link: {rate: 100Gbps, delay: 20us}}
workload:
  - program: [%s, %s, "xx"]
    files: [rtt.yaml] # the mount point is there for the next program
    metrics: '(?P<size_bytes>\d+) B (?P<time_us>[\d.]+) us in (?P<year>\d+)'
  - program: [cat, /lab/rtt.yaml, /lab/none]
    hosts: [h2]
    files: [rtt.yaml]
    clock: real
    start: 100us
  - {collective: all-reduce, size: 1MB}
expect: [metric.year.p50 == 2037, metric.time_us.count == 2]
engine: {kind: emu, dilation: 2000} # a tenth of the data packets that a busy machine carries
`, self, roundTrip))
	// cat fails, and so does the run; the rest is kept
	r := d.run("run", name, "-q")
	if r.code != 1 || !strings.Contains(r.stdout, "cat rtt.yaml ...: h2: exit status 1") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	quiettest.Check(t, 3, func() error {
		// what remains is right
		r := d.run("run", name, "--set", "workload.1.program=[cat, /lab/rtt.yaml]", "--out", "good")
		if r.code != 0 {
			return fmt.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		return checkRoundTrips(d, r)
	})
	// From the command line, which replaces workload and expectations.
	r = d.run("run", name, "--hosts", "h1", "--json", "-e", "A=b c", "--file", name, "--", "sh", "-c", "echo $A; grep -c ^weft: /lab/rtt.yaml; date -u +%Y; kill -9 $$")
	said := regexp.MustCompile(`(?m)^h1: .*$`).FindAllString(r.stderr, -1) // without lines about the progress
	if r.code != 1 || !strings.Contains(r.stdout, `"signal":"SIGKILL"`) || strings.Join(said, "\n") != "h1: b c\nh1: 1\nh1: 2037" {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// checkRoundTrips checks what a run of that lab printed and left.
func checkRoundTrips(d *workspace, r result) error {
	runs, err := filepath.Glob(filepath.Join(d.dir, "good", "rtt", "*"))
	if err != nil || len(runs) == 0 {
		return fmt.Errorf("no run: %v", err)
	}
	dir := runs[len(runs)-1]
	s, err := store.ReadSummary(dir)
	if err != nil {
		return err
	}
	for _, h := range s.Programs[0].Hosts {
		if h.Failed() || !s.Verified || s.Programs[0].Clock != "lab" || s.Programs[1].Clock != "real" {
			return fmt.Errorf("%+v", s.Programs)
		}
	}
	const link = 4 * 20.0 // four links, in microseconds; 64 bytes take 5 ns
	for _, m := range s.Metrics {
		if m.Name != "time_us" {
			continue
		}
		for _, v := range m.Values {
			if v < link || v > 1.1*link {
				return fmt.Errorf("a round trip took %v us; want %v us, and up to 10 %% more", v, link)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "output", "1-h2.log"))
	if err != nil {
		return err
	}
	lab, err := os.ReadFile(filepath.Join(dir, "files", "1", "rtt.yaml"))
	if err != nil || string(text) != string(lab) {
		return fmt.Errorf("cat wrote %q, %v", text, err)
	}
	if !strings.Contains(r.stdout, "h1: 64 B ") || !strings.Contains(r.stdout, "h2: name: rtt\n") ||
		!strings.Contains(r.stdout, "minimum retransmission timeout of 100 us") {
		return fmt.Errorf("it printed\n%s", r.stdout)
	}
	rows := 0
	type row struct {
		Host string `parquet:"host"`
		Name string `parquet:"name"`
	}
	if err := store.Scan(dir, store.MetricsFile, func(some []row) error { rows += len(some); return nil }); err != nil || rows != 6 {
		return fmt.Errorf("%d rows of metrics, %v", rows, err)
	}
	return nil
}

// The kernel's TCP in a host has the settings of the lab: rto_min in lab time, on every route. What
// the kernel cannot do is refused by name, and nothing is left.
func TestPrivTCPOfRoutes(t *testing.T) {
	testenv.NeedProgram(t, "ip")
	const lab = `
weft: 1
name: tcp
topology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: 1us}}
engine: {dilation: 100, tcp: {rto_min: 2ms, initcwnd: 20, initrwnd: 30, quickack: on, ecn: on, congctl: reno}}
`
	d := deployed(t, lab)
	got := d.run("exec", "h0", "--", "ip", "route").wantCode(0).stdout
	for _, setting := range []string{"rto_min lock 200ms", "initcwnd 20", "initrwnd 30", "quickack 1", "features ecn",
		"congctl reno"} {
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, setting) {
			t.Errorf("routes are %q, want one with %s", got, setting)
		}
	}
	d.run("exec", "h0", "--", "ping", "-c1", "-W20", "h1").wantCode(0)
	d.run("plan", "lab.yaml").wantPrinted("its route with rto_min 200ms initcwnd 20")
	for set, says := range map[string]string{
		"engine.tcp.congctl=none-such": "the kernel has no congestion control none-such (it has ",
		"engine.tcp.rto_min=1us":       "1us is 100µs of real time at dilation 100; the kernel's timeouts are 1 ms to 2m0s",
	} {
		d.run("deploy", "lab.yaml", "--set", "name=bad", "--set", set).wantCode(1).wantPrinted(says)
	}
	d.run("validate", "lab.yaml", "--set", "engine.kind=sim").wantCode(2).wantPrinted("the simulator does not have")
}

// printClock is the first argument that makes this test program print its clock for a second.
const printClock = "print-clock"

// printClocks is what the test program does then. Lines are far apart, so that each arrives by
// itself.
func printClocks() (code int) {
	for range 100 {
		fmt.Printf("%d ns\n", time.Now().UnixNano()-labclock.Begin)
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 10e6}, nil) // time.Sleep looks at the clock
	}
	return 0
}

// The clock of a program is that of its host, with the error of the oscillator or what a protocol
// leaves of it. The run records the truth about both: when lines arrived, and the error of the
// synchronized clock.
func TestPrivProgramsReadCorrectedClocks(t *testing.T) {
	needLabTime(t)
	self := testProgram(t)
	d := newWorkspace(t)
	name := d.writeLab("clocks.yaml", fmt.Sprintf(`
weft: 1
name: clocks
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
clocks: {preset: bad, offset: ±1ms, sample: 10us}
workload: [{program: [%s, %s], hosts: [h1, h3], metrics: '(?P<clock_ns>-?\d+) ns'}]
engine: {kind: emu, dilation: 2000}
`, self, printClock))
	for sync, settings := range map[string][]string{
		"none":    nil,
		"ptp":     {"--set", "clocks.ptp.interval=50us", "--set", "clocks.warmup=2ms"},
		"huygens": {"--set", "clocks.huygens.window=200us", "--set", "clocks.warmup=1600us"},
	} {
		quiettest.Check(t, 3, func() error {
			d.run(append([]string{"run", name, "-q", "--set", "clocks.sync=" + sync, "--out", sync}, settings...)...).
				wantCode(0)
			runs, err := filepath.Glob(filepath.Join(d.dir, sync, "clocks", "*"))
			if err != nil || len(runs) == 0 {
				return fmt.Errorf("no run: %v", err)
			}
			return checkClocks(t, runs[len(runs)-1], sync != "none")
		})
	}
}

// checkClocks checks what a run's programs printed of their clocks against what the run knows.
// Synchronized, they agree.
func checkClocks(t *testing.T, dir string, synchronized bool) error {
	type sample struct {
		At    int64  `parquet:"time_ps"`
		Host  string `parquet:"host"`
		Error int64  `parquet:"error_ps"`
	}
	samples := map[string][]sample{}
	err := store.Scan(dir, store.ClocksFile, func(some []sample) error {
		for _, s := range some {
			samples[s.Host] = append(samples[s.Host], s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	type line struct {
		At    int64   `parquet:"time_ps"`
		Host  string  `parquet:"host"`
		Value float64 `parquet:"value"`
	}
	lines, apart, off := map[string]int{}, map[string]float64{}, map[string]float64{}
	err = store.Scan(dir, store.MetricsFile, func(some []line) error {
		for _, l := range some {
			at := samples[l.Host]
			i := sort.Search(len(at), func(i int) bool { return at[i].At >= l.At })
			if i == len(at) {
				continue // printed after the last sample
			}
			is, should := l.Value-float64(l.At)/1e3, float64(at[i].Error)/1e3
			// lines arrive late, so a clock seems to be slow
			if lines[l.Host]++; lines[l.Host] == 1 || is-should > apart[l.Host] {
				apart[l.Host], off[l.Host] = is-should, is
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, host := range []string{"h1", "h3"} {
		t.Logf("%s: %d lines, the clock of the program less that of the host: %.0f ns", host, lines[host], apart[host])
		if lines[host] < 50 || math.Abs(apart[host]) > 500 {
			return fmt.Errorf("the program of %s printed %d lines, and its clock is %.0f ns ahead of the host's; want 50 "+
				"and up to 500 ns", host, lines[host], apart[host])
		}
	}
	if got := math.Abs(off["h1"] - off["h3"]); synchronized != (got < 1000) {
		return fmt.Errorf("the clocks of h1 and h3 are %.0f ns apart", got)
	}
	return nil
}

// The session of the worksheet about a program of one's own works as its pages say: the program
// measures the path, by clocks that are exact, wrong and corrected.
func TestPrivTeachingProgram(t *testing.T) {
	needLabTime(t)
	testenv.NeedProgram(t, "ping", "python3")
	sample.Rotate(t, 3)
	page, err := os.ReadFile("../docs/teaching-worksheet.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^\$ weft (.*)$`).FindAllStringSubmatch(string(page), -1)
	if len(commands) != 7 {
		t.Fatalf("%d commands, want 7", len(commands))
	}
	d := newWorkspace(t)
	if err := os.Symlink(filepath.Dir(filepath.Dir(libraryLab(t, "teaching/4-program.yaml"))), filepath.Join(d.dir, "labs")); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(?m)^h0: ([\d.]+) us there and back, (-?[\d.]+) us there, ([\d.]+) Gb/s`)
	for _, c := range commands {
		quiettest.Check(t, 3, func() error {
			r := d.run(strings.Fields(c[1])...)
			if r.code != 0 {
				return fmt.Errorf("weft %s: exit code %d\n%s%s", c[1], r.code, r.stdout, r.stderr)
			}
			if strings.Contains(c[1], "ping") {
				if !strings.Contains(r.stdout, "time=0.40") {
					return fmt.Errorf("weft %s:\n%s", c[1], r.stdout)
				}
				return nil
			}
			link, wrong := 2.0, 0.0 // in microseconds
			switch {
			case strings.Contains(c[1], "delay=20us"):
				link = 20
			case strings.Contains(c[1], "apps/star"):
				link = 1
			case strings.Contains(c[1], "sync=none"):
				wrong = -19.8
			}
			all := said.FindAllStringSubmatch(r.stdout, -1)
			if len(all) != 1+strings.Count(c[1], "--twice") {
				return fmt.Errorf("weft %s:\n%s", c[1], r.stdout)
			}
			for _, m := range all {
				var got [3]float64
				for i := range got {
					got[i], _ = strconv.ParseFloat(m[1+i], 64) // the pattern is that of numbers
				}
				if got[0] < 4*link || got[0] > 4*link+2 || math.Abs(got[1]-wrong-2*link-0.5) > 0.6 || got[2] > 98.5 || got[2] < 50 {
					return fmt.Errorf("weft %s: %s", c[1], m[0])
				}
			}
			return nil
		})
	}
}

// When the keeper of lab time is killed while programs run, the run fails by name, at once.
func TestPrivKeeperKilledInARun(t *testing.T) {
	needLabTime(t)
	d := newWorkspace(t)
	name := d.writeLab("lab.yaml", `
weft: 1
name: keeper
topology: {kind: star, hosts: 3, link: {rate: 1Gbps, delay: 10us}}
workload: [{program: [sh, -c, "echo up; while :; do sleep 0.1; done"]}]
engine: {kind: emu, dilation: 10}
`)
	p := d.start("run", name)
	for _, host := range []string{"h0", "h1", "h2"} { // one that starts later has another keeper
		p.awaitOutput(&p.stdout, host+": up")
	}
	family := p.family()
	i := slices.IndexFunc(family, func(m member) bool { return m.name == "weft-timekeeper" })
	if i < 0 {
		t.Fatalf("no keeper runs, of %v", family)
	}
	if err := syscall.Kill(family[i].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := p.wait().wantCode(1)
	const says = "the keeper of lab time died: signal: killed; programs with lab time cannot go on without it"
	if r.wantPrinted(says); strings.Contains(r.stderr+r.stdout, "interrupted") {
		t.Errorf("it printed\n%s%s", r.stdout, r.stderr)
	}
	_, s := d.summary()
	if len(s.Programs) != 1 {
		t.Fatalf("%+v", s)
	}
	for _, h := range s.Programs[0].Hosts {
		if !strings.HasPrefix(h.Ended, says) {
			t.Errorf("%+v", h)
		}
	}
}

// Deploying a lab whose clocks a protocol synchronizes says what programs read, and inspect how far
// off the clocks are.
func TestPrivClocksOfADeployedLab(t *testing.T) {
	needLabTime(t)
	d := newWorkspace(t).withState()
	name := d.writeLab("lab.yaml", `
weft: 1
name: clocks
topology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: 10us}}
clocks: {sync: ptp}
engine: {dilation: 10}
`)
	d.run("deploy", name).wantCode(0).wantOnStderr("they read the clock of their host, which PTP synchronizes")
	if what := eventually(patience, func() string {
		r := d.run("inspect")
		if strings.Count(r.stdout, ", locked") != 2 {
			return r.stdout
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
	d.run("exec", "--clock", "lab", "h0", "--", "date", "+%Y").wantCode(0).wantPrinted("2037")
	d.run("exec", "h0", "--", "true").wantCode(0)
}

// tellClock is the first argument that makes this test program fail unless its clock shows what the
// second says: lab (lab time) or real (the machine's).
const tellClock = "tell-clock"

// tellClocks is what the test program does then.
func tellClocks(args []string) (code int) {
	if now := time.Now(); now.After(time.Unix(0, labclock.Begin)) != (args[0] == "lab") {
		fmt.Fprintf(os.Stderr, "it is %v\n", now)
		return 1
	}
	return 0
}

// In a deployed lab the program of a host (run: of the lab file) reads lab time with clock: lab
// beside it, and the machine's clock without.
func TestPrivClockOfAHostsProgram(t *testing.T) {
	needLabTime(t)
	self := testProgram(t)
	checkHostsClocks(t, "namespace", fmt.Sprintf("run: [%s, %s", self, tellClock))
}

// checkHostsClocks deploys a lab of two hosts, whose programs check their clock. program is what
// the lab file says of them, up to the last argument.
func checkHostsClocks(t *testing.T, runtime, program string) {
	t.Helper()
	d := newWorkspace(t).withState()
	name := d.writeLab("lab.yaml", fmt.Sprintf(`
weft: 1
name: hosts-clocks
topology:
  kind: custom
  nodes: [{name: h0, %s, lab], clock: lab}, {name: h1, %s, real]}, {name: s0, switch: true}]
  links: [{between: [h0, s0]}, {between: [h1, s0]}]
engine: {dilation: 100}
`, program, program))
	d.run("validate", name).wantCode(0).wantPrinted("nodes.1: the program of this host reads the machine's clock")
	d.run("deploy", name, "--runtime", runtime).wantCode(0)
	if what := eventually(patience, func() string {
		for _, n := range d.inspect().Nodes[:2] {
			if n.Program != "done" {
				return fmt.Sprintf("the program of %s is %q: %s", n.Name, n.Program, n.ProgramError)
			}
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
	d.run("destroy").wantCode(0)
}
