package realtime

import (
	"fmt"

	"weft/internal/control"
	"weft/internal/poller"
)

// memoryRoom is how much the process may grow before garbage is collected: packets in flight.
const memoryRoom = 256 << 20

// Run is the fabric process: it serves the orchestrator at the other end of conn until it says stop, and
// returns an error when anything fails before that, the orchestrator's disappearance included. There is one
// port for each host, in order. It takes over the whole process.
func Run(conn *control.Conn, ports []Port) error {
	return serve(conn, ports, func() string { return poller.TakeOver(poller.Urgent, memoryRoom) })
}

// serve is Run; takeOver is called when everything has been set up.
func serve(conn *control.Conn, ports []Port, takeOver func() string) error {
	for {
		l, err := setUp(conn, ports)
		if err == nil {
			l.report.Scheduler = takeOver()
			err = conn.SendValue(KindReady, nil)
		}
		if err == nil {
			err = l.run()
		}
		if err != nil {
			err = fmt.Errorf("fabric: %w", err)
			_ = conn.SendError(err) // the peer may be what failed
			return err
		}
		l.poll.Close()
		if !l.cfg.More {
			return nil
		}
	}
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
	l, err := newLoop(cfg, conn)
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
