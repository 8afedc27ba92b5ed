// Command weft builds the network of an AI cluster from one YAML file, runs collectives over it
// with a chosen transport, emulated or simulated, and reports how far the numbers can be trusted.
//
// This package is the command line and nothing else. In go arguments, lab files and directories of
// runs; out come data on standard output, words on standard error, and an exit code:
//
//	0    all runs done, every expectation met
//	1    a run failed
//	2    the command line or a lab file is wrong; nothing ran
//	3    an expectation was missed, or a comparison found something worse
//	4    --strict, and the fidelity of a run is not good enough
//	130  interrupted; everything is torn down, partial results are kept
//
// weft exec is the exception: it returns the exit code of the program.
//
// The one idea: a command reads its flags, asks the package that knows (labfile for labs, run for
// runs, deploy for labs that stay up, report for comparisons), and prints what comes back. It
// decides nothing about networks. What fails returns an error, and app.report alone turns errors
// into messages and exit codes: a usageError is 2, errMissed 3, errFidelity 4, an exitCode itself.
//
// Invariants:
//
//   - Everything that can be wrong with arguments, labs and output files is checked before the
//     first run starts.
//   - With --json standard output has nothing but JSON, in the order of the runs.
//   - The same event is printed once: a failure is in the summary of its run, or in the last line.
//
// Start reading at app.root, the tree of commands, and app.run in run.go: package series makes the
// runs of labs, runprogress.go shows how far they are, and verdict is the exit code. Some command
// lines run in another process: in a user namespace (userns.go) or under User Mode Linux
// (kernel.go). weft is also the program of a lab's own processes: inside.go.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"weft/internal/control"
	"weft/orchestrator/cni"
	"weft/orchestrator/uml"
	"weft/transport/cc/wasm"
)

func main() {
	if code, played := uml.Role(os.Args); played {
		os.Exit(code)
	}
	// The parent process may have left descriptors open.
	if err := control.KeepDescriptors(); err != nil {
		fmt.Fprintf(os.Stderr, "weft: %v\n", err)
		os.Exit(exitFailed)
	}
	if dir, err := os.UserCacheDir(); err == nil {
		wasm.SetCache(filepath.Join(dir, "weft", "modules"))
	}
	if filepath.Base(os.Args[0]) == cni.Program {
		os.Exit(cni.Main())
	}
	ctx := untilSignal()
	wasm.SetContext(ctx)
	wasm.SetSlow(func(bytes int) {
		fmt.Fprintf(os.Stderr, "compiling a module of %.1f MB; its code is kept for the next time\n",
			float64(bytes)/1e6)
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// toldInterruption is true once weft has printed that it ends the runs, until they have ended.
var toldInterruption atomic.Bool

// entered is true while another process executes the command line in a user namespace. It gets the
// same signals, and says what it leaves.
var entered atomic.Bool

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP ends, so that everything
// is torn down. What the others do is in signals.receive.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 4)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		var all signals
		for s := range received {
			switch all.receive(time.Now(), s) {
			case endInOrder:
				cancel(fmt.Errorf("%v signal received", s))
			case endAtOnce:
				signal.Reset(s) // whoever waits for this process sees the signal
				end := func() { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }
				switch {
				case entered.Load():
					time.AfterFunc(time.Second, end) // if it does not end
					continue
				case toldInterruption.Load():
					time.AfterFunc(time.Second, end) // if nobody reads standard error
					fmt.Fprintln(os.Stderr,
						"weft: stopped at once, without a summary; `weft clean` removes what is left")
				}
				end()
			}
		}
	}()
	return ctx
}

// sameRequest is how long after the first signal others repeat its request. timeout(1) signals its
// child and then its own process group, which the child is in; make and other parents pass on what
// the terminal sends to all of them; service managers send several signals at once. A user who
// wants more reads what the first one did, and takes longer. Our choice.
const sameRequest = 500 * time.Millisecond

// signals decides what the signals to this process ask for.
type signals struct {
	first time.Time // arrival of the first; zero: none has arrived
}

// request is what a signal asks for.
type request int

const (
	endInOrder request = iota // tear everything down and keep what there is
	nothingNew                // it belongs to the first signal
	endAtOnce                 // do not wait for the end in order
)

// receive returns what a signal that arrives now asks for. All signals within sameRequest of the
// first are one request, of whatever kind. Later SIGINT and SIGTERM do not want to wait. SIGHUP
// never means that: a terminal that closes may send it to the session leader and to the foreground
// process group (setsid(2), termios(3)).
func (s *signals) receive(now time.Time, is os.Signal) request {
	switch {
	case s.first.IsZero():
		s.first = now
		return endInOrder
	case is == syscall.SIGHUP || now.Sub(s.first) < sameRequest:
		return nothingNew
	}
	return endAtOnce
}
