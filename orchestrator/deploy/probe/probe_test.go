package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/internal/quiettest"
)

// Over loopback all packets arrive, with timestamps.
func TestProbeOverLoopback(t *testing.T) {
	quiettest.Check(t, 5, func() error {
		// a first packet that is late leaves less time to the last
		if r := probeLoopback(t)[0]; r.LastNS-r.FirstNS < 4e6*9/10 {
			return fmt.Errorf("five packets, 1 ms apart: %+v", r)
		}
		return nil
	})
}

// probeLoopback sends two phases of packets and returns what has arrived.
func probeLoopback(t *testing.T) []Result {
	p := &Plan{To: netip.MustParseAddrPort("127.0.0.1:40871"), Source: 40872, Phases: []Phase{
		{Count: 5, Size: 64, GapNS: 1e6}, {Count: 200, Size: 1200},
	}}
	out := new(bytes.Buffer)
	ready := &firstWrite{Buffer: out, first: make(chan struct{})}
	received := make(chan error, 1)
	go func() { received <- Receive(ready, 40871, 2) }()
	select {
	case <-ready.first:
	case err := <-received:
		t.Skip(err) // the port is taken
	}
	if err := Send(p); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(out.String(), "ready\n")
	var results []Result
	if err := json.Unmarshal([]byte(text), &results); err != nil || !ok || len(results) != 2 {
		t.Fatalf("%v in %q", err, out.String())
	}
	if r := results[0]; r.Received != 5 || r.Bytes != 4*64 || r.MinNS <= 0 {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.Received != 200 || r.Bytes != 199*1200 {
		t.Errorf("%+v", r)
	}
	return results
}

// firstWrite is a buffer that closes first at its first write.
type firstWrite struct {
	*bytes.Buffer
	first chan struct{}
	said  bool
}

func (s *firstWrite) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if !s.said {
		s.said = true
		close(s.first)
	}
	return n, err
}

func TestPlansAreChecked(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `{"to":"127.0.0.1:1","phases":[]}`, `{"to":"[::1]:1","phases":[{"count":1,"size":64}]}`,
		`{"to":"127.0.0.1:1","phases":[{"count":1,"size":4}]}`, `{"to":"127.0.0.1:1","phases":[{"count":1000000000,"size":64}]}`,
		`{"to":"127.0.0.1:1","phases":[{"count":1,"size":64,"gap_ns":-1}]}`,
	} {
		if _, err := ReadPlan(text); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func FuzzReceived(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte("Weft"), int64(1))
	corpus.Fuzz(func(t *testing.T, b []byte, at int64) {
		r := receiver{results: make([]Result, 2), seen: make([]map[uint32]bool, 2)}
		r.count(b, at)
		r.count(b, at)
		if n := r.results[0].Received + r.results[1].Received; n > 1 {
			t.Errorf("a packet counts %d times", n)
		}
	})
}
