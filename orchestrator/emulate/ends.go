package emulate

import (
	"slices"
	"strings"
	"sync"
	"time"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// ends are the processes of a deployed lab that have ended. They explain broken connections.
type ends struct {
	mu    sync.Mutex
	first *runtime.ExitError      // of what the network needs; nil: nothing of that has ended
	ended map[string]runtime.Exit // by name, the last of each
	news  chan struct{}           // closed, and replaced, with each end
	out   chan runtime.Exit
}

func newEnds(room int) ends {
	return ends{ended: map[string]runtime.Exit{}, news: make(chan struct{}), out: make(chan runtime.Exit, room)}
}

// follow passes on the ends of processes until the lab ends. A network in parts does not go on
// without one of them, or without the connection between two.
func (s *Deployment) follow() {
	defer close(s.ends.out)
	_, several := s.cluster.(*machines)
	for e := range s.cluster.Exits() {
		host := slices.ContainsFunc(s.nodes, func(n boot.NodeSpec) bool { return n.Name == e.Name })
		network := e.Name == runtime.Fabric || several && !host && !strings.HasPrefix(e.Name, runtime.KeeperName)
		if s.ends.add(e, network); network && several {
			s.carrier.conn.Close()
		}
		s.ends.out <- e
	}
}

func (e *ends) add(x runtime.Exit, network bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended[x.Name] = x; network && e.first == nil {
		e.first = x.Err
	}
	close(e.news)
	e.news = make(chan struct{})
}

// causeTime is from a broken connection to the news of its cause. Ours: the loss of a machine takes
// 3 s to be noticed, and its connections may end before that.
const causeTime = 4 * time.Second

// explain replaces err, with which a connection ended, by its cause, for which it waits: how the
// process of the host ended, or with nil what the network needs.
func (e *ends) explain(host *runtime.Proc, err error) error {
	late := time.After(causeTime)
	for {
		e.mu.Lock()
		why, news := e.first, e.news
		if host != nil {
			if x := e.ended[host.Name]; x.PID == host.PID && x.FarPID == host.FarPID {
				why = x.Err
			}
		}
		e.mu.Unlock()
		if why != nil {
			return why
		}
		select {
		case <-news:
		case <-late:
			return err
		}
	}
}
