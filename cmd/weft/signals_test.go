package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
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

// Only a command that makes a lab says after a signal that it was torn down, and no other is silent
// of what failed.
func TestWordsAfterASignal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	failed := errors.New("lab a: its supervisor does not answer")
	makers := 0
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, err := range []error{failed, context.Canceled} {
			var words strings.Builder
			want := "weft: terminated signal received\n"
			if text := tornDown[cmd.CommandPath()]; text != "" {
				want = "weft: terminated signal received; " + text + "\n"
				makers++
			} else if err == failed {
				want = "weft: terminated signal received; lab a: its supervisor does not answer\n"
			}
			if code := (&app{stderr: &words}).report(ctx, cmd, err); code != exitInterrupted || words.String() != want {
				t.Errorf("%s: code %d, %q; want %q", cmd.CommandPath(), code, &words, want)
			}
		}
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each((&app{}).root())
	if makers != 2*len(tornDown) {
		t.Errorf("of %d commands that make labs %d exist", len(tornDown), makers/2)
	}
}
