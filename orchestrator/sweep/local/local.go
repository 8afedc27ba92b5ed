// Package local runs the shards of a sweep as processes of this machine, which need no engine.
//
// The directory of a sweep and the number of a round go in; processes come out, and a file with the
// state of each shard, which Tasks reads.
//
// The one idea: Start starts one process, apart from the terminal, that keeps a process for each
// shard; as many run at once as there are processors. A lock on a file shows that it is there, so
// nothing depends on process numbers.
//
// These must hold. At most one process keeps the shards of a sweep, that of its last round. It ends
// when its shards have ended, the sweep is over or has another round, and its shards end with it,
// however it ends.
//
// Start reading at Start and Drive.
package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// Files in the folder of the submission.
const (
	lockFile  = "local.lock"
	stateFile = "local.json"
	logFile   = "local.log"
)

const (
	startTime = 10 * time.Second // for the process to take its lock
	lockTime  = 8 * time.Second  // for the process of an earlier round, or a query, to leave the lock
	endTime   = 30 * time.Second // for a cancelled process to end
	pollTime  = 50 * time.Millisecond
	roundPoll = time.Second // between two looks for a newer round
	maxState  = 16 << 20
)

// Scheduler runs shards on this machine. Self is the path of the weft binary; empty: this program.
type Scheduler struct{ Self string }

// Name implements shard.Scheduler.
func (Scheduler) Name() string { return "local" }

// Check implements shard.Scheduler.
func (Scheduler) Check(context.Context, string) error { return nil }

// Slots implements shard.Scheduler. An emulation has the machine to itself.
func (Scheduler) Slots(_ context.Context, kind string) (int, error) { return slots(kind), nil }

func slots(kind string) int {
	if kind != "sim" {
		return 1
	}
	return runtime.NumCPU()
}

func at(d *shard.Dir, name string) string { return filepath.Join(d.Path, shard.Folder, name) }

// self returns the path of the weft binary.
func (s Scheduler) self() (string, error) {
	if s.Self != "" {
		return s.Self, nil
	}
	return os.Executable()
}

// Start implements shard.Scheduler.
func (s Scheduler) Start(ctx context.Context, d *shard.Dir, r *sweep.Round) error {
	r.Handle = "process"
	self, err := s.self()
	if err != nil {
		return err
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(at(d, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	cmd := exec.Command(self, "sweep", "drive", path, "--round", strconv.Itoa(r.Number))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for over := time.Now().Add(startTime); time.Now().Before(over) && ctx.Err() == nil; {
		if st, err := read(d); err == nil && st.Round == r.Number {
			return nil
		}
		select {
		case err := <-ended:
			if st, rerr := read(d); rerr == nil && st.Round == r.Number {
				return nil
			}
			return fmt.Errorf("the process of the shards ended at once (%w); see %s", err, log.Name())
		case <-time.After(pollTime):
		}
	}
	return errors.Join(fmt.Errorf("the process of the shards did not start in %v; see %s", startTime, log.Name()),
		cmd.Process.Kill(), ctx.Err())
}

// state is local.json.
type state struct {
	Round int          `json:"round"`
	Tasks []sweep.Task `json:"tasks"`
}

func read(d *shard.Dir) (s state, err error) {
	text, err := regular.Read(at(d, stateFile), maxState)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// lock takes the lock of the process of the shards. ok is false if another process has it.
func lock(d *shard.Dir) (f *os.File, ok bool, err error) {
	f, err = os.OpenFile(at(d, lockFile), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, f.Close()
	}
	return f, err == nil, err
}

// Tasks implements shard.Scheduler.
func (Scheduler) Tasks(_ context.Context, d *shard.Dir, r sweep.Round) ([]sweep.Task, error) {
	f, free, err := lock(d)
	if err != nil {
		return nil, err
	}
	if free {
		defer f.Close() //nolint:errcheck // releases the lock
	}
	s, err := read(d)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.Round != r.Number {
		return nil, nil
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; free && (t.State == sweep.Running || t.State == sweep.Waiting) {
			t.State, t.Error = sweep.Failed, "the process that kept the shards was killed"
		}
	}
	return s.Tasks, err
}

// End implements shard.Scheduler. The sweep is over already, which the process sees.
func (Scheduler) End(ctx context.Context, d *shard.Dir, _ sweep.Round) error {
	f, err := waitForLock(ctx, d, endTime)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("the process of the shards has not ended in %v", endTime)
	}
	if err != nil {
		return err
	}
	var all error
	for _, name := range []string{lockFile, stateFile, logFile} {
		if err := os.Remove(at(d, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return errors.Join(all, f.Close())
}

// driver is the process that keeps the shards.
type driver struct {
	d  *shard.Dir
	mu sync.Mutex
	s  state
}

// set changes the task of a shard, and writes local.json.
func (v *driver) set(k int, change func(*sweep.Task)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.s.Tasks[k])
	text, err := json.Marshal(v.s)
	if err != nil {
		return err
	}
	temp := at(v.d, stateFile+".new")
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, at(v.d, stateFile))
}

// errLocked is the error of waitForLock if another process keeps the lock.
var errLocked = errors.New("another process keeps the shards of this sweep")

// waitForLock takes the lock within limit. Another process may have it for a moment: one that asks
// for the state, or that of a round that is over, whose submitter was killed before it had started.
func waitForLock(ctx context.Context, d *shard.Dir, limit time.Duration) (*os.File, error) {
	for over := time.Now().Add(limit); ; {
		f, ok, err := lock(d)
		if ok || err != nil {
			return f, err
		}
		if time.Now().After(over) {
			return nil, errLocked
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollTime):
		}
	}
}

// endWithRound calls end when the sweep has another round, whose process waits for the lock.
func endWithRound(ctx context.Context, d *shard.Dir, round int, end context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(roundPoll):
		}
		if last, ok, err := d.Round(); err == nil && ok && last.Number != round {
			end(shard.ErrOver)
			return
		}
	}
}

// Drive keeps a process for each shard until all have ended. It is the process that Start starts.
func (s Scheduler) Drive(ctx context.Context, d *shard.Dir, round int) error {
	self, err := s.self()
	if err != nil {
		return err
	}
	f, err := waitForLock(ctx, d, lockTime)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // releases the lock
	if last, ok, err := d.Round(); err != nil || !ok || last.Number != round {
		return cmp.Or(err, fmt.Errorf("round %d is over", round))
	}
	host, _ := os.Hostname()
	v := &driver{d: d, s: state{Round: round, Tasks: make([]sweep.Task, d.Sub.Shards)}}
	for k := range v.s.Tasks {
		v.s.Tasks[k] = sweep.Task{Shard: k, State: sweep.Waiting, Host: host}
	}
	if err := v.set(0, func(*sweep.Task) {}); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go endWithRound(ctx, d, round, end)
	n := min(slots(d.Sub.Kind), d.Sub.Shards)
	next := make(chan int)
	var workers sync.WaitGroup
	errs := make([]error, d.Sub.Shards)
	for range n {
		workers.Go(func() {
			for k := range next {
				errs[k] = v.keep(ctx, self, k, max(1, runtime.NumCPU()/n))
				if errors.Is(errs[k], shard.ErrOver) {
					errs[k] = nil
					end(shard.ErrOver)
				}
			}
		})
	}
	for k := range d.Sub.Shards {
		select {
		case next <- k:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}

// keep runs a shard to its end.
func (v *driver) keep(ctx context.Context, self string, k, workers int) error {
	err := v.set(k, func(t *sweep.Task) { t.State, t.Tries = sweep.Running, 1 })
	if err == nil {
		err = v.d.Keep(ctx, shard.KeepOptions{Self: self, Shard: k, Round: v.s.Round, Workers: workers,
			Stderr: os.Stderr})
	}
	return errors.Join(err, v.set(k, func(t *sweep.Task) {
		t.State = sweep.Done
		if err != nil {
			t.State, t.Error = sweep.Failed, err.Error()
		}
	}))
}
