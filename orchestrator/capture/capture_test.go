package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/realtime"
)

// pieces records each write separately.
type pieces struct {
	all  [][]byte
	fail int // index of the first write that fails; 0: none
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.fail > 0 && len(p.all)+1 >= p.fail {
		return 0, errors.New("no space left")
	}
	p.all = append(p.all, bytes.Clone(b))
	return len(b), nil
}

// blocks returns the number of blocks in a file of whole blocks.
func blocks(t *testing.T, b []byte) (n int) {
	t.Helper()
	for ; len(b) > 0; n++ {
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if size > len(b) {
			t.Fatalf("a block of %d bytes, of which %d are there", size, len(b))
		}
		b = b[size:]
	}
	return n
}

// filled returns a socket for Copy that holds this many frames and whose other end is closed.
func filled(t *testing.T, frames int) *os.File {
	t.Helper()
	ours, theirs, err := Messages()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		frame := make([]byte, 9000)
		for i := range frames {
			r := realtime.Captured{Out: true, Length: len(frame), Frame: frame, Dropped: uint32(i % 2)}
			if unix.Send(int(theirs.Fd()), r.Append(nil), unix.MSG_NOSIGNAL) != nil {
				return // the test has ended
			}
		}
	}()
	return ours
}

// Every write ends at a frame boundary, and the header comes before the first frame.
func TestCopyWritesWholeFrames(t *testing.T) {
	var out pieces
	n, lost, err := Copy(&out, filled(t, 30), Of{Name: "h0"})
	if n != 30 || lost != 15 || err != nil {
		t.Errorf("%d frames, %d lost, %v", n, lost, err)
	}
	if len(out.all) < 4 || blocks(t, out.all[0]) != 2 {
		t.Fatalf("%d writes, the first % x", len(out.all), out.all[0])
	}
	total := 0
	for _, b := range out.all {
		total += blocks(t, b)
	}
	if total != 2+30 {
		t.Errorf("%d blocks", total)
	}
}

func TestCopyEnds(t *testing.T) {
	var out pieces
	if n, _, err := Copy(&out, filled(t, 30), Of{Port: true, Count: 3, Live: true}); n != 3 || err != nil ||
		len(out.all) != 1+3 {
		t.Errorf("of three that somebody reads along: %d, %v, %d writes", n, err, len(out.all))
	}
	ours, theirs, err := Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	if err := ours.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := Copy(&out, ours, Of{}); n != 0 || err != nil {
		t.Errorf("after the deadline: %d, %v", n, err)
	}
	for fail := 1; fail < 4; fail++ {
		if _, _, err := Copy(&pieces{fail: fail}, filled(t, 30), Of{Live: fail == 2}); err == nil {
			t.Errorf("write %d failed unnoticed", fail)
		}
	}
	if err := ours.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(int(theirs.Fd()), []byte("no record")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Copy(&out, ours, Of{}); err == nil {
		t.Error("what is no record was written")
	}
}
