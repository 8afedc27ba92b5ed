package main

import (
	"errors"
	"testing"
)

// What the summary says line by line is said once: the last line of all only names it.
func TestToldErrorsAreBrief(t *testing.T) {
	cause := errors.New("ring: nothing moves\n  a waits for b\n  b waits for a")
	if got := (told{cause}).Error(); got != "ring: nothing moves" {
		t.Errorf("got %q", got)
	}
	if !errors.Is(told{cause}, cause) {
		t.Error("the cause is hidden from who asks for it")
	}
}
