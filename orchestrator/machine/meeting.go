package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"weft/internal/cleanup"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/orchestrator/emulate"
)

// Report tells the meeting at addr that this agent listens at port of the machine host. It returns
// when the meeting is over: then nobody needs this agent.
func (a *Agent) Report(ctx context.Context, addr, host string, port int) error {
	config, err := secure(a.Secret)
	if err != nil {
		return err
	}
	conn, err := dial(ctx, addr, config, kindJoin, join{Build: a.Build, Host: host, Port: port})
	if err != nil {
		return fmt.Errorf("weft run at %s cannot be reached: %w; start it where the others reach it", addr, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go heartbeats(ctx, conn)
	m, err := next(conn, kindUp)
	var refused *control.RemoteError
	if errors.As(err, &refused) {
		return err
	}
	for err == nil {
		m, err = next(conn, m.Kind)
	}
	return nil
}

// meeting is where the agents of a run report that an engine starts. The agents end with it.
type meeting struct {
	build string
	came  chan arrival
	end   context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	lost error // the first agent that has gone
}

// arrival is an agent that has come.
type arrival struct {
	host, addr string
	err        error
	stay       chan string // receives its name when all are there
}

// meet opens a meeting at l.
func meet(ctx context.Context, l net.Listener, secret, build string) (*meeting, error) {
	config, err := secure(secret)
	if err != nil {
		return nil, cleanup.Join(err, l.Close())
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	m := &meeting{build: build, came: make(chan arrival), end: end, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		_ = serve(ctx, l, config, m.attend) // who waits for agents sees that none comes
	}()
	return m, nil
}

// attend talks to an agent until the meeting ends.
func (m *meeting) attend(ctx context.Context, conn *link, from net.Addr) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	said := first(conn)
	if said == nil {
		return
	}
	var j join
	if err := said.Is(kindJoin, &j); err != nil {
		_ = conn.SendError(err) // the other end may be gone
		return
	}
	ip, _, err := net.SplitHostPort(from.String())
	a := arrival{
		host: clip.Line(j.Host), addr: net.JoinHostPort(ip, strconv.Itoa(j.Port)), err: err,
		stay: make(chan string, 1),
	}
	switch {
	case j.Build != m.build:
		a.err = fmt.Errorf("the agent at %s is another build of weft (%s) than this one (%s); expected the same on "+
			"all machines", a.addr, clip.Line(j.Build), m.build)
	case j.Port < 1 || j.Port > 65535:
		a.err = fmt.Errorf("the agent at %s says that it listens at port %d", ip, j.Port)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go heartbeats(ctx, conn)
	gone := make(chan error, 1)
	go func() {
		_, err := next(conn, kindJoin) // only signs of life come
		gone <- err
	}()
	select {
	case m.came <- a:
	case <-gone:
		return
	case <-ctx.Done():
		return
	}
	if a.err != nil {
		_ = conn.SendError(a.err)
		return
	}
	if conn.SendValue(kindUp, nil) != nil {
		return
	}
	name := ""
	for {
		select {
		case name = <-a.stay:
		case err := <-gone:
			m.lose(fmt.Errorf("%s (%s at %s) has gone: %w", cmp.Or(name, "an agent"), a.host, a.addr, err))
			return
		case <-ctx.Done():
			return
		}
	}
}

// lose records that an agent has gone.
func (m *meeting) lose(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = cmp.Or(m.lost, err)
}

// check returns an error if an agent has gone.
func (m *meeting) check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// lookTime is how often an engine is asked why agents do not come. Ours.
const lookTime = time.Second

// wait waits until n agents have come, and returns them by the names of their machines. look
// returns an error if that cannot happen.
func (m *meeting) wait(ctx context.Context, n int, look func(context.Context) error) ([]arrival, error) {
	var all []arrival
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for len(all) < n {
		select {
		case a := <-m.came:
			if a.err != nil {
				return nil, a.err
			}
			all = append(all, a)
		case <-tick.C:
			if err := cmp.Or(m.check(), look(ctx)); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	slices.SortFunc(all, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.addr, b.addr))
	})
	for k, a := range all {
		a.stay <- emulate.MachineName(k)
	}
	return all, nil
}

// close ends the meeting, and with it the agents.
func (m *meeting) close() {
	m.end()
	<-m.ended
}
