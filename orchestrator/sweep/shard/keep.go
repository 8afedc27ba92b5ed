package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	nodes "weft/orchestrator/runtime"
	"weft/orchestrator/sweep"
)

// ExitMachine is the exit code of a shard's process whose machine cannot run points: that of
// sysexits.h for a failure that may pass. The task ends, so that the engine chooses another
// machine.
const ExitMachine = 75

// endTime is how long a process that was asked to end may take. Our own choice.
const endTime = 20 * time.Second

// KeepOptions are the settings of Keep.
type KeepOptions struct {
	Self         string // path of the weft binary
	Shard, Round int
	Workers      int
	Stderr       io.Writer
}

// Keep runs a shard in a process of its own, and starts it again if it is killed, so that a point
// that takes more memory than there is costs a process and not the task. The error is ErrOver if
// the sweep is over.
func Keep(ctx context.Context, b Backend, o KeepOptions) error {
	var keep sweep.Keep
	for {
		said, err := start(ctx, b, o)
		var exit *exec.ExitError
		switch {
		case b.Over():
			return ErrOver
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &exit) || exit.ExitCode() == ExitMachine:
			return fmt.Errorf("shard %d cannot run on this machine: %w: %s", o.Shard, err, said)
		}
		settled, failed := b.SettledIn(ctx, o.Shard)
		if failed != nil {
			return errors.Join(err, failed)
		}
		if !keep.Again(settled) {
			return fmt.Errorf("shard %d ended %d times without finishing a point: %w", o.Shard, sweep.MaxTries+1, err)
		}
	}
}

// start runs the process of a shard to its end, and returns its last line. It ends with this
// process.
func start(ctx context.Context, b Backend, o KeepOptions) (said string, err error) {
	// The kernel sends Pdeathsig when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	args := append([]string{"sweep", "shard"}, b.Arguments()...)
	cmd := exec.CommandContext(ctx, o.Self, append(args, "--points", "--shard", strconv.Itoa(o.Shard),
		"--round", strconv.Itoa(o.Round), "--workers", strconv.Itoa(o.Workers))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	tail := nodes.NewTail("shard", nil)
	cmd.Stderr = io.MultiWriter(o.Stderr, tail)
	cmd.Stdout = cmd.Stderr
	cmd.Env = os.Environ()
	if err = cmd.Run(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded; what it started has its standard error
	}
	all := tail.String()
	return strings.TrimPrefix(all[strings.LastIndexByte(all, '\n')+1:], "weft: "), err
}
