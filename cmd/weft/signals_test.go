package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// All signals of the first half second are one request; a later one means it, unless it is the
// SIGHUP of a terminal that closes.
func TestSignals(t *testing.T) {
	t.Parallel()
	start := time.Unix(1, 0)
	for _, first := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		for _, second := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
			for _, after := range []time.Duration{0, 1, time.Millisecond, sameRequest - 1, sameRequest, time.Hour} {
				var s signals
				if got := s.receive(start, first); got != endInOrder {
					t.Fatalf("%v, the first: %v", first, got)
				}
				want := nothingNew
				if after >= sameRequest && second != syscall.SIGHUP {
					want = endAtOnce
				}
				// Whatever comes between does not move the half second.
				if got := s.receive(start.Add(after/2), syscall.SIGHUP); got != nothingNew {
					t.Errorf("%v, SIGHUP after %v: %v", first, after/2, got)
				}
				if got := s.receive(start.Add(after), second); got != want {
					t.Errorf("%v, %v after %v: %v, want %v", first, second, after, got, want)
				}
			}
		}
	}
}
