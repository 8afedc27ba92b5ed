package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
)

// Process is a process of a sweep that runs apart from the terminal, on the machine of its
// submitter. A lock on a file shows that it runs, so nothing depends on process numbers.
type Process struct {
	Dir  *Dir
	Name string      // begins the names of its files in the folder of the submission
	Mode fs.FileMode // of the file with its state
}

const (
	startTime = 10 * time.Second // for a process to take its lock
	lockTime  = 8 * time.Second  // for the process of an earlier round, or a query, to leave the lock
	leaveTime = 30 * time.Second // for a process whose sweep is over to end
	lockPoll  = 50 * time.Millisecond
	roundPoll = time.Second // between two looks for a newer round
	maxState  = 16 << 20
)

// stateTemp ends the name of a state that is being written.
const stateTemp = ".json.new"

// at returns the path of a file of the process, which ends with a suffix.
func (p *Process) at(suffix string) string { return p.Dir.at(p.Name + suffix) }

// Start starts the program self with arguments, and returns when ready does.
func (p *Process) Start(ctx context.Context, self string, ready func() bool, args ...string) error {
	log, err := os.OpenFile(p.at(".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for over := time.Now().Add(startTime); time.Now().Before(over) && ctx.Err() == nil; {
		if ready() {
			return nil
		}
		select {
		case err := <-ended:
			if ready() {
				return nil
			}
			text, _ := os.ReadFile(log.Name()) // what it said last, if anything
			said := strings.Split(strings.TrimSpace(string(text)), "\n")
			return fmt.Errorf("the process of the %s ended at once (%w): %s", p.Name, err, said[len(said)-1])
		case <-time.After(lockPoll):
		}
	}
	return errors.Join(fmt.Errorf("the process of the %s did not start in %v; see %s", p.Name, startTime, log.Name()),
		cmd.Process.Kill(), ctx.Err())
}

// lock takes the lock of the process: unix.LOCK_EX to be it, or unix.LOCK_SH to see that there is
// none. ok is false if another process has it.
func (p *Process) lock(how int) (f *os.File, ok bool, err error) {
	flag := os.O_RDONLY // who looks may not be allowed to write
	if how == unix.LOCK_EX {
		flag = os.O_RDWR | os.O_CREATE
	}
	f, err = os.OpenFile(p.at(".lock"), flag, 0o644)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, f.Close()
	}
	return f, err == nil, err
}

// Look reports whether the process runs, and reads its state, which does not change meanwhile if it
// does not run.
func (p *Process) Look(state any) (runs bool, err error) {
	f, free, err := p.lock(unix.LOCK_SH)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, p.Read(state)
	case err != nil:
		return false, err
	case free:
		defer f.Close() //nolint:errcheck // releases the lock
	}
	return !free, p.Read(state)
}

// errLocked is the error of wait if another process keeps the lock.
var errLocked = errors.New("another process of this sweep keeps it")

// wait takes the lock within limit. Another process may have it for a moment: one that asks for the
// state, or that of a round that is over, whose submitter was killed before it had started.
func (p *Process) wait(ctx context.Context, limit time.Duration) (*os.File, error) {
	for over := time.Now().Add(limit); ; {
		f, ok, err := p.lock(unix.LOCK_EX)
		if ok || err != nil {
			return f, err
		}
		if time.Now().After(over) {
			return nil, errLocked
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// Begin makes the calling process the one of a round. Its context ends with ErrOver when the sweep
// has another round; end leaves the lock.
func (p *Process) Begin(ctx context.Context, round int) (_ context.Context, end context.CancelCauseFunc, err error) {
	f, err := p.wait(ctx, lockTime)
	if err != nil {
		return nil, nil, err
	}
	last, ok, err := p.Dir.Round()
	if err == nil && (!ok || last.Number != round) {
		err = fmt.Errorf("round %d is over", round)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(roundPoll):
			}
			if last, ok, err := p.Dir.Round(); err == nil && ok && last.Number != round {
				stop(ErrOver)
				return
			}
		}
	}()
	return ctx, func(cause error) {
		stop(cause)
		_ = f.Close() // only locked
	}, nil
}

// Remove waits until the process of a sweep that is over has ended, and removes its files.
func (p *Process) Remove(ctx context.Context) error {
	f, err := p.wait(ctx, leaveTime)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("the process of the %s has not ended in %v", p.Name, leaveTime)
	}
	if err != nil {
		return err
	}
	var all error
	for _, suffix := range []string{".lock", ".json", stateTemp, ".log"} {
		if err := os.Remove(p.at(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return errors.Join(all, f.Close())
}

// Write replaces the state of the process.
func (p *Process) Write(state any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	temp := p.at(stateTemp)
	if err = os.WriteFile(temp, text, p.Mode); err == nil {
		err = os.Rename(temp, p.at(".json"))
	}
	if err != nil {
		_ = os.Remove(temp) // the first error matters more
	}
	return err
}

// Read reads the state of the process.
func (p *Process) Read(state any) error {
	text, err := regular.Read(p.at(".json"), maxState)
	if err == nil {
		err = json.Unmarshal(text, state)
	}
	return err
}
