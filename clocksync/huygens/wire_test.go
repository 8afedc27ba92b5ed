package huygens

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"weft/clocksync"
	"weft/internal/fuzztest"
)

// sampleMessages returns one encoded message of each type.
func sampleMessages() [][]byte {
	var out [][]byte
	add := func(write func([]byte) int) {
		b := make([]byte, clocksync.MaxMessage)
		out = append(out, b[:write(b)])
	}
	p := probe{index: 1, epoch: 2, sequence: 9, nsent: 2, nrecv: 1}
	p.sent = [perProbe]reportedPair{{8, -5, 200}, {7, 1e15, -200}}
	p.received[0] = reportedPair{5, 1, 2}
	add(p.encode)
	add((&times{kind: kindJoin, number: 3}).encode)
	add((&times{kind: kindWelcome, joined: true, number: 3}).encode)
	r := report{window: windowBase + 7, part: 2, anchor: true, x0: -12345, rate: 20e-6}
	for i := range perReport {
		r.edges = append(r.edges, edgeFit{to: clocksync.Node(i), points: 500, beta: -1e12, alpha: -1e-6, sigma: 2000})
	}
	add(r.encode)
	add((&solution{window: 1, lone: true, err: -3000, skew: 5e-9, sigma: 1000, adrift: 77}).encode)
	return out
}

// recode decodes and encodes a message.
func recode(b []byte) ([]byte, error) {
	out := make([]byte, clocksync.MaxMessage)
	k, err := peek(b)
	if err != nil {
		return nil, err
	}
	switch k {
	case kindProbe:
		var p probe
		if err := p.decode(b); err != nil {
			return nil, err
		}
		return out[:p.encode(out)], nil
	case kindJoin, kindWelcome:
		var m times
		if err := m.decode(b); err != nil {
			return nil, err
		}
		return out[:m.encode(out)], nil
	case kindReport:
		var r report
		if err := r.decode(b); err != nil {
			return nil, err
		}
		return out[:r.encode(out)], nil
	case kindSolution:
		var s solution
		if err := s.decode(b); err != nil {
			return nil, err
		}
		return out[:s.encode(out)], nil
	}
	return nil, ErrMagic
}

func TestMessagesAreReadBack(t *testing.T) {
	for _, b := range sampleMessages() {
		if got, err := recode(b); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%x is read as %x, %v", b, got, err)
		}
	}
	if len(sampleMessages()[0]) != probeSize || probeSize != 72 {
		t.Error("probes have another size")
	}
}

func TestRefusedMessages(t *testing.T) {
	s := sampleMessages()
	probe, join, report, solution := s[0], s[1], s[3], s[4]
	with := func(b []byte, at int, v byte) []byte {
		c := bytes.Clone(b)
		c[at] = v
		return c
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":              {nil, ErrShort},
		"not ours":             {with(probe, 0, 'X'), ErrMagic},
		"another version":      {with(probe, 1, 9), ErrMagic},
		"unknown kind":         {with(probe, 2, 77), ErrMagic},
		"short probe":          {probe[:60], ErrShort},
		"third of a pair":      {with(probe, 3, 2), ErrRange},
		"three pairs":          {with(probe, 3, 3<<2), ErrRange},
		"time of years":        {with(probe, headSize+4, 0x7f), ErrRange},
		"flags of a join":      {with(join, 3, 4), ErrRange},
		"short join":           {join[:20], ErrShort},
		"join from afar":       {with(join, headSize, 0x7f), ErrRange},
		"report without edges": {report[:reportHead], ErrShort},
		"short report":         {report[:9], ErrShort},
		"part 64":              {with(report, headSize+12, 64), ErrRange},
		"edge without noise":   {append(report[:reportHead+16:reportHead+16], append([]byte{0, 0, 0, 0}, report[reportHead+20:]...)...), ErrRange},
		"short solution":       {solution[:10], ErrShort},
		"flags of a solution":  {with(solution, 3, 2), ErrRange},
	} {
		if _, err := recode(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, b := range sampleMessages() {
		corpus.Add(b)
	}
	corpus.Fuzz(func(t *testing.T, b []byte) {
		one, err := recode(b)
		if err != nil {
			return
		}
		two, err := recode(one)
		if err != nil || !reflect.DeepEqual(one, two) {
			t.Fatalf("%x is written as %x and then as %x, %v", b, one, two, err)
		}
	})
}
