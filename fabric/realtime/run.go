package realtime

import (
	"fmt"
	"runtime"

	"weft/internal/poller"
	"weft/nodeimg/control"
)

// memoryRoom is how much the process may grow before garbage is collected: packets in flight and samples.
const memoryRoom = 256 << 20

// Run is the fabric process: it serves the orchestrator at the other end of conn until it says stop, and
// returns an error when anything fails before that, the orchestrator's disappearance included. There is one
// port for each host, in order. It takes the calling goroutine's thread for good.
func Run(conn *control.Conn, ports []Port) error {
	if err := serve(conn, ports); err != nil {
		_ = conn.SendError(err) // the peer may be what failed
		return err
	}
	return nil
}

func serve(conn *control.Conn, ports []Port) error {
	l, err := setUp(conn, ports)
	if err != nil {
		return fmt.Errorf("fabric: %w", err)
	}
	runtime.GOMAXPROCS(2) // the loop, and whatever talks to the orchestrator
	sent := make(chan error, 1)
	go func() { sent <- l.sendSamples(conn) }()
	l.report.Scheduler = poller.Thread(poller.Urgent)
	poller.QuietMemory(memoryRoom)
	if err := conn.SendValue(KindReady, nil); err != nil {
		return err
	}
	commands := make(chan error, 1)
	go func() { commands <- l.listen(conn) }()

	if err := l.run(); err != nil {
		return err
	}
	if err := <-commands; err != nil {
		return err
	}
	close(l.outbox)
	if err := <-sent; err != nil {
		return err
	}
	return conn.SendValue(KindReport, &l.report)
}

// setUp builds the loop from the configuration and attaches the ports.
func setUp(conn *control.Conn, ports []Port) (*loop, error) {
	var cfg Config
	if _, err := conn.Expect(KindConfigure, &cfg); err != nil {
		return nil, err
	}
	if len(ports) != len(cfg.Hosts) {
		return nil, fmt.Errorf("%d ports for %d hosts", len(ports), len(cfg.Hosts))
	}
	l, err := newLoop(cfg)
	if err != nil {
		return nil, err
	}
	for h, p := range ports {
		if err := l.attach(h, p); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// listen takes start and stop from the orchestrator and stops the loop when it is gone.
func (l *loop) listen(conn *control.Conn) error {
	defer l.poll.Wake()
	defer l.stop.Store(true)
	for {
		m, _, err := conn.Recv()
		if err != nil {
			return fmt.Errorf("fabric: the orchestrator is gone: %w", err)
		}
		switch m.Kind {
		case KindStart:
			var s Start
			if err := m.Decode(&s); err != nil {
				return err
			}
			l.start.Store(s.T0)
			l.poll.Wake()
		case KindStop:
			return nil
		default:
			return fmt.Errorf("fabric: %q was not expected", m.Kind)
		}
	}
}

// sendSamples sends what the loop hands over until the outbox is closed.
func (l *loop) sendSamples(conn *control.Conn) error {
	for s := range l.outbox {
		if err := conn.SendValue(KindSamples, s); err != nil {
			return err
		}
	}
	return nil
}
