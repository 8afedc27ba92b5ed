package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
)

// tshark returns fields of the packets of a capture that match a filter, one line per packet.
func (d *workspace) tshark(file, filter string, names ...string) []string {
	d.t.Helper()
	out, said, err := d.dissect(file, filter, names...)
	if err != nil {
		d.t.Fatalf("tshark of %s, %s: %v: %s", file, filter, err, said)
	}
	return out
}

// dissect is tshark that may fail: it also returns standard error, and the error.
func (d *workspace) dissect(file, filter string, names ...string) (fields []string, told string, err error) {
	args := []string{"-n", "-r", filepath.Join(d.dir, file), "-Y", filter, "-T", "fields", "-E", "separator=|"}
	if script := filepath.Join(d.dir, "weft.lua"); isFile(script) {
		args = append([]string{"-X", "lua_script:" + script}, args...)
	}
	for _, n := range names {
		args = append(args, "-e", n)
	}
	var said strings.Builder
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	return strings.Fields(string(out)), said.String(), err
}

// isFile reports whether path is a regular file.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// A run under coordinated congestion management, captured: every data packet of the source has its
// tag, some are told to mind congestion, and the notifications of all three types are there, from
// switch to host and from switch to switch.
func TestPrivCapturedCoordination(t *testing.T) {
	sample.Rotate(t, 2)
	testenv.NeedEmulation(t)
	testenv.NeedProgram(t, "tshark")
	d := newWorkspace(t)
	d.writeLab("weft.lua", d.run("schema", "dissector").wantCode(0).stdout)
	const data, fromH2 = "1", "10.0.0.3"
	quiettest.Check(t, 3, func() error { // on a busy machine times are others, and with them queues and notifications
		for _, file := range []string{"h2.pcapng", "asks.pcapng"} { // of an earlier attempt
			if err := os.Remove(filepath.Join(d.dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		r := d.run("run", libraryLab(t, "ccm/example-emu.yaml"), "--engine", "emu", "--capture", "h2=h2.pcapng",
			"--capture", "spine0->leaf1=asks.pcapng")
		if r.code != 0 && r.code != 3 {
			r.wantCode(0)
		}
		r.wantOnStderr("packets of h2 in h2.pcapng: ", "packets of spine0->leaf1 in asks.pcapng: ")
		for _, line := range d.tshark("h2.pcapng", "weft.type == "+data+" && ip.src == "+fromH2, "weft.tag.cc",
			"weft.tag.ar") {
			if cc, ar, _ := strings.Cut(line, "|"); cc != "0" && cc != "1" || ar == "" {
				t.Fatalf("a data packet of h2 has the tag %q", line)
			}
		}
		tagged := d.tshark("h2.pcapng", "weft.tag.ar && ip.src == "+fromH2, "weft.tag.cc")
		told := d.tshark("h2.pcapng", "weft.notice.kind && ip.dst == "+fromH2, "weft.notice.kind")
		asked := d.tshark("asks.pcapng", "weft.notice.kind == 3", "ip.dst")
		switch {
		case len(tagged) < 1000 || !slices.Contains(tagged, "0"):
			t.Errorf("%d packets with tags", len(tagged))
		case !slices.Contains(tagged, "1"):
			return errors.New("no tag says that congestion control is on")
		case !slices.Contains(told, "1") || !slices.Contains(told, "2"):
			return fmt.Errorf("notifications to h2: %v", told)
		case !slices.Contains(asked, "10.128.0.2"):
			return fmt.Errorf("leaf1 is asked: %v", asked)
		}
		return nil
	})
	for _, file := range []string{"h2.pcapng", "asks.pcapng"} {
		d.checkReadable(file)
	}
}

// The synchronization of clocks, captured: Wireshark knows PTP by itself.
func TestPrivCapturedPTP(t *testing.T) {
	sample.Rotate(t, 2)
	testenv.NeedEmulation(t)
	testenv.NeedProgram(t, "tshark")
	d := newWorkspace(t)
	lab := d.writeLab("ptp.yaml", `
weft: 1
name: ptp
topology: {kind: star, hosts: 2, link: {rate: 10Gbps, delay: 1us}}
clocks: {sync: ptp, ptp: {interval: 500us}}
`)
	d.run("clock", lab, "--engine", "emu", "--dilation", "500", "--for", "10ms", "--capture", "h1=h1.pcapng",
		"--capture", "h1->switch0=nic.pcapng").wantCode(0)
	const master, follower = "10.0.0.1", "10.0.0.2"
	count := map[string]int{}
	for _, line := range d.tshark("h1.pcapng", "ptp.v2.versionptp == 2", "ip.src", "udp.dstport",
		"ptp.v2.messagetype") {
		count[line]++
	}
	for _, want := range []string{master + "|319|0x00", master + "|320|0x08", follower + "|319|0x01", master +
		"|320|0x09", master + "|320|0x0b"} {
		if count[want] < 3 {
			t.Errorf("%d of %s: %v", count[want], want, count)
		}
	}
	if len(d.tshark("nic.pcapng", "ptp.v2.messagetype == 1", "ptp.v2.sequenceid")) < 3 ||
		len(d.tshark("nic.pcapng", "ip.src == "+master, "frame.number")) > 0 {
		t.Error("what h1 sends is not what its NIC sends")
	}
	for _, file := range []string{"h1.pcapng", "nic.pcapng"} {
		d.checkReadable(file)
	}
}

// The peer delay mechanism, captured: a host and its switch measure their link from both ends, two
// switches theirs; Syncs are as long as what links are measured by, and bring with them how long
// the way was.
func TestPrivCapturedPeerDelay(t *testing.T) {
	sample.Rotate(t, 2)
	testenv.NeedEmulation(t)
	testenv.NeedProgram(t, "tshark")
	d := newWorkspace(t)
	lab := d.writeLab("peer.yaml", `
weft: 1
name: peer
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1, link: {rate: 10Gbps, delay: 1us}}
clocks: {sync: ptp, transparent: peer, ptp: {interval: 500us}}
`)
	d.run("clock", lab, "--engine", "emu", "--dilation", "500", "--for", "10ms", "--capture", "h1=h1.pcapng",
		"--capture", "leaf1->spine0=up.pcapng").wantCode(0)
	const master, follower, leaf, spine = "10.0.0.1", "10.0.0.2", "10.128.0.2", "10.128.0.3"
	count := map[string]int{}
	for _, file := range []string{"h1.pcapng", "up.pcapng"} {
		for _, line := range d.tshark(file, "ptp.v2.versionptp == 2", "ip.src", "ip.dst", "udp.dstport",
			"ptp.v2.messagetype", "ptp.v2.messagelength") {
			count[line]++
		}
		d.checkReadable(file)
	}
	for _, want := range []string{
		master + "|" + follower + "|319|0x00|54", master + "|" + follower + "|320|0x08|44",
		follower + "|" + leaf + "|319|0x02|54", leaf + "|" + follower + "|319|0x03|54",
		leaf + "|" + follower + "|319|0x02|54", follower + "|" + leaf + "|319|0x03|54", follower + "|" + leaf +
			"|320|0x0a|54",
		leaf + "|" + spine + "|319|0x02|54", leaf + "|" + spine + "|319|0x03|54",
	} {
		if count[want] < 3 {
			t.Errorf("%d of %s: %v", count[want], want, count)
		}
	}
	if late := d.tshark("h1.pcapng", "ptp.v2.messagetype == 0 && ptp.v2.correction.ns < 3000", "frame.number"); len(late) > 0 {
		t.Errorf("Syncs %v took less than the three links before the last", late)
	}
}

// A run that is interrupted leaves a capture that can be read to its end. So does one that is
// killed, unless the kill falls into a write: Linux ends that after any page of it, and Wireshark
// then reads all packets before the one that was cut, and says so.
func TestPrivCaptureOfAnInterruptedRun(t *testing.T) {
	testenv.NeedEmulation(t)
	testenv.NeedProgram(t, "tshark")
	for name, how := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			before := takeTraces(t)
			d := newWorkspace(t)
			p, family := d.startLong("--capture", "h0=h0.pcapng")
			p.signal(how)
			if r := p.wait(); how == syscall.SIGINT {
				r.wantCode(130).wantOnStderr("packets of h0 in h0.pcapng: ")
			}
			before.nothingLeft(t, family, wait)
			got, said, err := d.dissect("h0.pcapng", "udp", "frame.number")
			if cut := strings.Contains(said, "cut short in the middle of a packet"); err != nil &&
				!(how == syscall.SIGKILL && cut) {
				t.Errorf("%v: %s", err, said)
			}
			if len(got) < 100 {
				t.Errorf("%d packets", len(got))
			}
			d.checkClean("long.yaml", "runs", "h0.pcapng")
		})
	}
}

// What cannot be captured is said before anything runs, or as it cannot begin, and no file is left;
// one that was there stays as it was.
func TestPrivCaptureThatCannotBegin(t *testing.T) {
	testenv.NeedEmulation(t)
	var many []string
	for range 65 { // more than the fabric process takes
		many = append(many, "--capture", "h0="+filepath.Join("many", "x"+string(rune('A'+len(many)/2))))
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"there": {[]string{"--capture", "h1=new.pcapng", "--capture", "h0=old.pcapng"},
			"old.pcapng exists already"},
		"no folder": {[]string{"--capture", "h1=new.pcapng", "--capture", "h0=none/x.pcapng"},
			"none/x.pcapng: no such file or directory"},
		"many": {many, "64 captures"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newWorkspace(t)
			d.writeLab("old.pcapng", "mine")
			if err := os.Mkdir(filepath.Join(d.dir, "many"), 0o755); err != nil {
				t.Fatal(err)
			}
			r := d.run(append([]string{"run", d.writeLab("long.yaml", long), "--engine", "emu", "--dilation", "1000"},
				c.args...)...)
			r.wantCode(1).wantPrinted(c.want)
			if left, err := os.ReadDir(filepath.Join(d.dir, "many")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			if text, err := os.ReadFile(filepath.Join(d.dir, "old.pcapng")); string(text) != "mine" ||
				isFile(filepath.Join(d.dir, "new.pcapng")) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// checkReadable fails the test if a capture has packets that Wireshark or our dissector cannot
// read.
func (d *workspace) checkReadable(file string) {
	d.t.Helper()
	if bad := d.tshark(file, "_ws.malformed || _ws.lua.error", "frame.number"); len(bad) > 0 {
		d.t.Errorf("%s: packets %v", file, bad)
	}
}
