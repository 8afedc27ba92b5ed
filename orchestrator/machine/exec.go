package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync"
	oscillator "weft/clocksync/clock"
	"weft/clocksync/labtime"
	"weft/internal/cleanup"
	"weft/internal/control"
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
	Clock bool               // it reads lab time,
	Model *oscillator.Config // with these errors; nil: with none
	Files map[string][]byte  // that it sees in runtime.Command.Lab; nil: it sees no such folder
	Watch *runtime.Watch
}

// Kinds of message on the connection of a program.
const (
	kindInput  = "input"  // []byte; none: its input has ended
	kindOutput = "output" // []byte, of standard output
	kindErrors = "errors" // []byte, of standard error
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
	i := slices.IndexFunc(c.nodes, func(p *runtime.Proc) bool { return p.Name == node })
	switch {
	case i < 0:
		return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
	case command.TTY:
		return fmt.Errorf("%s is on another machine, where programs have no terminal; redirect their input, as in "+
			"</dev/null", node)
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
	conn, err := dial(ctx, c.addr, c.config, kindExec, e)
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() {
		_ = conn.SendValue(kindStop, nil)
		time.AfterFunc(silence, func() { conn.Close() })
	})()
	done := make(chan struct{})
	defer close(done)
	go regularly(ctx, func() error { return conn.SendValue(kindHere, nil) })
	if e.Stdin {
		go sendInput(conn, command.Stdin, done)
	}
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		if err != nil {
			return cmp.Or(ctx.Err(), fmt.Errorf("%s: its agent does not answer: %w", node, silent(err)))
		}
		switch m.Kind {
		case kindHere:
		case kindOutput:
			err = write(command.Stdout, m)
		case kindErrors:
			err = write(command.Stderr, m)
		case kindEnded:
			var end ended
			if err := m.Decode(&end); err != nil {
				return err
			}
			if command.Watch != nil && end.Watch != nil {
				*command.Watch = *end.Watch
			}
			return end.err(node)
		default:
			err = m.Is(kindEnded, nil)
		}
		if err != nil {
			return err
		}
	}
}

// err returns how a program ended as Exec does.
func (e *ended) err(node string) error {
	switch {
	case e.Status != nil:
		return fmt.Errorf("%s: %w", node, e.Status)
	case e.Node != nil:
		return e.Node
	case e.Error != "":
		return errors.New(e.Error)
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

// write writes the bytes of a message; a nil w discards them.
func write(w io.Writer, m control.Message) error {
	var b []byte
	err := m.Decode(&b)
	if err == nil && w != nil {
		_, err = w.Write(b)
	}
	return err
}

// send sends what it is given in messages of a kind. It implements io.Writer.
type send struct {
	conn *link
	kind string
}

func (s send) Write(b []byte) (int, error) { return len(b), s.conn.SendValue(s.kind, b) }

// sendInput sends the input of a program until that has ended. It does not read what a program that
// has ended cannot take: others may read the same.
func sendInput(conn *link, in io.Reader, done <-chan struct{}) {
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
		if n > 0 && conn.SendValue(kindInput, b[:n]) != nil {
			return
		}
		if err != nil {
			_ = conn.SendValue(kindInput, nil)
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
	streams, err := newStreams(conn, &command)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		streams.feed(conn, e.Stdin)
	}()
	err = emulate.Exec(ctx, p.cluster, e.Node, command)
	streams.close()
	end := ended{Watch: command.Watch}
	switch {
	case errors.As(err, &end.Status):
	case errors.As(err, &end.Node):
	case err != nil:
		end.Error = err.Error()
	}
	err = conn.SendValue(kindEnded, end)
	return cleanup.Join(err, conn.Close())
}

// placeFiles writes files into a new folder that every user may read.
func placeFiles(files map[string][]byte) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "weft-files-"); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(folder) // names are another machine's
	if err == nil {
		err = cleanup.Join(writeAll(root, files), root.Close())
	}
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		return "", cleanup.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

func writeAll(root *os.Root, files map[string][]byte) error {
	for name, text := range files {
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = cleanup.Join(err, f.Chmod(0o755), f.Close()); err != nil { // whatever the umask
			return err
		}
	}
	return nil
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
	case realtime.KindScale:
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
	out   [2]*os.File      // read
	ours  []*os.File       // the program's ends
	ended [2]chan struct{} // closed when all of out has been sent
}

// newStreams makes streams for a command, and begins to send its output.
func newStreams(conn *link, command *runtime.Command) (*streams, error) {
	s := &streams{}
	in, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.in, s.ours = inW, append(s.ours, in)
	var to [2]*os.File
	for i := range to {
		if s.out[i], to[i], err = os.Pipe(); err != nil {
			s.close()
			return nil, err
		}
		s.ours = append(s.ours, to[i])
	}
	command.Stdin, command.Stdout, command.Stderr = in, to[0], to[1]
	for i, kind := range []string{kindOutput, kindErrors} {
		s.ended[i] = make(chan struct{})
		go func() {
			defer close(s.ended[i])
			_, _ = io.Copy(send{conn, kind}, s.out[i]) // the other end may be gone
		}()
	}
	return s, nil
}

// feed writes what comes into the program's input, until the connection ends or the program is to
// end.
func (s *streams) feed(conn *link, input bool) {
	if !input {
		s.in.Close()
	}
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		switch {
		case err != nil || m.Kind == kindStop:
			return
		case m.Kind == kindInput && len(m.Body) == 0:
			s.in.Close()
		case m.Kind == kindInput:
			_ = write(s.in, m) // the program need not read it
		}
	}
}

// drainTime is for the output that a program left in its pipes. What it left behind may hold them
// open for ever. Ours.
const drainTime = 200 * time.Millisecond

// close sends what the program has written, and closes all.
func (s *streams) close() {
	s.in.Close()
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
