package emulate

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/poller"
	"weft/orchestrator/runtime"
	"weft/units"
)

// tasks finds the tasks of a host's programs and measures how long they wait for a processor.
type tasks struct {
	node    int   // the host's process, which orphans of programs become children of
	roots   []int // processes of the programs
	last    map[task]schedstat
	udp     bool          // datagrams of UDP are the programs'
	traffic int64         // packets of the host at the last look
	at      time.Time     // of the last look
	own     time.Duration // see look; at the last one

	tcp connections

	busy   time.Duration // in which packets were sent or received
	waited time.Duration // of busy, in which some task waited for a processor, at most
	ran    time.Duration // processor time of all tasks

	seen sightings
	far  []sightings // of programs on another machine
}

// sightings are when programs stood, from an instant on.
type sightings struct {
	begun time.Time
	runtime.Seen
}

// task is a thread by its IDs.
type task struct{ process, thread int }

// schedstat is the kernel's account of a task: schedstat of proc(5), in nanoseconds.
type schedstat struct{ ran, waited int64 }

// look measures what has happened since the last look. A task that has ended since then is missed.
// own is the time in which this process's threads have run or waited for a processor so far.
func (t *tasks) look(now time.Time, own time.Duration) {
	found := map[task]schedstat{}
	for _, root := range t.roots {
		walk(root, true, found)
	}
	walk(t.node, false, found)
	traffic, known := packets(t.node, t.udp)
	span := now.Sub(t.at)
	t.stood(found, now, own)
	var waited, ran int64
	for k, s := range found {
		if before, ok := t.last[k]; ok {
			waited, ran = waited+s.waited-before.waited, ran+s.ran-before.ran
		} else {
			ran += s.ran
		}
	}
	t.ran += time.Duration(ran)
	if known && !t.at.IsZero() && traffic != t.traffic {
		t.busy += span
		t.waited += min(span, time.Duration(waited))
	}
	t.last, t.traffic, t.at = found, traffic, now
	t.tcp.look()
}

// stood records whether a process of the programs was stopped, as the look at now finds it, and
// whether this process was stopped since the last look: the look is late by more than the time in
// which it ran or waited for a processor. Programs that were stopped and continued between two
// looks are missed; of many stops, looks find the share that they are of the time.
func (t *tasks) stood(found map[task]schedstat, now time.Time, own time.Duration) {
	busy := own - t.own
	t.own = own
	if t.seen.begun.IsZero() {
		t.seen.begun = now
		t.seen.Stood.Least, t.seen.Unseen.Least = 1, units.FromDuration(lookEvery)
	}
	if t.at.IsZero() || len(found) == 0 {
		return
	}
	from, to := units.FromDuration(t.at.Sub(t.seen.begun)), units.FromDuration(now.Sub(t.seen.begun))
	t.seen.Unseen.Record(from+units.FromDuration(lookEvery+busy), to)
	for k, s := range found {
		if k.process != k.thread {
			continue
		}
		before, seen := t.last[k]
		if runtime.Stopped(k.process) || seen && before == s && runtime.Uninterruptible(k.process) {
			t.seen.Stood.Record(from, to)
			return
		}
	}
}

// ownTime returns the time in which this process's threads have run or waited for a processor.
func ownTime() time.Duration {
	var sum int64
	threads, _ := poller.Threads(os.Getpid())
	for _, thread := range threads {
		s, _ := readSchedstat(fmt.Sprintf("/proc/self/task/%d/schedstat", thread)) // zero if it has ended
		sum += s.ran + s.waited
	}
	return time.Duration(sum)
}

// walk adds the threads of a process and of all that descend from it. with says that those of the
// process itself are added.
func walk(process int, with bool, found map[task]schedstat) {
	threads, _ := poller.Threads(process) // none if it has ended
	for _, thread := range threads {
		dir := fmt.Sprintf("/proc/%d/task/%d/", process, thread)
		if with {
			k := task{process, thread}
			if _, ok := found[k]; ok {
				return // a process that is a root and the child of another one
			}
			if s, ok := readSchedstat(dir + "schedstat"); ok {
				found[k] = s
			}
		}
		children, _ := os.ReadFile(dir + "children") // it may have ended
		for _, text := range bytes.Fields(children) {
			if child, err := strconv.Atoi(string(text)); err == nil {
				walk(child, true, found)
			}
		}
	}
}

// readSchedstat reads a schedstat.
func readSchedstat(file string) (s schedstat, ok bool) {
	text, err := os.ReadFile(file)
	f := strings.Fields(string(text))
	if err != nil || len(f) < 2 {
		return s, false
	}
	s.ran, err = strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return s, false
	}
	s.waited, err = strconv.ParseInt(f[1], 10, 64)
	return s, err == nil
}

// speaksUDP reports whether a host's own part in a run sends datagrams of UDP, beside its programs.
func speaksUDP(p *host.Plan) bool {
	return len(p.Items) > 0 || p.Background != nil || p.Clock != nil && len(clocks.Ports(p.Clock.Sync)) > 0
}

// packets returns the number of packets that the kernel of a node has sent to the lab's network and
// received from it. Without datagrams those of UDP are left out: on hosts with a part in the
// workload they are Weft's own. Then what the host sends to itself counts too.
func packets(node int, datagrams bool) (sum int64, ok bool) {
	file := "snmp"
	if datagrams {
		file = "dev"
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", node, file))
	switch {
	case err != nil:
		return 0, false
	case datagrams:
		return linkPackets(string(text)), true
	}
	return counters(string(text), "Ip", "InReceives", "OutRequests") -
		counters(string(text), "Udp", "InDatagrams", "OutDatagrams"), true
}

// linkPackets returns the sum of packets sent and received in net/dev of proc_pid_net(5), without
// those of the loopback interface: name: bytes packets and six others received, then the same sent.
func linkPackets(dev string) (sum int64) {
	for line := range strings.Lines(dev) {
		name, rest, found := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !found || strings.TrimSpace(name) == "lo" || len(f) < 10 {
			continue
		}
		for _, text := range []string{f[1], f[9]} {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// counters returns the sum of counters of a protocol in net/snmp of proc_pid_net(5), which has two
// lines for each: names, and numbers.
func counters(snmp, protocol string, names ...string) (sum int64) {
	var heads []string
	for line := range strings.Lines(snmp) {
		rest, found := strings.CutPrefix(line, protocol+": ")
		if !found {
			continue
		}
		if heads == nil {
			heads = strings.Fields(rest)
			continue
		}
		for i, value := range strings.Fields(rest) {
			n, err := strconv.ParseInt(value, 10, 64)
			if err == nil && i < len(heads) && slices.Contains(names, heads[i]) {
				sum += n
			}
		}
	}
	return sum
}

// endTree kills what descends from a process that has been told to end, and returns when nothing is
// left: a child in a session of its own does not end with its group.
func endTree(descendants []int) {
	for _, fd := range descendants {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // an error means that it has ended
		unix.Close(fd)
	}
}

// treeOf returns descriptors of all processes that descend from one.
func treeOf(process int) (fds []int) {
	found := map[task]schedstat{}
	walk(process, false, found)
	for k := range found {
		if k.process != k.thread {
			continue
		}
		if fd, err := unix.PidfdOpen(k.process, 0); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}
