package realtime

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/fuzztest"
)

func FuzzCaptured(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add((&Captured{At: 5, Out: true, Length: 3, Dropped: 1, Frame: []byte{1, 2, 3}}).Append(nil))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCaptured(b)
		if err != nil {
			return
		}
		if again := c.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("% x was read as %+v, which is % x", b, c, again)
		}
	})
}

// A capture that is asked for before lab time begins has the first frame; what nobody reads in time
// is counted.
func TestCapturesBeforeTheStart(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 20000, Hosts: []Address{addrOf(0), addrOf(1)}})
	sockets := [2][2]int{}
	for i := range sockets {
		s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.SetsockoptInt(s[1], unix.SOL_SOCKET, unix.SO_SNDBUF, 1) // the least there is: some frames
		_ = unix.SetNonblock(s[0], true)                                 // the fabric is this process, and does not end
		sockets[i] = s
		var did Did
		l.send(KindCapture, Capture{Host: i, Port: -1}, s[1])
		l.expect(KindDid, &did)
		unix.Close(s[1])
		if did.Error != "" {
			t.Fatal(did.Error)
		}
	}
	var refused Did
	l.send(KindHalt, Halt{Host: 0, Halted: true})
	if l.expect(KindDid, &refused); refused.Error == "" {
		t.Error("a host was halted before lab time began")
	}
	l.begin(20000)
	const frames, length = 30, 1000
	for i := range frames {
		body := make([]byte, length)
		body[9] = byte(i)
		l.write(0, udpFrame(addrOf(0), addrOf(1), 0, body))
		l.read(1)
	}
	report := l.finish()
	seen := int64(0)
	for i, s := range sockets {
		record := make([]byte, 1<<16)
		for n, _ := unix.Read(s[0], record); n > 0; n, _ = unix.Read(s[0], record) {
			c, err := ParseCaptured(record[:n])
			if err != nil || c.Out != (i == 0) || c.Frame[ethLen+ipMin+9] != byte(seen) && i == 0 && c.Dropped == 0 {
				t.Errorf("host %d, frame %d: %+v, %v", i, seen, c, err)
			}
			seen++
		}
		unix.Close(s[0])
	}
	if seen == 0 || report.Uncaptured == 0 || seen+report.Uncaptured != 2*frames {
		t.Errorf("%d records came and %d are said to be lost, of %d", seen, report.Uncaptured, 2*frames)
	}
}
