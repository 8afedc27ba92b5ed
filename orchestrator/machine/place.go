package machine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/internal/clip"
	"weft/internal/plural"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
)

// SecretVar is the environment variable with the secret of an agent that Slurm starts.
const SecretVar = "WEFT_SECRET"

// An Engine starts agents on machines: Docker Swarm or Slurm.
type Engine interface {
	// Name is what --on calls the engine.
	Name() string
	// Hosts returns the machines that take an agent, by name.
	Hosts(ctx context.Context) ([]Host, error)
	// Where returns how another process finds the engine: the value of DOCKER_HOST or SLURM_CONF.
	Where() string
	// Place starts the agents of a placement, each on a machine of its own. After an error nothing
	// runs.
	Place(ctx context.Context, p *Placement) error
	// Look returns an error if an agent of a placement will not come.
	Look(ctx context.Context, p *Placement) error
	// Remove ends the agents of the placement with a name, which this or another process has
	// placed, and removes all that Place made. It succeeds twice.
	Remove(ctx context.Context, where, name string) error
}

// Host is a machine of an engine.
type Host struct{ Name, Addr string }

// Placement is a number of agents that an engine starts.
type Placement struct {
	Name   string // of the service or job, unique
	Owner  runtime.Owner
	Count  int
	Meet   string // address where agents report
	Secret string
	Image  string // for containers; empty: made from this program
}

// Args returns the command line of an agent without its secret.
func (p *Placement) Args() []string { return []string{"machine", "--meet", p.Meet} }

// Prefix begins the names of placements.
const Prefix = "weft-run-"

// Placed is agents that an engine starts when they are first needed, and ends when Close is called
// or this process ends.
type Placed struct {
	Engine    Engine
	Placement Placement         // Count and Image; the rest follows
	Build     string            // of this program
	Say       func(line string) // receives what happens; may be nil
	// Ahead is called before agents are placed, so that a journal can remove them if this process
	// is killed. It may be nil.
	Ahead runtime.Ahead

	mu      sync.Mutex
	meeting *meeting
	group   *Group
	names   []string
}

// Launches is Group.Launches.
func (p *Placed) Launches(ctx context.Context) ([]runtime.Launch, error) {
	g, err := p.place(ctx)
	if err != nil {
		return nil, err
	}
	return g.Launches(ctx)
}

// Capacities is Group.Capacities.
func (p *Placed) Capacities(ctx context.Context) ([]emulate.Capacity, error) {
	g, err := p.place(ctx)
	if err != nil {
		return nil, err
	}
	return g.Capacities(ctx)
}

// place starts the agents unless they run, and waits until all are there: engines have no start of
// all or none.
func (p *Placed) place(ctx context.Context) (*Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group != nil {
		return p.group, p.meeting.check()
	}
	hosts, err := p.Engine.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	if err := Enough(p.Engine, hosts, p.Placement.Count); err != nil {
		return nil, err
	}
	if p.Placement.Owner, err = runtime.Self(); err != nil {
		return nil, err
	}
	secret := make([]byte, minSecret/2)
	_, _ = rand.Read(secret) // it never fails
	p.Placement.Secret = hex.EncodeToString(secret)
	p.Placement.Name = Prefix + strings.ToLower(rand.Text()[:12])
	l, err := Listen(net.JoinHostPort(Nearest(hosts), "0"))
	if err != nil {
		return nil, err
	}
	p.Placement.Meet = l.Addr().String()
	m, err := meet(ctx, l, p.Placement.Secret, p.Build)
	if err != nil {
		return nil, err
	}
	p.say(fmt.Sprintf("waiting for %s, as %s", plural.Count(p.Placement.Count, "machine"), p.Placement.Name))
	var all []arrival
	if err = p.ask(ctx); err == nil {
		look := func(ctx context.Context) error { return p.Engine.Look(ctx, &p.Placement) }
		all, err = m.wait(ctx, p.Placement.Count, look)
		if err != nil {
			err = errors.Join(err, p.remove(ctx))
		}
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("%s: %w", p.Engine.Name(), err)
	}
	g := &Group{Secret: p.Placement.Secret, Build: p.Build}
	for k, a := range all {
		g.Addrs = append(g.Addrs, a.addr)
		p.names = append(p.names, fmt.Sprintf("%s is %s", emulate.MachineName(k), a.host))
	}
	p.say(strings.Join(p.names, ", "))
	p.meeting, p.group = m, g
	return g, nil
}

func (p *Placed) say(what string) {
	if p.Say != nil {
		p.Say(p.Engine.Name() + ": " + what)
	}
}

// ask has the engine start the agents.
func (p *Placed) ask(ctx context.Context) error {
	if p.Ahead != nil {
		if err := p.Ahead(runtime.Op{Do: "place agents", Kind: runtime.Agents, Name: p.Placement.Name,
			Where: p.Engine.Name() + " " + p.Engine.Where()}); err != nil {
			return err
		}
	}
	return p.Engine.Place(ctx, &p.Placement)
}

// remove has the engine end the agents.
func (p *Placed) remove(ctx context.Context) error {
	return p.Engine.Remove(context.WithoutCancel(ctx), p.Engine.Where(), p.Placement.Name)
}

// Undo undoes an operation of kind runtime.Agents with the engine that has placed them.
func Undo(ctx context.Context, engines []Engine, where, name string) error {
	engine, where, _ := strings.Cut(where, " ")
	for _, e := range engines {
		if e.Name() == engine {
			return e.Remove(ctx, where, name)
		}
	}
	return fmt.Errorf("agents of an engine %q, which this weft does not know", clip.Text(engine))
}

// Names says which machine is which.
func (p *Placed) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names
}

// Enough returns an error unless an engine has a number of machines.
func Enough(e Engine, hosts []Host, count int) error {
	if len(hosts) >= count {
		return nil
	}
	return fmt.Errorf("%s:%d: %s take work (%s), and each part of the lab has a machine of its own", e.Name(), count,
		plural.Count(len(hosts), "machine"), strings.Join(Names(hosts), ", "))
}

// Names returns the names of machines in order, for messages.
func Names(hosts []Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = clip.Line(h.Name)
	}
	slices.Sort(names)
	return names
}

// Nearest returns the address of this machine that other machines of an engine reach: that from
// which packets to them leave.
func Nearest(hosts []Host) string {
	found := ""
	for _, h := range hosts {
		c, err := net.Dial("udp", net.JoinHostPort(h.Addr, "1")) // sends nothing
		if err != nil {
			continue
		}
		ip := c.LocalAddr().(*net.UDPAddr).IP
		c.Close()
		if found = ip.String(); !ip.IsLoopback() {
			break
		}
	}
	return found
}

// Close ends the agents.
func (p *Placed) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meeting == nil {
		return nil
	}
	if p.meeting.check() != nil {
		p.tell(ctx)
	}
	p.meeting.close()
	p.meeting = nil
	if err := p.remove(ctx); err != nil {
		return fmt.Errorf("%s was not removed: %w; weft clean does it later", p.Placement.Name, err)
	}
	return nil
}

// tellTime is for an engine to notice why an agent has gone. Ours.
const tellTime = time.Second

// tell says why agents have gone, if the engine knows: a connection that ended does not.
func (p *Placed) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	for {
		why := p.Engine.Look(ctx, &p.Placement)
		if ctx.Err() != nil {
			return
		}
		if why != nil {
			p.say(why.Error())
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellTime / 5):
		}
	}
}
