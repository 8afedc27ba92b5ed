package labclock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
)

// keeperVar is an environment variable that makes a process the keeper of a lab.
const keeperVar = "WEFT_TIMEKEEPER"

// processName is the keeper's name in ps and top, of at most 15 bytes.
const processName = "weft-timekeeper"

// kindAttach is the only kind of message to a keeper. It has three descriptors: the keeper's end of
// a program's socket, the Page of its node, and where to write what goes wrong.
const kindAttach = "attach"

// init becomes the keeper if this process is one. It is here because only init runs before
// everything else, in weft and in tests alike.
func init() {
	if _, ok := os.LookupEnv(keeperVar); !ok {
		return
	}
	os.Unsetenv(keeperVar)
	name := []byte(processName + "\x00")
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	code := 0
	if err := keepHere(); err != nil {
		fmt.Fprintf(os.Stderr, "weft: keeper of lab time: %v\n", err)
		code = 1
	}
	unix.Exit(code)
}

// keepHere runs the keeper on the connection that this process inherits, until its other end is
// closed.
func keepHere() error {
	conn, err := control.Open(control.FD)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := control.KeepDescriptors(); err != nil {
		return err
	}
	return keep(conn)
}

// A Keeper is the process that gives lab time to the programs of a lab. It is a process of its own
// since it waits for threads of programs with ptrace, and their parent for them with wait. It ends
// with its connection, and so with the process that started it. Programs that run then keep lab
// time, but can neither start others nor wait until an instant: the kernel fails what the filter
// reports. Whoever runs them ends them when Lost is closed.
type Keeper struct {
	conn   *control.Conn
	cmd    *exec.Cmd
	closed atomic.Bool   // Close was called
	lost   chan struct{} // closed when it has ended by itself
	ended  chan struct{} // closed when it has ended
	err    error         // how it ended; valid then
}

// Start starts a keeper. program is the path of this program, env its environment.
func Start(program string, env []string) (*Keeper, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	conn, theirs, err := control.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: program, Args: []string{processName},
		Env: append(env[:len(env):len(env)], keeperVar+"=1"), ExtraFiles: []*os.File{theirs}, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}} // Ctrl-C is for who started it
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("start the keeper of lab time: %w", err)
	}
	k := &Keeper{conn: conn, cmd: cmd, lost: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		k.err = cmd.Wait()
		if !k.closed.Load() {
			close(k.lost)
		}
		close(k.ended)
	}()
	return k, nil
}

// Ended returns a channel that is closed when the keeper has ended.
func (k *Keeper) Ended() <-chan struct{} { return k.ended }

// Lost returns a channel that is closed when the keeper ends before Close is called.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Closed reports whether Close was called: Lost is not closed then.
func (k *Keeper) Closed() bool { return k.closed.Load() }

// PID returns the ID of the keeper's process.
func (k *Keeper) PID() int { return k.cmd.Process.Pid }

// How returns how the keeper ended: "signal: killed". It must have ended.
func (k *Keeper) How() string { return k.cmd.ProcessState.String() }

// Attach makes the keeper ready for a program in a node with the given clocks, and returns the
// socket that the program gives to Install. errors receives a line for each program that could not
// be given lab time; nil: nobody does.
func (k *Keeper) Attach(page *Page, errors *os.File) (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lab time: %w", err)
	}
	defer unix.Close(fds[0])
	program := os.NewFile(uintptr(fds[1]), "lab time")
	if errors == nil {
		if errors, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			program.Close()
			return nil, err
		}
		defer errors.Close()
	}
	if err := k.conn.SendValue(kindAttach, nil, fds[0], int(page.file.Fd()), int(errors.Fd())); err != nil {
		program.Close()
		return nil, fmt.Errorf("the keeper of lab time has ended: %w", err)
	}
	return program, nil
}

// Close ends the keeper and waits for it.
func (k *Keeper) Close() error {
	k.closed.Store(true)
	late := time.AfterFunc(closeTime, func() { _ = k.cmd.Process.Kill() }) // an error means that it has ended
	defer late.Stop()
	err := k.conn.Close()
	<-k.ended
	return errors.Join(err, k.err)
}

// closeTime is how long a keeper may take to end before it is killed. Our own choice: it takes less
// than a millisecond, unless it is stopped.
const closeTime = time.Second
