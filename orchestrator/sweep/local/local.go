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
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// process is the process that keeps the shards of a sweep.
func process(d *shard.Dir) *shard.Process { return &shard.Process{Dir: d, Name: "local", Mode: 0o644} }

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
	started := func() bool {
		var st state
		return process(d).Read(&st) == nil && st.Round == r.Number
	}
	return process(d).Start(ctx, self, started, "sweep", "drive", path, "--round", strconv.Itoa(r.Number))
}

// state is local.json.
type state struct {
	Round int          `json:"round"`
	Tasks []sweep.Task `json:"tasks"`
}

// Tasks implements shard.Scheduler.
func (Scheduler) Tasks(_ context.Context, d *shard.Dir, r sweep.Round) ([]sweep.Task, error) {
	var s state
	runs, err := process(d).Look(&s)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.Round != r.Number {
		return nil, nil
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; !runs && (t.State == sweep.Running || t.State == sweep.Waiting) {
			t.State, t.Error = sweep.Failed, "the process that kept the shards was killed, or could not write to the "+
				"results; local.log beside its submission has what it said"
		}
	}
	return s.Tasks, err
}

// End implements shard.Scheduler. The sweep is over already, which the process sees.
func (Scheduler) End(ctx context.Context, d *shard.Dir, _ sweep.Round) error {
	return process(d).Remove(ctx)
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
	return process(v.d).Write(v.s)
}

// Drive keeps a process for each shard until all have ended. It is the process that Start starts.
func (s Scheduler) Drive(ctx context.Context, d *shard.Dir, round int) error {
	self, err := s.self()
	if err != nil {
		return err
	}
	ctx, end, err := process(d).Begin(ctx, round)
	if err != nil {
		return err
	}
	defer end(nil) // leaves the lock, once all shards have ended
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	host, _ := os.Hostname()
	v := &driver{d: d, s: state{Round: round, Tasks: make([]sweep.Task, d.Sub.Shards)}}
	for k := range v.s.Tasks {
		v.s.Tasks[k] = sweep.Task{Shard: k, State: sweep.Waiting, Host: host}
	}
	if err := v.set(0, func(*sweep.Task) {}); err != nil {
		return err
	}
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
					stop(shard.ErrOver)
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
		err = shard.Keep(ctx, v.d, shard.KeepOptions{Self: self, Shard: k, Round: v.s.Round, Workers: workers,
			Stderr: os.Stderr})
	}
	return errors.Join(err, v.set(k, func(t *sweep.Task) {
		t.State = sweep.Done
		if err != nil {
			t.State, t.Error = sweep.Failed, err.Error()
		}
	}))
}
