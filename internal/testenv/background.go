package testenv

import (
	"context"
	"testing"
)

// Background runs serve until the end of the test, and waits for it. An error fails the test.
func Background(t *testing.T, serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
