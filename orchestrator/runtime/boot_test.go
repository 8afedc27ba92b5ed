package runtime

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"weft/nodeimg/boot"
)

// The first error is returned, and the other steps are woken.
func TestBootReturnsTheFirstError(t *testing.T) {
	woken := make(chan struct{})
	var once sync.Once
	b := Boot{HangUp: func() { once.Do(func() { close(woken) }) }}
	cause := errors.New("no memory")
	b.Do(func() error { <-woken; return errors.New("hung up") })
	b.Do(func() error { return cause })
	b.Do(func() error { return nil })
	if err := b.Wait(); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// Processes come before cables, cables before the rest of the hosts' boot, and nothing follows a
// failure.
func TestSwitchedLabsBootInOrder(t *testing.T) {
	spec := Spec{Switches: make([]boot.NodeSpec, 1), Nodes: make([]boot.NodeSpec, 2)}
	for fails, want := range map[string][]string{
		"":       {"host", "host", "switch", "plug", "wired", "wired"},
		"switch": {"host", "host", "switch"},
		"plug":   {"host", "host", "switch", "plug"},
	} {
		var mu sync.Mutex
		var got []string
		step := func(name string) error {
			mu.Lock()
			defer mu.Unlock()
			if got = append(got, name); name == fails {
				return errors.New("it fails")
			}
			return nil
		}
		do := func(name string) func(int) error { return func(int) error { return step(name) } }
		plug := func([]boot.Cable) error { return step("plug") }
		b := Boot{HangUp: func() {}}
		if err := b.Switched(&spec, Switched{Switch: do("switch"), Host: do("host"), WireUp: do("wired"), Plug: plug}); (err != nil) != (fails != "") {
			t.Errorf("%q fails: %v", fails, err)
		}
		slices.Sort(got[:3])
		if !slices.Equal(got, want) {
			t.Errorf("%q fails: %v", fails, got)
		}
	}
}
