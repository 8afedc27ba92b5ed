package runtime

import (
	"fmt"
	"sync"

	"github.com/containernetworking/plugins/pkg/ns"

	"weft/nodeimg/boot"
)

// Plug creates cables between nodes, whose processes find returns by name. cables may be all of a
// lab, or those of one node. Each veth pair is created inside the namespaces of its ends, so it is
// never visible elsewhere and is gone with either node.
func Plug(cables []boot.Cable, find func(node string) *Proc) error {
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
				errs <- fmt.Errorf("%s: %w", node, ErrNoNode)
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
		return fmt.Errorf("%s: %w", c.B.Node, ErrNoNode)
	}
	far, err := ns.GetNS(b.network())
	if err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
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
