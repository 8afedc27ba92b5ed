package runtime

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"weft/nodeimg/boot"
)

// Plug creates cables between nodes: all of the lab, or those of one node. Each veth pair is
// created inside the namespaces of its ends, so it is never visible elsewhere and is gone with
// either node. If a node has ended, the error says how.
func (m *Members[P]) Plug(cables []boot.Cable) error {
	err := plugAll(cables, m.Find)
	var gone *EndedError
	for _, p := range slices.Backward(m.Started()) {
		if errors.As(err, &gone) && gone.Proc == p.Process() {
			return m.Failed(p, err)
		}
		var missing *missingError
		if errors.As(err, &missing) && missing.node == p.Process().Name && ended(p) {
			return p.Exit()
		}
	}
	return err
}

// missingError is an ErrNoNode with the node's name.
type missingError struct{ node string }

func (e *missingError) Error() string { return e.node + ": " + ErrNoNode.Error() }
func (e *missingError) Unwrap() error { return ErrNoNode }

// plugAll creates cables between nodes, whose processes find returns by name.
func plugAll(cables []boot.Cable, find func(node string) *Proc) error {
	byNode := map[string][]*boot.Cable{}
	for i := range cables {
		c := &cables[i]
		byNode[c.A.Node] = append(byNode[c.A.Node], c)
	}
	var group sync.WaitGroup
	errs := make(chan error, 2*len(cables)+1)
	for node, mine := range byNode {
		group.Go(func() {
			p := find(node)
			if p == nil {
				errs <- &missingError{node}
				return
			}
			for _, c := range mine {
				if err := plug(p, c, find(c.B.Node)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs // the first error, if any
}

// plug creates one cable from the network namespace of a to that of b.
func plug(a *Proc, c *boot.Cable, b *Proc) error {
	if b == nil {
		return &missingError{c.B.Node}
	}
	far, err := b.network()
	if err != nil {
		return err
	}
	defer far.Close()
	if err := a.Do(func() error { return boot.Plug(c, int(far.Fd())) }); err != nil {
		return err
	}
	if err := b.Do(func() error { return boot.PlainFrames(c.B.Interface) }); err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	return nil
}

// CablesOf returns the cables of one node.
func (s *Spec) CablesOf(node string) (own []boot.Cable) {
	for _, c := range s.Cables {
		if c.A.Node == node || c.B.Node == node {
			own = append(own, c)
		}
	}
	return own
}
