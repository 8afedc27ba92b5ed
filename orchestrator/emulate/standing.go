package emulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/units"
)

// Standing is a lab that stands: its network carries whatever programs in its nodes send, and it has no workload. Its
// methods may be called from several goroutines.
type Standing struct {
	cluster runtime.Cluster
	carrier *carrier
	scale   labtime.Scale
	broken  chan struct{} // closed when what carries packets is no more
	why     error         // from then on
	gone    chan int      // hosts whose end of the cable is gone

	programs []Program
	out      *runtime.Lines            // of programs; nil: nobody listens
	ended    func(host int, err error) // told of the end of a program; may be nil
	life     context.Context           // of programs
	end      context.CancelFunc        // of life
	running  sync.WaitGroup            // programs

	asking  sync.Mutex // one request at a time
	answers chan control.Message
}

// answerTime is how long the fabric process may take for an answer, in real time. Ours: it answers within one turn of
// its loop.
const answerTime = 5 * time.Second

// Stand launches the processes of a lab and has its network begin. The plans of x are not carried out.
func Stand(ctx context.Context, x Experiment) (*Standing, error) {
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	x.SampleQueues = 0 // nobody would look at the samples
	setup, err := x.ToStand()
	if err != nil {
		return nil, err
	}
	cluster, err := launch(ctx, x.Processes.launch(), setup.Spec)
	if err != nil {
		return nil, err
	}
	carrier, err := x.carrier(cluster, setup.Network)
	if err != nil {
		return nil, cleanup.Join(err, cluster.Close())
	}
	s := &Standing{
		cluster: cluster, carrier: carrier,
		broken: make(chan struct{}), gone: make(chan int, x.Fabric.Hosts), answers: make(chan control.Message, 1),
		programs: x.Programs, ended: x.Ended,
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.out = runtime.NewLines(x.Processes.Stderr)
	if err := s.begin(ctx, &x); err != nil {
		s.end()
		carrier.close()
		return nil, cleanup.Join(err, cluster.Close())
	}
	s.beside(allHosts)
	return s, nil
}

// begin configures the fabric process and starts lab time.
func (s *Standing) begin(ctx context.Context, x *Experiment) error {
	conn := s.carrier.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	err := conn.SendValue(realtime.KindConfigure, x.fabricConfig())
	if err == nil {
		err = x.ready(conn)
	}
	s.scale.Dilation = x.Dilation
	s.scale.T0 = clock.Monotonic() + int64(startDelay)
	if err == nil {
		err = conn.SendValue(realtime.KindStart, realtime.Start{T0: s.scale.T0})
	}
	if !stop() {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.carrier.name, err)
	}
	go s.listen(conn)
	select { // what is sent before lab time begins is not carried
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(s.scale.T0 - clock.Monotonic())):
		return nil
	}
}

// listen takes what the fabric process says until its connection ends.
func (s *Standing) listen(conn *control.Conn) {
	defer close(s.broken)
	for {
		m, _, err := conn.Recv()
		if err != nil {
			s.why = fmt.Errorf("%s is gone: %w", s.carrier.who, err)
			return
		}
		switch m.Kind {
		case realtime.KindAlive, realtime.KindSamples, realtime.KindSteps:
		case realtime.KindGone:
			var g realtime.Gone
			if err := m.Decode(&g); err == nil {
				select {
				case s.gone <- g.Host:
				default: // nobody listens
				}
			}
		case control.KindError:
			var text string
			if err := m.Decode(&text); err != nil {
				text = err.Error()
			}
			s.why = fmt.Errorf("%s failed: %w", s.carrier.who, &control.RemoteError{Text: text})
			return
		default:
			select {
			case s.answers <- m:
			default: // nobody waits for it any more
			}
		}
	}
}

// ask has the fabric process do something and waits for its answer.
func (s *Standing) ask(kind string, body any, answer string, into any, fds ...int) error {
	return s.askFor(answerTime, kind, body, answer, into, fds...)
}

// askFor is ask for what takes its time.
func (s *Standing) askFor(limit time.Duration, kind string, body any, answer string, into any, fds ...int) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	select {
	case <-s.answers: // came too late for whoever asked
	default:
	}
	if err := s.carrier.conn.SendValue(kind, body, fds...); err != nil {
		return fmt.Errorf("%s: %w", s.carrier.name, err)
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case m := <-s.answers:
		if m.Kind != answer {
			return fmt.Errorf("%s answered %q", s.carrier.name, m.Kind)
		}
		return m.Decode(into)
	case <-s.broken:
		return s.why
	case <-timeout.C:
		return fmt.Errorf("%s does not answer: is it stopped?", s.carrier.name)
	}
}

// do is ask where all there is to know is whether it was done.
func (s *Standing) do(kind string, body any, fds ...int) error {
	var did realtime.Did
	if err := s.ask(kind, body, realtime.KindDid, &did, fds...); err != nil {
		return err
	}
	if did.Error != "" {
		return errors.New(did.Error)
	}
	return nil
}

// Cluster is the lab's processes.
func (s *Standing) Cluster() runtime.Cluster { return s.cluster }

// Memory says in words what memory the nodes may use.
func (s *Standing) Memory() string { return s.cluster.Bound() }

// Notes are what the machine did not grant to the processes, in words.
func (s *Standing) Notes() []string { return bootNotes(s.cluster, s.carrier) }

// Now is the present lab time.
func (s *Standing) Now() units.Time { return max(0, s.scale.Lab(clock.Monotonic())) }

// Gone tells of each host whose interface is gone, be it that its node has ended or that a program in it has deleted it.
func (s *Standing) Gone() <-chan int { return s.gone }

// Broken is closed when the network has ended by itself; Why then says why.
func (s *Standing) Broken() <-chan struct{} { return s.broken }

// Why is why the network has ended. It may be called once Broken is closed.
func (s *Standing) Why() error { return s.why }

// Change changes the network at once, whatever the instant in c.
func (s *Standing) Change(c fabric.Change) error { return s.do(realtime.KindChange, c) }

// Look returns what the network is like.
func (s *Standing) Look() (*realtime.State, error) {
	state := new(realtime.State)
	if err := s.ask(realtime.KindLook, nil, realtime.KindState, state); err != nil {
		return nil, err
	}
	return state, nil
}

// measureTime is how long the measurement of one direction may take, in real time. Ours: some seconds for each try.
const measureTime = 5 * time.Minute

// Measure finds out by probes what a direction of a link is like, where the machine's kernel carries packets.
func (s *Standing) Measure(port int) (found realtime.Found, err error) {
	err = s.askFor(measureTime, realtime.KindMeasure, realtime.Measure{Port: port}, realtime.KindFound, &found)
	return found, err
}

// Capture has copies of frames sent to a socket, until its other end is closed. The descriptor stays the caller's.
func (s *Standing) Capture(c realtime.Capture, socket int) error {
	return s.do(realtime.KindCapture, c, socket)
}

// ErrNoRestart is returned for clusters whose nodes cannot be ended and started again.
var ErrNoRestart = errors.New("the runtime of this lab cannot end or restart a node")

func (s *Standing) restarter() (runtime.Restarter, error) {
	r, ok := s.cluster.(runtime.Restarter)
	if !ok {
		return nil, ErrNoRestart
	}
	return r, nil
}

// Kill ends a node, with all that runs in it. Its kernel would answer for some milliseconds yet, while the network
// namespace is taken down; the network hears it no more.
func (s *Standing) Kill(host int) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	if err := s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: true}); err != nil {
		return err
	}
	return r.Kill(host)
}

// Freeze stops a node, or lets it go on: its processes, and what its kernel would send and answer by itself.
func (s *Standing) Freeze(host int, frozen bool) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	halt := func() error { return s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: frozen}) }
	if frozen { // first the network, so that nobody sees a node that is half stopped
		if err := halt(); err != nil {
			return err
		}
		return r.Freeze(host, true)
	}
	if err := r.Freeze(host, false); err != nil {
		return err
	}
	return halt()
}

// Restart starts a node again that has ended.
func (s *Standing) Restart(ctx context.Context, host int) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	link, err := r.Restart(ctx, host)
	if err != nil {
		return err
	}
	var fds []int
	if link.Kind != boot.Wired {
		defer unix.Close(link.FD)
		fds = []int{link.FD}
	}
	err = s.do(realtime.KindPlug, realtime.Plug{Host: host, Kind: portKind(link)}, fds...)
	if err != nil {
		return cleanup.Join(err, r.Kill(host))
	}
	if err := s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: false}); err != nil {
		return err
	}
	s.beside(host)
	return nil
}

// portKind is what the fabric calls a cable's end.
func portKind(l boot.Link) string {
	if l.Kind == boot.Packet {
		return realtime.PortPacket
	}
	return realtime.PortTAP
}

// Close ends every process of the lab and returns when all are gone.
func (s *Standing) Close() error {
	s.end()
	err := s.cluster.Close()
	s.carrier.close()
	s.running.Wait()
	<-s.broken
	return err
}
