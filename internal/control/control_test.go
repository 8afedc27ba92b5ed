package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/fuzztest"
)

// pair returns two connected ends that are closed with the test.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	a, f, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	b, err = Open(fd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestMessagesArriveWholeAndInOrder(t *testing.T) {
	a, b := pair(t)
	const n = 200
	go func() {
		for i := range n {
			if err := a.SendValue("count", map[string]any{"i": i, "pad": strings.Repeat("x", i*i)}); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range n {
		var got struct {
			I   int
			Pad string
		}
		if _, err := b.Expect("count", &got); err != nil {
			t.Fatal(err)
		}
		if got.I != i || len(got.Pad) != i*i {
			t.Fatalf("message %d: got %d with %d bytes", i, got.I, len(got.Pad))
		}
	}
}

func TestSeveralSendersDoNotMix(t *testing.T) {
	a, b := pair(t)
	const senders, each = 8, 50
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for range each {
				if err := a.SendValue(fmt.Sprint("from", s), strings.Repeat(fmt.Sprint(s), 5000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	count := map[string]int{}
	for range senders * each {
		m, _, err := b.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var s string
		if err := m.Decode(&s); err != nil || strings.Trim(s, m.Kind[4:]) != "" {
			t.Fatalf("%s: mixed body (%v)", m.Kind, err)
		}
		count[m.Kind]++
	}
	wg.Wait()
	if len(count) != senders {
		t.Fatalf("got %v", count)
	}
}

// Descriptors belong to their own message, even if messages without descriptors are joined to it.
func TestDescriptorsStayWithTheirMessage(t *testing.T) {
	a, b := pair(t)
	for i := range 5 {
		var fds []int
		for j := range i {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(w, "%d.%d", i, j)
			w.Close()
			defer r.Close()
			fds = append(fds, int(r.Fd()))
		}
		if err := a.SendValue("files", i, fds...); err != nil {
			t.Fatal(err)
		}
		if err := a.SendValue("plain", i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		fds, err := b.Expect("files", nil)
		if err != nil || len(fds) != i {
			t.Fatalf("message %d: descriptors %v, %v", i, fds, err)
		}
		for j, fd := range fds {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor not closed on exec: %x, %v", flags, err)
			}
			f := os.NewFile(uintptr(fd), "pipe")
			text, err := io.ReadAll(f)
			f.Close()
			if want := fmt.Sprintf("%d.%d", i, j); string(text) != want || err != nil {
				t.Errorf("got %q, want %q, %v", text, want, err)
			}
		}
		if fds, err := b.Expect("plain", nil); err != nil || len(fds) != 0 {
			t.Fatalf("plain %d: descriptors %v, %v", i, fds, err)
		}
	}
}

func TestManyDescriptors(t *testing.T) {
	a, b := pair(t)
	fds := make([]int, MaxFDs)
	if err := a.SendValue("many", nil, fds...); err != nil {
		t.Fatal(err)
	}
	got, err := b.Expect("many", nil)
	if err != nil || len(got) != MaxFDs {
		t.Fatalf("%d descriptors, %v", len(got), err)
	}
	CloseAll(got)
	if err := a.SendValue("many", nil, append(fds, 0)...); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("one more: %v", err)
	}
}

func TestErrorsOfThePeer(t *testing.T) {
	a, b := pair(t)
	if err := a.SendError(errors.New("no such device")); err != nil {
		t.Fatal(err)
	}
	_, err := b.Expect("ready", nil)
	if remote := (*RemoteError)(nil); !errors.As(err, &remote) || remote.Text != "no such device" {
		t.Fatalf("got %v", err)
	}
	a.SendValue("other", nil)
	if _, err = b.Expect("ready", nil); err == nil || !strings.Contains(err.Error(), `"other" came where "ready"`) {
		t.Fatalf("got %v", err)
	}
	a.SendValue("ready", map[string]int{"unknown": 1})
	if _, err = b.Expect("ready", &struct{ Known int }{}); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("got %v", err)
	}
}

func TestEndOfThePeer(t *testing.T) {
	a, b := pair(t)
	a.SendValue("last", 1)
	b.SendValue("unread", 1)
	a.Close()
	if _, err := b.Expect("last", nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Recv(); err != io.EOF {
		t.Fatalf("got %v, want io.EOF", err)
	}
	if err := b.SendValue("late", 1); !errors.Is(err, unix.EPIPE) {
		t.Fatalf("send to nobody: %v", err)
	}
}

func TestReadDeadline(t *testing.T) {
	_, b := pair(t)
	b.SetReadDeadline(time.Now().Add(-time.Second))
	if _, _, err := b.Recv(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

func TestBadMessagesAreNotSent(t *testing.T) {
	a, _ := pair(t)
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{}, "needs a kind"},
		{Message{Kind: strings.Repeat("k", MaxKind+1)}, "too large"},
		{Message{Kind: "k", Body: make([]byte, MaxBody+1)}, "too large"},
	} {
		if err := a.Send(c.m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if err := a.SendValue("k", func() {}); err == nil {
		t.Error("a func was sent")
	}
}

func TestOpenRefusesWhatIsNoUnixSocket(t *testing.T) {
	if _, err := Open(-1); err == nil {
		t.Error("descriptor -1 was opened")
	}
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fd); err == nil {
		t.Error("/dev/null was opened")
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fd); err == nil || !strings.Contains(err.Error(), "not a Unix one") {
		t.Errorf("got %v", err)
	}
}

func TestBadFrames(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "EOF",
		"\x00\x00":                         "unexpected EOF",
		"\x00\x00\x00\x01\x01\x00XXab":     "not a message header",
		"\xff\xff\xff\xff\x01\x00Wfab":     "too large",
		"\x00\x00\x00\x01\xff\x00Wfab":     "too large",
		"\x00\x00\x00\x01\x01\xffWfab":     "too large",
		"\x00\x00\x00\x01\x00\x00Wfa":      "without a kind",
		"\x00\x00\x00\x09\x01\x00Wfab":     "cut short",
		"\x03\xff\xff\xff\x01\x00Wfa\"abc": "cut short", // 64 MiB announced, nothing allocated
	} {
		if _, _, err := readFrame(strings.NewReader(in), MaxBody); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}

// The encoder reproduces every frame that the decoder accepts, byte by byte.
func FuzzFrame(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, m := range []Message{{Kind: "boot"}, {Kind: "error", Body: json.RawMessage(`"text"`)}, {Kind: "x", Body: json.RawMessage(`{"a":[1,2]}`)}} {
		b, err := appendFrame(nil, m, 3)
		if err != nil {
			f.Fatal(err)
		}
		corpus.Add(b)
	}
	corpus.Fuzz(func(t *testing.T, in []byte) {
		m, fds, err := readFrame(bytes.NewReader(in), MaxBody)
		if err != nil {
			return
		}
		out, err := appendFrame(nil, m, fds)
		if err != nil {
			t.Fatalf("accepted but cannot be sent: %v", err)
		}
		if !bytes.Equal(out, in[:len(out)]) {
			t.Fatalf("got %q, want %q", out, in[:len(out)])
		}
	})
}

func BenchmarkSendRecv(b *testing.B) {
	a, f, err := Pair()
	if err != nil {
		b.Fatal(err)
	}
	fd, _ := unix.Dup(int(f.Fd()))
	f.Close()
	z, err := Open(fd)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	defer z.Close()
	go func() {
		for {
			m, _, err := z.Recv()
			if err != nil || z.Send(m) != nil {
				return
			}
		}
	}()
	m := Message{Kind: "ping", Body: json.RawMessage(`{"n":1}`)}
	for b.Loop() {
		if a.Send(m) != nil {
			b.Fatal("send")
		}
		if _, _, err := a.Recv(); err != nil {
			b.Fatal(err)
		}
	}
}

// After exec, the new program receives the messages and descriptors that the old one did not.
func TestInheritLosesNothing(t *testing.T) {
	a, b := pair(t)
	a.SendValue("first", 1)
	a.SendValue("second", 2, 0, 1)
	if _, err := b.Expect("first", nil); err != nil {
		t.Fatal(err)
	}
	spare, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Inherit(spare); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(spare), unix.F_GETFD, 0); err != nil || flags != 0 {
		t.Errorf("would be closed on exec: %x, %v", flags, err)
	}
	heir, err := Open(spare)
	if err != nil {
		t.Fatal(err)
	}
	defer heir.Close()
	fds, err := heir.Expect("second", nil)
	if err != nil || len(fds) != 2 {
		t.Fatalf("descriptors %v, %v", fds, err)
	}
	CloseAll(fds)
}
