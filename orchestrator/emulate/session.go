package emulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/clocksync/labtime"
	"weft/host"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/units"
)

// session is the processes of an experiment that are up: what carries its packets, and what drives
// its nodes. A run has one until its workload is done, a Deployment until somebody ends it, and the
// calibration one for several runs.
type session struct {
	cluster runtime.Cluster
	ends    *ends // of the cluster's processes
	crew    *crew

	// of the experiment that carry has set
	x       *Experiment
	carrier *carrier
	scale   labtime.Scale

	unfavoured string // why nodes have no real-time scheduling; empty: they have it, or need none
}

// fabricPeer stands for the carrier where a peer is the number of a node.
const fabricPeer = -1

// open launches the processes of an experiment, and hands its nodes to those that drive them.
func open(ctx context.Context, x *Experiment, setup *Setup) (*session, error) {
	cluster, err := x.launch(ctx, setup)
	if err != nil {
		return nil, err
	}
	s := &session{cluster: cluster, ends: endsOf(cluster)}
	if s.crew, err = lend(ctx, cluster); err != nil {
		return nil, cleanup.Join(s.ends.blame(ctx, err), cluster.Close())
	}
	if err := s.carry(x, setup.Network); err != nil {
		return nil, cleanup.Join(err, s.close())
	}
	return s, nil
}

// carry prepares the network of an experiment for which the cluster was launched. network is that
// of the setup.
func (s *session) carry(x *Experiment, network *kernelpath.Network) (err error) {
	s.x = x
	s.carrier, err = x.carrier(s.cluster, network)
	return err
}

// close ends all processes and returns when they are gone.
func (s *session) close() error {
	if s.carrier != nil {
		s.carrier.close()
	}
	s.crew.close()
	return s.cluster.Close()
}

// needs reports whether the network needs a process that has ended.
func (s *session) needs(e *runtime.Exit) bool {
	if e.Name == runtime.Fabric {
		return true
	}
	_, several := s.cluster.(*machines)
	return several && !strings.HasPrefix(e.Name, runtime.KeeperName) &&
		!slices.ContainsFunc(s.x.Plans, func(p host.Plan) bool { return p.Name == e.Name })
}

// configure sends the carrier its configuration, and then each node what nodes returns; nil: nodes
// need none. It returns when all are ready.
func (s *session) configure(ctx context.Context, nodes func(i int) agent.Config) error {
	group := new(errgroup.Group)
	hurry, cancel := context.WithCancel(ctx)
	defer cancel()
	// A process that does not answer must not hold up the end of the run.
	stop := context.AfterFunc(hurry, func() { s.readDeadline(time.Now()) })
	var silent atomic.Bool
	limit := realtime.ReadyTimes * patience()
	quiet := time.AfterFunc(limit, func() {
		silent.Store(true)
		cancel()
	})
	defer quiet.Stop()
	if s.x.Kernel != nil {
		quiet.Stop() // until links are measured
	}
	do := func(peer int, f func() error) func() error {
		return func() error {
			err := f()
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded) && silent.Load():
				err = fmt.Errorf("it does not answer: it is not ready %v after the others; is it stopped?", limit)
			case err != nil:
				cancel()
			default:
				quiet.Reset(limit)
			}
			return s.named(peer, err)
		}
	}
	nics, err := s.x.makeNICs(s.cluster.Agents())
	if err != nil {
		return err
	}
	defer nics.close()
	group.Go(do(fabricPeer, func() error { return s.configureCarrier(nics) }))
	module, ref, err := moduleFile(s.x.Module)
	if err != nil {
		return err
	}
	var fds []int
	if module != nil {
		defer module.Close()
		fds = append(fds, int(module.Fd()))
	}
	// it measures links, which needs a quiet machine, and chooses the dilation
	if s.x.Kernel != nil {
		err = group.Wait()
		group = new(errgroup.Group)
	}
	if err == nil {
		for i := 0; nodes != nil && i < s.cluster.Nodes(); i++ {
			config := nodes(i)
			config.Module = ref
			if nics != nil && nics.regions[i] != nil {
				config.NIC = &agent.NIC{Frame: nics.frame, Bell: nics.bell[i]}
			}
			all := slices.Concat(fds, nics.node(i))
			group.Go(do(i, func() error { return s.configureNode(i, &config, all...) }))
		}
		err = group.Wait()
	}
	stop()
	if err != nil {
		return s.ends.blame(ctx, err)
	}
	return nil
}

// configureCarrier configures what carries the packets, and starts the captures.
func (s *session) configureCarrier(nics *nics) error {
	c := s.x.fabricConfig()
	c.NICs = nics.config()
	err := s.carrier.conn.SendValue(realtime.KindConfigure, c)
	if err == nil {
		err = nics.send(s.carrier.conn)
	}
	if err == nil {
		err = s.x.ready(s.carrier.conn)
	}
	for i := 0; err == nil && i < len(s.x.Captures); i++ {
		err = s.capture(&s.x.Captures[i])
	}
	if control.Gone(err) {
		err = s.carrier.cause(err)
	}
	return err
}

// capture starts a capture before the network carries anything.
func (s *session) capture(c *Capture) error {
	var did realtime.Did
	err := s.carrier.conn.SendValue(realtime.KindCapture, c.Of, c.Socket)
	if err == nil {
		_, err = s.carrier.conn.Expect(realtime.KindDid, &did)
	}
	if err == nil && did.Error != "" {
		err = errors.New(did.Error)
	}
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}

// configureNode configures what drives a node and waits until it is ready.
func (s *session) configureNode(i int, config *agent.Config, fds ...int) error {
	err := s.crew.conns[i].SendValue(agent.KindConfigure, config, fds...)
	if err == nil {
		_, err = s.crew.conns[i].Expect(agent.KindReady, nil)
	}
	return err
}

// favour asks for real-time scheduling of what drives nodes. It runs for some ten microseconds at a
// time. Waiting for other programs to finish their milliseconds is most of its lateness.
func (s *session) favour() {
	for _, p := range drivers(s.cluster) {
		if err := favour(p); err != nil {
			s.unfavoured = fmt.Sprintf("no real-time scheduling, so other programs may delay nodes: %v; run as root, "+
				"or with CAP_SYS_NICE", err)
			return
		}
	}
}

// favour gives a process real-time scheduling, unless it is on another machine, whose agent asks
// for that.
func favour(p *runtime.Proc) error {
	if p.PID == 0 {
		return nil
	}
	return poller.Favour(p.PID)
}

func (s *session) readDeadline(t time.Time) {
	_ = s.carrier.conn.SetReadDeadline(t)
	s.crew.readDeadline(t)
}

// start begins lab time everywhere, in the carrier first; in nodes only if they are configured.
func (s *session) start(nodes bool) error {
	t0 := clock.Monotonic() + int64(s.x.startDelay())
	s.scale = labtime.Scale{T0: t0, Dilation: s.x.Dilation}
	if err := s.carrier.conn.SendValue(realtime.KindStart, realtime.Start{T0: t0}); err != nil {
		return s.named(fabricPeer, s.carrier.cause(err))
	}
	for i := 0; nodes && i < s.cluster.Nodes(); i++ {
		if err := s.startNode(i); err != nil {
			return s.named(i, err)
		}
	}
	return nil
}

func (s *session) startNode(i int) error {
	return s.crew.conns[i].SendValue(agent.KindStart, agent.Start{T0: s.scale.T0})
}

// labNow returns the present lab time; 0 before its start.
func (s *session) labNow() units.Time { return max(0, s.scale.Lab(clock.Monotonic())) }

// named adds the name of the process to err.
func (s *session) named(peer int, err error) error {
	if err == nil {
		return nil
	}
	who := s.name(peer)
	if m, ok := s.cluster.(*machines); ok && m.far && peer != fabricPeer {
		who += " on " + MachineName(m.hosts[peer].machine)
	}
	return fmt.Errorf("%s: %w", who, err)
}

func (s *session) name(peer int) string {
	if peer == fabricPeer {
		return s.carrier.name
	}
	return s.cluster.Node(peer).Name
}
