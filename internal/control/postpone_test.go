package control

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A peer that does not read holds nobody up who postpones, and misses nothing.
func TestPostpone(t *testing.T) {
	a, b, err := Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	const many, big = 40, 100_000
	a.Postpone(many * 2 * big)
	sent := make(chan error, 1)
	go func() {
		for i := range many {
			if err := a.SendValue("one", strings.Repeat("x", big)+string(rune('a'+i))); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	select {
	case err := <-sent:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a peer that does not read")
	}
	a.Postpone(0)
	go func() { sent <- a.SendValue("last", nil) }() // sends all that was kept
	var got []string
	for len(got) < many {
		var s string
		if _, err := b.Expect("one", &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s[big:])
	}
	if _, err := b.Expect("last", nil); err != nil || !slices.IsSorted(got) || <-sent != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// Beyond what is kept, a sender waits, and learns that its peer has gone.
func TestPostponedTooMuch(t *testing.T) {
	a, b, err := Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Postpone(1 << 20)
	sent := make(chan error, 1)
	go func() {
		for {
			if err := a.SendValue("one", strings.Repeat("x", 100_000)); err != nil {
				sent <- err
				return
			}
		}
	}()
	select {
	case err := <-sent:
		t.Fatalf("sent without end: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	b.Close()
	if err := <-sent; !Gone(err) {
		t.Error(err)
	}
}
