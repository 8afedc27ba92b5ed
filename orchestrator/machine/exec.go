package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync"
	oscillator "weft/clocksync/clock"
	"weft/clocksync/labtime"
	"weft/internal/cleanup"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/internal/terminal"
	"weft/nodeimg/agent"
	"weft/nodeimg/labclock"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// execution asks for a program in a node. Its input follows, and answers are its output and at last
// how it ended.
type execution struct {
	Run   string
	Node  int
	Args  []string
	Env   []string
	Dir   string
	Whole bool
	Shown string
	Stdin bool               // input follows
	TTY   *terminal.Size     // it has a terminal of this size; nil: none
	Clock bool               // it reads lab time,
	Model *oscillator.Config // with these errors; nil: with none
	Files map[string][]byte  // that it sees in runtime.Command.Lab; nil: it sees no such folder
	Watch *runtime.Watch
}

// Kinds of message on the connection of a program.
const (
	kindInput  = "input"  // []byte; none: its input has ended
	kindOutput = "output" // []byte, of standard output, or of its terminal
	kindErrors = "errors" // []byte, of standard error
	kindSize   = "size"   // terminal.Size: its terminal has another size
	kindStop   = "stop"   // nothing: end the program
	kindEnded  = "ended"  // ended
)

// ended is how a program ended.
type ended struct {
	Status *runtime.StatusError
	Node   *runtime.ExitError // how its node ended, if that is why
	Error  string             // why it could not be run
	Watch  *runtime.Watch
}

// maxFiles limits the files that are sent to a program, in bytes. Ours.
const maxFiles = 16 << 20

// Exec implements runtime.Cluster.
func (c *cluster) Exec(ctx context.Context, node string, command runtime.Command) error {
	i := 0
	for i < c.Nodes() && c.Node(i).Name != node {
		i++
	}
	switch {
	case i == c.Nodes():
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	case command.Image != "":
		return fmt.Errorf("%s is on another machine, where programs of images do not run", node)
	}
	e := execution{
		Run: c.run, Node: i, Args: command.Args, Env: command.Env, Dir: command.Dir, Whole: command.Whole,
		Shown: command.Shown, Stdin: command.Stdin != nil, Clock: command.Clock != nil, Model: command.Model,
		Watch: command.Watch,
	}
	var err error
	if e.Files, err = filesOf(command.Lab); err != nil {
		return err
	}
	var tty *os.File // its other side is with the user; the program's terminal is on its machine
	var size terminal.Size
	if command.TTY {
		var ok bool
		if tty, ok = command.Stdin.(*os.File); !ok {
			return fmt.Errorf("%s: standard input is no terminal", node)
		}
		restore, err := terminal.Raw(tty)
		if err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		defer restore()
		size = terminal.SizeOf(tty)
		e.TTY = &size
	}
	conn, err := dial(ctx, c.addr, c.config, kindExec, e)
	if err != nil {
		return c.cutOff(ctx, i, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() {
		_ = conn.SendValue(kindStop, nil)
		time.AfterFunc(silence, func() { conn.Close() })
	})()
	done := make(chan struct{})
	defer close(done)
	go regularly(ctx, func() error {
		if tty != nil {
			if now := terminal.SizeOf(tty); now != size && now != (terminal.Size{}) {
				size = now
				return conn.SendValue(kindSize, size)
			}
		}
		return conn.SendValue(kindHere, nil)
	})
	in := newOutlet(conn, kindInput)
	defer in.end()
	if e.Stdin {
		go sendInput(in, command.Stdin, done)
	}
	failed := make(chan error, 2)
	to := map[string]*inlet{}
	for kind, w := range map[string]io.Writer{kindOutput: command.Stdout, kindErrors: command.Stderr} {
		to[kind] = newInlet(conn, kind, w, func(err error) {
			failed <- err
			conn.Close()
		})
	}
	var end ended
	err = receive(conn, kindEnded, &end, map[string]func(control.Message) error{
		kindOutput: to[kindOutput].take, kindErrors: to[kindErrors].take, kindTook: outlets{in}.take,
	})
	for _, i := range to {
		i.end()
		select {
		case <-i.done:
		case <-ctx.Done():
			select {
			case <-i.done:
			case <-time.After(silence): // nobody reads what it printed
			}
		}
	}
	select {
	case err := <-failed:
		return cmp.Or(ctx.Err(), err)
	default:
	}
	var refused *control.RemoteError
	switch {
	case errors.As(err, &refused) && refused.Text != errEnded.Error():
		return fmt.Errorf("%s: %w", node, err)
	case err != nil:
		return c.cutOff(ctx, i, err)
	}
	return cmp.Or(end.watched(command.Watch, node), end.err(node))
}

// watched copies what the machine has measured of a program, and refuses what no machine measures.
func (e *ended) watched(w *runtime.Watch, node string) error {
	if w == nil || e.Watch == nil {
		return nil
	}
	*w = *e.Watch
	if err := w.Check(); err != nil {
		*w = runtime.Watch{}
		return fmt.Errorf("%s: %w", node, err)
	}
	return nil
}

// cutOff returns why the connection of a program in a node failed: its machine is lost, as the
// session says soon, or out of reach.
func (c *cluster) cutOff(ctx context.Context, node int, err error) error {
	p := c.Node(node)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return c.gone(p, c.lost).err()
	case <-time.After(silence + beat):
		return fmt.Errorf("%s: %w: %s: %w", p.Name, runtime.ErrUnreachable, c.name, err)
	}
}

// err returns how a program ended as Exec does.
func (e *ended) err(node string) error {
	switch {
	case e.Status != nil && (e.Status.Code < 1 || e.Status.Code > 255):
		return fmt.Errorf("%s: its agent says that the program ended with %d", node, e.Status.Code)
	case e.Status != nil:
		e.Status.Text, e.Status.Signal = clip.Line(e.Status.Text), clip.Line(e.Status.Signal)
		return fmt.Errorf("%s: %w", node, e.Status)
	case e.Node != nil:
		return (&exit{Name: e.Node.Name, State: e.Node.State, Stderr: e.Node.Stderr}).err()
	case e.Error != "":
		return errors.New(clip.Lines(e.Error))
	}
	return nil
}

// filesOf returns the files in a folder; nil: there is no folder.
func filesOf(folder string) (map[string][]byte, error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	all, size := map[string][]byte{}, 0
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxFiles {
			return nil, fmt.Errorf("the files of a program have more than %d MiB, too many to send to other machines",
				maxFiles>>20)
		}
		all[e.Name()] = text
	}
	return all, nil
}

// sendInput sends the input of a program until that has ended. It does not read what a program that
// has ended cannot take: others may read the same.
func sendInput(to *outlet, in io.Reader, done <-chan struct{}) {
	const lookTime = 100 // milliseconds
	b := make([]byte, 32<<10)
	for {
		if f, ok := in.(*os.File); ok {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, lookTime)
			select {
			case <-done:
				return
			default:
			}
			if n == 0 || errors.Is(err, unix.EINTR) {
				continue
			}
		}
		n, err := in.Read(b)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = to.conn.SendValue(kindInput, nil)
			return
		}
	}
}

// exec runs a program until it ends, or the connection does.
func (a *Agent) exec(ctx context.Context, conn *link, e execution) error {
	p, err := a.find(e.Run)
	if err != nil {
		return err
	}
	select {
	case <-p.up:
	default:
		return errors.New("the processes of this run are not up")
	}
	if e.Node < 0 || e.Node >= len(p.nodes) {
		return fmt.Errorf("node %d of %d", e.Node, len(p.nodes))
	}
	life := ctx // of the agent
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		heartbeats(ctx, conn)
	}()
	command := runtime.Command{Args: e.Args, Env: e.Env, Dir: e.Dir, Whole: e.Whole, Shown: e.Shown, Watch: e.Watch}
	if e.Clock {
		if command.Clock, err = p.clock(e.Node, e.Model); err != nil {
			return err
		}
	}
	if e.Files != nil {
		if command.Lab, err = placeFiles(e.Files); err != nil {
			return err
		}
		defer os.RemoveAll(command.Lab)
	}
	streams, err := newStreams(conn, &command, e.TTY)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		streams.feed(conn, e.Stdin, cancel)
	}()
	err = emulate.Exec(ctx, p.cluster, e.Node, command)
	streams.close()
	if life.Err() != nil { // as if the machine were lost: how the program ended says nothing
		return conn.Close()
	}
	end := ended{Watch: command.Watch}
	switch {
	case errors.As(err, &end.Status):
	case errors.As(err, &end.Node):
	case err != nil:
		end.Error = err.Error()
	}
	err = conn.SendValue(kindEnded, end)
	<-gone // a connection that is closed with unread messages may lose what was sent
	return cleanup.Join(err, conn.Close())
}

// clock returns what the clocks of programs in a node show.
func (p *part) clock(node int, model *oscillator.Config) (*labclock.Page, error) {
	p.mu.Lock()
	clocks := p.clocks
	p.mu.Unlock()
	if clocks == nil {
		return nil, errors.New("lab time has not begun")
	}
	if model != nil {
		clocks.Model(node, *model)
	}
	return clocks.Page(p.cluster.Node(node).Name, node)
}

// follow has the clocks of programs follow the messages to the fabric process.
func (p *part) follow(m control.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Kind {
	case realtime.KindConfigure:
		var c realtime.Config
		err := m.Decode(&c)
		p.dilation = c.Dilation
		return err
	case realtime.KindStart:
		var s realtime.Start
		err := m.Decode(&s)
		p.clocks = emulate.NewClocks(labtime.Scale{T0: s.T0, Dilation: p.dilation})
		return err
	case labtime.KindScale:
		var s labtime.Scale
		err := m.Decode(&s)
		if err == nil && p.clocks != nil {
			p.clocks.Steer(s)
		}
		return err
	}
	return nil
}

// correct has the clock of a node's programs follow the synchronization of its host.
func (p *part) correct(node int, m control.Message) error {
	if m.Kind != agent.KindCorrection {
		return nil
	}
	var c clocksync.Correction
	if err := m.Decode(&c); err != nil {
		return err
	}
	p.mu.Lock()
	clocks := p.clocks
	p.mu.Unlock()
	if clocks == nil {
		return nil
	}
	return clocks.Correct(node, c)
}

// streams are this machine's ends of a program's input and output.
type streams struct {
	in    *os.File         // written; nil: the program has no input
	out   [2]*os.File      // read; a terminal is in as well, and there is no second
	ours  []*os.File       // the program's ends
	to    outlets          // of out
	ended [2]chan struct{} // closed when all of out has been sent
}

// newStreams makes streams for a command, and begins to send its output. tty is the size of its
// terminal; nil: it has none.
func newStreams(conn *link, command *runtime.Command, tty *terminal.Size) (s *streams, err error) {
	s = &streams{}
	if tty != nil {
		controller, user, err := terminal.Open()
		if err != nil {
			return nil, err
		}
		terminal.Resize(controller, *tty)
		s.in, s.out[0], s.ours = controller, controller, []*os.File{user}
		command.TTY, command.Stdin, command.Stdout, command.Stderr = true, user, user, user
	} else if err := s.pipes(command); err != nil {
		s.close()
		return nil, err
	}
	for i, kind := range []string{kindOutput, kindErrors} {
		to := newOutlet(conn, kind)
		s.to = append(s.to, to)
		s.ended[i] = make(chan struct{})
		go func() {
			defer close(s.ended[i])
			if s.out[i] != nil {
				send(to, s.out[i])
			}
		}()
	}
	return s, nil
}

// pipes makes a pipe for each stream of a command.
func (s *streams) pipes(command *runtime.Command) error {
	in, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	s.in, s.ours = inW, append(s.ours, in)
	var to [2]*os.File
	for i := range to {
		if s.out[i], to[i], err = os.Pipe(); err != nil {
			return err
		}
		s.ours = append(s.ours, to[i])
	}
	command.Stdin, command.Stdout, command.Stderr = in, to[0], to[1]
	return nil
}

// pipeSize is what a pipe holds, in bytes (pipe(7)).
const pipeSize = 64 << 10

// send sends what a file has until its end or its deadline, and then what is left in it. The other
// end may be gone.
func send(to *outlet, from *os.File) {
	_, err := io.Copy(to, from)
	raw, failed := from.SyscallConn()
	if failed != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	_ = from.SetReadDeadline(time.Time{})
	b, n := make([]byte, pipeSize), 0
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = unix.Read(int(fd), b)
		return true
	})
	if n > 0 {
		_, _ = to.Write(b[:n])
	}
}

// feed writes what comes into the program's input, until the connection ends. It calls stop then,
// and when the program is to end.
func (s *streams) feed(conn *link, input bool, stop func()) {
	tty := s.in == s.out[0]
	end := func() {
		if tty {
			s.in.Close() // hangs up, which ends what runs on the terminal
		}
		stop()
	}
	defer end()
	defer s.to.end()
	if !input {
		s.in.Close()
	}
	in := newInlet(conn, kindInput, s.in, nil) // the program need not read it
	defer in.end()
	_ = receive(conn, "", nil, map[string]func(control.Message) error{
		kindTook: s.to.take,
		kindStop: func(control.Message) error {
			end()
			return nil
		},
		kindSize: func(m control.Message) error {
			var size terminal.Size
			err := m.Decode(&size)
			if err == nil && tty {
				terminal.Resize(s.in, size)
			}
			return err
		},
		kindInput: func(m control.Message) error {
			if len(m.Body) > 0 {
				return in.take(m)
			}
			in.end()
			if !tty {
				go func() {
					<-in.done
					s.in.Close()
				}()
			}
			return nil
		},
	})
}

// drainTime is for the output that a program left in its pipes. What it left behind may hold them
// open for ever. Ours.
const drainTime = 200 * time.Millisecond

// close sends what the program has written, and closes all.
func (s *streams) close() {
	if s.in != s.out[0] {
		s.in.Close()
	}
	for _, f := range s.ours {
		f.Close()
	}
	for i, f := range s.out {
		if f == nil {
			continue
		}
		_ = f.SetReadDeadline(time.Now().Add(drainTime))
		if s.ended[i] != nil {
			<-s.ended[i]
		}
		f.Close()
	}
}
