package runtime

import (
	"errors"
	"fmt"
	"os"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/nodeimg/boot"
)

// ContainerNet is a network namespace outside of the lab, such as that of a container, and the name
// of an interface in it.
type ContainerNet struct {
	Namespace *os.File
	Interface string
}

// do calls f on a thread in the container's network namespace.
func (c *ContainerNet) do(f func() error) error {
	err := ns.WithNetNSPath(fmt.Sprintf("/proc/self/fd/%d", c.Namespace.Fd()), func(ns.NetNS) error { return f() })
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("no access to the container's network; a lab that root deployed has it: %w", err)
	}
	return err
}

// Attach gives a container the interface of node p, with the addresses of its spec. The node itself
// receives nothing until Detach, or the end of the container. After an error nothing remains.
func (p *Proc) Attach(s *boot.NodeSpec, c *ContainerNet) error {
	machine, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if into, err := c.Namespace.Stat(); err != nil || os.SameFile(machine, into) {
		return cleanup.Join(errors.New("this is the network of the machine, not of a container"), err)
	}
	if err := c.do(func() error { return nil }); err != nil {
		return err
	}
	if err := p.Do(func() error { return boot.Share(int(c.Namespace.Fd()), c.Interface) }); err != nil {
		return err
	}
	if err := c.do(func() error { return boot.ConfigureShared(s, c.Interface) }); err != nil {
		return cleanup.Join(err, c.Detach(s))
	}
	return nil
}

// Check returns an error unless the container has the interface of a node.
func (c *ContainerNet) Check(s *boot.NodeSpec) error {
	return c.do(func() error { return boot.CheckShared(s, c.Interface) })
}

// Detach takes the interface of a node from the container. If it is gone already, Detach does
// nothing.
func (c *ContainerNet) Detach(s *boot.NodeSpec) error {
	return c.do(func() error { return boot.Unshare(s, c.Interface) })
}
