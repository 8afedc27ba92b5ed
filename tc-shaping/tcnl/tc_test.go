package tcnl

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"

	"weft/internal/golden"
	"weft/internal/testenv"
	"weft/tc-shaping/qdisc"
)

// said is the file with the attributes of RTM_NEWQDISC or RTM_NEWTCLASS that tc (iproute2 6.1)
// sends for each command, in hexadecimal. -update records it with strace on any kernel, since tc
// sends the message before the kernel can report a missing discipline.
const said = "testdata/tc.golden"

// commands are arguments of tc and the equivalent options.
var commands = []struct {
	tc   string
	ours qdisc.Options
}{
	{"bfifo limit 150000", qdisc.FIFO{Limit: 150000}},
	{"htb default 3 direct_qlen 0", qdisc.HTB{}},
	{"red limit 100000 min 20000 max 60000 avpkt 1000 burst 60 bandwidth 10mbit ecn nodrop probability 0.5", nil},
	{"red limit 400000 min 30000 max 90000 avpkt 1500 burst 40 bandwidth 100mbit ecn nodrop probability 1", nil},
	{"netem limit 1416 delay 1ms rate 100mbit", qdisc.Netem{Latency: time.Millisecond, Limit: 1416, Rate: 12_500_000}},
	// tc sends this delay in units of 64 ns; we also send nanoseconds.
	{"netem limit 1000 delay 12345us loss 1% duplicate 50% corrupt 0.1%", qdisc.Netem{
		Latency: 12345000 / 64 * 64, Limit: 1000, Loss: 42949673, Duplicate: 1 << 31, Corrupt: 4294967}},
	{"netem limit 1000 delay 10s rate 400gbit 24", qdisc.Netem{Latency: 10 * time.Second, Limit: 1000,
		Rate: 50_000_000_000, Overhead: 24}},
}

// classCommands are arguments of tc and the equivalent classes.
var classCommands = []struct {
	tc   string
	ours class
}{
	// with burst and cburst in bytes: what passes in 100 us
	{"parent 1: classid 1:1 htb rate 100mbit burst 1250 cburst 1250 quantum 1514 overhead 4",
		classesOf(qdisc.HTB{Rate: 12_500_000, Bucket: 100 * time.Microsecond, Overhead: 4})[0]},
	{"parent 1:1 classid 1:3 htb rate 8bit ceil 400gbit burst 0 cburst 5000000 prio 1 quantum 1514 overhead 24",
		classesOf(qdisc.HTB{Rate: 50_000_000_000, Bucket: 100 * time.Microsecond, Overhead: 24})[2]},
}

func TestPrivWhatTcSends(t *testing.T) {
	testenv.NeedNamespaces(t)
	testenv.NeedProgram(t, "tc", "strace")
	if v, err := exec.Command("tc", "-V").Output(); err != nil || !strings.Contains(string(v), "iproute2-6.1") {
		t.Skipf("%s (%v): the bytes are those of iproute2 6.1", v, err)
	}
	var b strings.Builder
	var all []string
	for _, c := range commands {
		all = append(all, "qdisc add dev lo root handle 1: "+c.tc)
	}
	for _, c := range classCommands {
		all = append(all, "class add dev lo "+c.tc)
	}
	for _, tc := range all {
		args := strings.Fields("-qq -e trace=sendmsg -e write=3 unshare -n tc " + tc)
		out, _ := exec.Command("strace", args...).CombinedOutput() // the kernel may lack the discipline
		message := dumped(string(out))
		if len(message) < 36 {
			t.Skipf("strace of tc: %s", out)
		}
		// nlmsghdr, tcmsg
		fmt.Fprintf(&b, "# tc %s\n%s\n", tc, hex.EncodeToString(message[36:]))
	}
	golden.Table(t, "tc", "Attributes of the RTM_NEWQDISC or RTM_NEWTCLASS that tc of iproute2 6.1 sends, in "+
		"hexadecimal, by command.", b.String())
}

// dumped returns the bytes of the last buffer in strace's output, from lines such as " | 00000  5c
// 01 ... |".
func dumped(text string) (b []byte) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " | ") || len(line) < 60 {
			continue
		}
		if strings.HasPrefix(line, " | 00000") {
			b = nil
		}
		row, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(line[9:60]), " ", ""))
		if err != nil {
			return nil
		}
		b = append(b, row...)
	}
	return b
}

// sayings reads the golden file: kind and options of each command.
func sayings(t *testing.T) (kinds []string, options [][]byte) {
	t.Helper()
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || line == "\n" {
			continue
		}
		b, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		a, err := attributes(b)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(bytes.TrimRight(a[nl.TCA_KIND], "\x00")))
		options = append(options, a[nl.TCA_OPTIONS])
	}
	return kinds, options
}

// tc's bytes decode to the options we would have sent, and attributes that both send are identical.
func TestWeSayWhatTcSays(t *testing.T) {
	kinds, said := sayings(t)
	for i, c := range commands {
		if c.ours == nil {
			continue // RED: the next test
		}
		theirs, err := settings(kinds[i], said[i])
		if err != nil {
			t.Fatalf("%s: %v", c.tc, err)
		}
		a := qdisc.Tree{Near: []qdisc.Qdisc{{Options: c.ours}}}
		for _, d := range qdisc.Compare(a, qdisc.Tree{Near: []qdisc.Qdisc{{Options: theirs}}}) {
			t.Errorf("%s: %v", c.tc, d)
		}
		attr, err := options(c.ours)
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, c.tc, kinds[i], said[i], attr.Serialize()[4:])
	}
}

func sameBytes(t *testing.T, command, kind string, theirs, ours []byte) {
	t.Helper()
	head := map[string]int{"netem": 24, "bfifo": 4}[kind] // a struct before the attributes
	if !bytes.Equal(theirs[:head], ours[:head]) {
		t.Errorf("%s: we send %x, tc %x", command, ours[:head], theirs[:head])
	}
	a, err := attributes(theirs[head:])
	if err != nil {
		t.Fatal(err)
	}
	b, err := attributes(ours[head:])
	if err != nil {
		t.Fatal(err)
	}
	common := 0
	for k, v := range b {
		if theirs, ok := a[k]; ok {
			common++
			if !bytes.Equal(v, theirs) {
				t.Errorf("%s: attribute %d: we send %x, tc %x", command, k, v, theirs)
			}
		}
	}
	if common == 0 && kind != "bfifo" {
		t.Errorf("%s: no attribute that both send", command)
	}
}

// With the parameters that tc computes, our RED encoder produces tc's bytes.
func TestREDIsByteForByteThatOfTc(t *testing.T) {
	kinds, said := sayings(t)
	n := 0
	for i, c := range commands {
		if kinds[i] != "red" {
			continue
		}
		n++
		a, err := attributes(said[i])
		if err != nil {
			t.Fatal(err)
		}
		p, native := a[redParms], nl.NativeEndian()
		q := redQopt{limit: native.Uint32(p), min: native.Uint32(p[4:]), max: native.Uint32(p[8:]), wlog: p[12],
			plog: p[13], cellLog: p[14]}
		attr := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
		redOptions(attr, q, [256]byte(a[redStab]), native.Uint32(a[redMaxP]), redECN|redNoDrop)
		if ours := attr.Serialize()[4:]; !bytes.Equal(ours, said[i]) {
			t.Errorf("%s:\nwe send %x\ntc      %x", c.tc, ours, said[i])
		}
	}
	if n != 2 {
		t.Errorf("%d commands with red in %s, want 2", n, said)
	}
}

// Our settings differ from tc's: Wlog 0, all shifts 31, no limit, and Plog near max_P for programs
// that know only Plog.
func TestREDIsInstantaneous(t *testing.T) {
	attr, err := options(qdisc.REDStage{Min: 20000, Max: 60000, MaxP: 1 << 31})
	if err != nil {
		t.Fatal(err)
	}
	a, err := attributes(attr.Serialize()[4:])
	if err != nil {
		t.Fatal(err)
	}
	want := "00000000" + "204e0000" + "60ea0000" + "00" + "11" + "00" + "00" // limit min max Wlog Plog Scell_log flags
	if nl.NativeEndian().Uint16([]byte{1, 0}) == 1 && hex.EncodeToString(a[redParms]) != want {
		t.Errorf("PARMS %x, want %s", a[redParms], want)
	}
	if !bytes.Equal(a[redStab], bytes.Repeat([]byte{31}, 256)) {
		t.Errorf("STAB %x, want 256 times 31", a[redStab])
	}
}

// tc's bytes decode to the classes we would have sent.
func TestClassesAreThoseOfTc(t *testing.T) {
	_, said := sayings(t)
	for i, c := range classCommands {
		b := (&nl.TcMsg{Handle: uint32(c.ours.handle), Parent: uint32(c.ours.parent)}).Serialize()
		b = append(b, attribute(nl.TCA_KIND, nl.ZeroTerminated("htb"))...)
		theirs, ok, err := parseClass(append(b, attribute(nl.TCA_OPTIONS, said[len(commands)+i])...))
		if c.ours.rate == 1 {
			theirs.bucket = c.ours.bucket // tc cannot say 0
		}
		if theirs != c.ours || !ok || err != nil {
			t.Errorf("%s: %+v, %t, %v\nwant %+v", c.tc, theirs, ok, err, c.ours)
		}
	}
}

// An htb is read from its classes, and from no others.
func TestClasses(t *testing.T) {
	for _, o := range []qdisc.HTB{
		{Rate: 125, Bucket: 12112 * time.Millisecond, Overhead: 65535}, {Rate: 1 << 40, Bucket: 64 * 953},
	} {
		var all []class
		for _, cl := range classesOf(o) {
			b := (&nl.TcMsg{Handle: uint32(cl.handle), Parent: uint32(cl.parent)}).Serialize()
			b = append(b, attribute(nl.TCA_KIND, nl.ZeroTerminated("htb"))...)
			got, ok, err := parseClass(append(b, cl.options().Serialize()...))
			if got != cl || !ok || err != nil {
				t.Errorf("%+v, %t, %v\nwant %+v", got, ok, err, cl)
			}
			all = append(all, got)
		}
		if got, err := fromClasses(all); got != o || err != nil {
			t.Errorf("%v, %v; want %v", got, err, o)
		}
		for i := range all {
			other := slices.Clone(all)
			other[i].priority = 7
			if _, err := fromClasses(other); err == nil {
				t.Errorf("%+v are taken", other)
			}
			if _, err := fromClasses(slices.Delete(other, i, i+1)); err == nil {
				t.Errorf("%+v are taken", other[:2])
			}
		}
	}
}

// Decoding an encoded discipline returns the same options.
func TestCodecIsItsOwnInverse(t *testing.T) {
	for _, o := range everyKind() {
		attr, err := options(o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := settings(o.Kind(), attr.Serialize()[4:])
		if err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if n, ok := o.(qdisc.Netem); ok { // the kernel does not report the table
			n.Table = nil
			o = n
		}
		if !reflect.DeepEqual(got, o) {
			t.Errorf("got  %v\nwant %v", got, o)
		}
	}
	if _, err := options(qdisc.Foreign{Name: "hfsc"}); err == nil {
		t.Error("a discipline of another kind was encoded")
	}
}

func everyKind() []qdisc.Options {
	return []qdisc.Options{
		qdisc.FIFO{Limit: 1 << 31},
		qdisc.HTB{},
		qdisc.REDStage{Min: 1, Max: 1<<31 - 1, MaxP: 1},
		qdisc.REDStage{MaxP: 1<<32 - 1},
		qdisc.Netem{Latency: 24 * time.Hour, Jitter: 2147483647, Loss: 1, Duplicate: 2, Corrupt: 3, Limit: 4,
			Table: []int16{1, -1}},
		qdisc.Netem{Rate: 1 << 40, Overhead: -5, Limit: 1},
	}
}
