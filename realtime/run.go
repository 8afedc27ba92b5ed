package realtime

import (
	"fmt"

	"weft/internal/control"
	"weft/internal/poller"
)

// memoryRoom is the number of bytes by which the process may grow before garbage is collected. It
// is room for packets in flight.
const memoryRoom = 256 << 20

// Run is the fabric process. It serves the orchestrator at the other end of conn until that says
// stop, and returns an error if anything fails before, including the loss of the connection. ports
// are the hosts', in order. Run takes over the whole process: its scheduling and its garbage
// collection.
func Run(conn *control.Conn, ports []Port) error {
	return serve(conn, ports, func() string { return poller.TakeOver(poller.Urgent, memoryRoom) })
}

// serve implements Run. It calls takeOver when everything has been set up.
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
		l.closeNICs()
		l.part.close()
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
	hosts := cfg.hosts()
	l, err := newLoop(cfg, conn)
	if err != nil {
		return nil, err
	}
	if err := l.openNICs(conn); err != nil {
		return nil, err
	}
	if err := l.openPeers(conn); err != nil {
		return nil, err
	}
	for k, p := range ports {
		if err := l.attach(hosts[k], p); err != nil {
			return nil, err
		}
	}
	return l, nil
}
