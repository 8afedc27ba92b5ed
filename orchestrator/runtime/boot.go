package runtime

import (
	goruntime "runtime"
	"sync"

	"weft/nodeimg/boot"
)

// AtOnce returns the number of processes or containers of a launch that are brought up at once. It
// is larger than the number of processors, since a start mostly waits for the kernel and for other
// processes, but no larger than a busy machine can carry: those that wait for their turn have no
// time limit. Ours.
func AtOnce() int { return 4 * goruntime.NumCPU() }

// Boot brings up the processes of a lab concurrently.
type Boot struct {
	HangUp func() // called when a step fails; must end all waits for processes

	group sync.WaitGroup
	once  sync.Once
	first error
}

// Do starts a step concurrently with the earlier ones.
func (b *Boot) Do(step func() error) {
	b.group.Go(func() {
		if err := step(); err != nil {
			b.once.Do(func() { b.first = err }) // later errors only follow from HangUp
			b.HangUp()
		}
	})
}

// Wait waits for all steps and returns the error of the step that failed first.
func (b *Boot) Wait() error {
	b.group.Wait()
	return b.first
}

// Switched are a runtime's steps to boot the nodes, by number, of a lab that the machine's kernel
// switches.
type Switched struct {
	Switch func(i int) error // starts a switch and waits until it is up
	Host   func(i int) error // starts a host, which then waits for its cable
	WireUp func(i int) error // continues the boot of a host that has its cable
	Plug   func(cables []boot.Cable) error
}

// Switched brings up a lab whose switches are nodes: all processes, then the cables between them,
// then the rest of the hosts' boot.
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
		op := Op{Do: "plug cables", Kind: Process, Name: spec.Switches[0].Name} // cables end with their nodes
		return spec.Do(op, func() error { return by.Plug(spec.Cables) })
	})
	if err := b.Wait(); err != nil {
		return err
	}
	for i := range spec.Nodes {
		b.Do(func() error { return by.WireUp(i) })
	}
	return b.Wait()
}
