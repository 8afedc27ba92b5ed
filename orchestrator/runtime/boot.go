package runtime

import "sync"

// Boot brings the processes of a lab up, side by side.
type Boot struct {
	HangUp func() // ends the wait of whoever waits for a process; called when a step fails

	group sync.WaitGroup
	once  sync.Once
	first error
}

// Do does a step beside those that were begun before.
func (b *Boot) Do(step func() error) {
	b.group.Go(func() {
		if err := step(); err != nil {
			b.once.Do(func() { b.first = err }) // the others' are only that the lab is being closed
			b.HangUp()
		}
	})
}

// Wait waits for all steps that were begun, and returns the error of the one that failed first.
func (b *Boot) Wait() error {
	b.group.Wait()
	return b.first
}

// Switched is how a runtime takes the nodes of a lab that the machine's kernel switches through their boot, by their numbers.
type Switched struct {
	Switch func(i int) error       // starts a switch, and waits until it is up
	Host   func(i int) error       // starts a host, as far as it comes without its cable
	WireUp func(i int) error       // has a host go on that has its cable, and waits until it is up
	Find   func(node string) *Proc // nil if there is none
}

// Switched brings up a lab whose switches are nodes: all processes, then their cables, and then what hosts do with theirs.
func (b *Boot) Switched(spec *Spec, by Switched) error {
	for i := range spec.Switches {
		b.Do(func() error { return by.Switch(i) })
	}
	for i := range spec.Nodes {
		b.Do(func() error { return by.Host(i) })
	}
	if err := b.Wait(); err != nil {
		return err
	}
	b.Do(func() error {
		op := Op{Do: "plug cables", Kind: Process, Name: spec.Switches[0].Name} // they end with their nodes
		return spec.Do(op, func() error { return Plug(spec.Cables, by.Find) })
	})
	if err := b.Wait(); err != nil {
		return err
	}
	for i := range spec.Nodes {
		b.Do(func() error { return by.WireUp(i) })
	}
	return b.Wait()
}
