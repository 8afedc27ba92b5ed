package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weft/internal/cleanup"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// order asks for a change of a node's processes.
type order struct {
	Run  string
	Node int
	Do   string
}

// What an order asks for; see runtime.Restarter.
const (
	doKill    = "kill"
	doStop    = "stop"
	doGoOn    = "continue"
	doRestart = "restart"
)

// order has the agent change a node, and returns what the node is then.
func (c *cluster) order(ctx context.Context, i int, do string) (n node, err error) {
	conn, err := dial(ctx, c.addr, c.config, kindControl, order{c.run, i, do})
	if err != nil {
		return n, fmt.Errorf("%s: %w", c.name, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m, err := nextWithin(conn, kindNode, launchSilence)
	if err == nil {
		err = m.Decode(&n)
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", c.name, err)
	}
	return n, nil
}

// Kill implements runtime.Restarter.
func (c *cluster) Kill(i int) error {
	_, err := c.order(context.Background(), i, doKill)
	return err
}

// Freeze implements runtime.Restarter.
func (c *cluster) Freeze(i int, frozen bool) error {
	do := doGoOn
	if frozen {
		do = doStop
	}
	_, err := c.order(context.Background(), i, do)
	return err
}

// Restart implements runtime.Restarter. The other end of the node's cable stays on its machine,
// where it goes with the next realtime.KindPlug.
func (c *cluster) Restart(ctx context.Context, i int) (boot.Link, error) {
	n, err := c.order(ctx, i, doRestart)
	if err != nil {
		return boot.Link{}, err
	}
	if err := c.adopt(ctx, i, c.Node(i).Name, &n); err != nil {
		return boot.Link{}, cleanup.Join(err, c.Kill(i))
	}
	return c.Node(i).Link, nil
}

// control changes a node of a lab that stays up.
func (a *Agent) control(ctx context.Context, conn *link, o order) error {
	p, err := a.find(o.Run)
	if err != nil {
		return err
	}
	select {
	case <-p.up:
	case <-time.After(silence):
		return errors.New("the processes of this run are not up")
	}
	r, ok := p.cluster.(runtime.Restarter)
	if !ok || !p.Standing || o.Node < 0 || o.Node >= len(p.Nodes) {
		return fmt.Errorf("%s of node %d of %d in a lab that stays up: %v", o.Do, o.Node, len(p.Nodes), p.Standing)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go heartbeats(ctx, conn)
	switch o.Do {
	case doKill:
		err = r.Kill(o.Node)
	case doStop, doGoOn:
		err = r.Freeze(o.Node, o.Do == doStop)
	case doRestart:
		err = p.restart(ctx, r, o.Node)
	default:
		err = fmt.Errorf("order %q", o.Do)
	}
	if err != nil {
		return err
	}
	return errors.Join(conn.SendValue(kindNode, p.node(o.Node)), conn.Close())
}

// restart starts a node again that has ended.
func (p *part) restart(ctx context.Context, r runtime.Restarter, i int) error {
	link, err := r.Restart(ctx, i)
	if err != nil {
		return err
	}
	if err := p.lend(realtime.KindPlug, os.NewFile(uintptr(link.FD), "cable")); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[i] = p.cluster.Node(i).Conn
	return nil
}

// node describes a node.
func (p *part) node(i int) node {
	is := p.cluster.Node(i)
	return node{PID: is.PID, Cable: is.Link, Report: is.Report}
}
