// Package together runs a program on several hosts at once, in a deployed lab or in a run.
//
// In goes a Job, and a function that runs one program in one host. Out come the lines that the
// programs print, and how each ended. The programs belong together: when one fails, the others are
// ended, since they would wait for it, and when the time is over, all are. A Job with a launcher of
// MPI (package launcher) starts that on the first host, and then what the launcher asks for.
//
// Two things hold. Run returns when no program of the job is left but daemons, and every ending
// records whether the program ended by itself.
//
// Start reading at Job.Run.
package together

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/launcher"
)

// A Job is a program to run on several hosts at once.
type Job struct {
	Hosts   []string // in the order of ranks
	Args    []string
	Env     []string       // NAME=VALUE
	Launch  *launcher.Kind // nil: programs learn nothing about each other
	Timeout time.Duration  // real time after which all are ended; 0: none

	// Line receives each line of output, without its end, from one goroutine at a time. It may keep
	// nothing of the line.
	Line func(rank int, errors bool, line []byte)
}

// Program is a program to run in one host.
type Program struct {
	Rank      int // index of the host
	Args, Env []string
}

// Exec runs a program in a host until it ends, or ends it with all that it started when ctx ends.
type Exec func(ctx context.Context, p Program, stdin, stdout, stderr *os.File) (Exit, error)

// Exit is how a program ended by itself, or with its host.
type Exit struct {
	Code   int    // 128 plus the signal's number if a signal ended it
	Signal string // its name, such as SIGKILL; "": none, or not known
	Text   string // "exit status 1"; "": see Code
	Ended  string // why its host has ended; "": it has not

	OutOfMemory bool // see runtime.StatusError

	Stood string // how much of the time the network stood, if it was too much for numbers
}

// Ending is how the program of a host ended.
type Ending struct {
	Host string
	Exit Exit
	Err  error  // the program could not be run
	Cut  string // why it was ended from outside; "": it ended by itself
	Late bool   // its time was over
	With string // the host whose program failed, if that is why; "": it is not
	Ran  bool   // it was started, or should have been

	Began, Over time.Time
}

// Failed reports whether the program did not end by itself with exit code 0.
func (e *Ending) Failed() bool { return e.Err != nil || e.Cut != "" || e.Exit.Code != 0 }

// How returns how the program ended, in words.
func (e *Ending) How() string {
	switch {
	case e.Cut != "":
		return e.Cut
	case e.Err != nil:
		return strings.TrimPrefix(e.Err.Error(), e.Host+": ")
	case e.Exit.Ended != "":
		return e.Exit.Ended
	case e.Exit.Signal != "":
		how := "ended by " + e.Exit.Signal
		if e.Exit.OutOfMemory {
			how += ", out of memory"
		}
		return how
	case e.Exit.Text != "":
		return e.Exit.Text
	}
	return fmt.Sprintf("exit status %d", e.Exit.Code)
}

// errTimeout is the reason of a job whose time is over.
var errTimeout = errors.New("did not end")

// Hint returns what may have kept programs from ending in time; "": none was late, or nothing is
// known.
func (j *Job) Hint(endings []Ending) string {
	if j.Launch == nil || !slices.ContainsFunc(endings, func(e Ending) bool { return e.Late }) {
		return ""
	}
	return j.Launch.Late
}

// failure is why the others are ended when the program of a host fails.
type failure struct{ host string }

func (f *failure) Error() string { return fmt.Sprintf("it was ended, since %s failed", f.host) }

// state is a job that runs.
type state struct {
	*Job
	exec    Exec
	end     context.CancelCauseFunc
	all     sync.WaitGroup
	mu      sync.Mutex // guards what follows, and lines of output
	endings []Ending
	first   int
}

// Run runs the job and returns how each program ended, in the order of Hosts. first is the index of
// the program that failed first, or -1.
func (j *Job) Run(ctx context.Context, exec Exec) (endings []Ending, first int) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if j.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, j.Timeout, fmt.Errorf("it %w within %v", errTimeout, j.Timeout))
		defer stop()
	}
	s := &state{Job: j, exec: exec, end: end, endings: make([]Ending, len(j.Hosts)), first: -1}
	for i, host := range j.Hosts {
		s.endings[i].Host = host
	}
	if j.Launch != nil && j.Launch.Leader != nil {
		s.lead(ctx)
	} else {
		for i := range j.Hosts {
			p := Program{Rank: i, Args: j.Args, Env: j.Env}
			if j.Launch != nil && j.Launch.Environment != nil {
				p.Env = slices.Concat(j.Launch.Environment(i, j.Hosts), j.Env) // a user's own come last, and win
			}
			s.start(ctx, p, nil)
		}
	}
	s.all.Wait()
	return s.endings, s.first
}

// lead runs the launcher on the first host, and what it asks for.
func (s *state) lead(ctx context.Context) {
	leader := Program{Args: s.Launch.Leader(s.Args, s.Hosts), Env: s.Env}
	if s.Launch.Environment != nil {
		leader.Env = slices.Concat(s.Launch.Environment(0, s.Hosts), s.Env)
	}
	s.start(ctx, leader, func(line []byte) bool {
		asked, ok := s.Launch.Ask(string(line), s.Hosts)
		if !ok {
			return s.Launch.Talk != nil && s.Launch.Talk(string(line))
		}
		if asked.Rank < 0 || asked.Rank >= len(s.Hosts) || len(asked.Args) == 0 {
			s.end(errors.New("its launcher asked for a program on a host that is not the job's"))
			return true
		}
		s.start(ctx, Program{Rank: asked.Rank, Args: asked.Args, Env: leader.Env}, nil)
		return true
	})
}

// start starts a program. talk, if not nil, receives the lines of its standard output first; those
// for which it returns true are no output.
func (s *state) start(ctx context.Context, p Program, talk func(line []byte) bool) {
	s.all.Go(func() {
		e := s.run(ctx, p, talk)
		s.mu.Lock()
		defer s.mu.Unlock()
		now := &s.endings[p.Rank]
		if !now.Ran || e.Failed() && !now.Failed() { // a launcher, or what it asked for
			*now = e
		}
		if e.Failed() && s.first < 0 {
			s.first = p.Rank
			s.end(&failure{e.Host})
		}
	})
}

// run runs a program.
func (s *state) run(ctx context.Context, p Program, talk func(line []byte) bool) (e Ending) {
	e = Ending{Host: s.Hosts[p.Rank], Ran: true, Began: time.Now()}
	defer func() { e.Over = time.Now() }()
	var stdin *os.File
	if stdin, e.Err = os.Open(os.DevNull); e.Err != nil {
		return e
	}
	defer stdin.Close()
	var files, outputs [2]*os.File
	var copied sync.WaitGroup
	for i := range files {
		var from *os.File
		if from, files[i], e.Err = os.Pipe(); e.Err != nil {
			return e
		}
		defer from.Close()
		outputs[i] = from
		copied.Go(func() {
			s.copyLines(&output{file: from}, func(line []byte) {
				if i > 0 || talk == nil || !talk(line) {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.Line(p.Rank, i > 0, line)
				}
			})
		})
	}
	e.Exit, e.Err = s.exec(ctx, p, stdin, files[0], files[1])
	for i := range files {
		files[i].Close()
		_ = outputs[i].SetReadDeadline(time.Now().Add(lastOutput)) // a daemon may hold it open
	}
	if e.Exit.Ended != "" { // it says more than the end of ctx meanwhile
		e.Err = nil
	}
	if cause := context.Cause(ctx); cause != nil && e.Exit.Ended == "" && (e.Err != nil || e.Exit.Code != 0) {
		e.Err, e.Cut, e.Late = nil, cause.Error(), errors.Is(cause, errTimeout)
		var other *failure
		switch {
		case errors.Is(cause, context.Canceled):
			e.Cut = "it was interrupted"
		case errors.As(cause, &other):
			e.With = other.host
		}
	}
	copied.Wait()
	return e
}

// lastOutput is how long output may take to arrive after a program has ended. Our own choice: it is
// there already.
const lastOutput = time.Second

// output reads the output of a program. What is there when the deadline has passed is still read,
// since whoever takes it may have been slow; more is not awaited.
type output struct {
	file *os.File
	left int   // bytes that were there then and are not read yet
	over error // the deadline has passed
}

// Read implements io.Reader.
func (o *output) Read(b []byte) (n int, err error) {
	if o.over == nil {
		if n, err = o.file.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.over = err
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
		raw, err := o.file.SyscallConn()
		if err != nil {
			return 0, err
		}
		if err := raw.Control(func(fd uintptr) { o.left, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
			return 0, err
		}
	}
	if o.left <= 0 {
		return 0, o.over
	}
	n, err = o.file.Read(b[:min(len(b), o.left)])
	o.left -= n
	return n, err
}

// maxLine bounds a line of output: a longer one is cut into several.
const maxLine = 64 << 10

// copyLines passes on lines without their ends.
func (s *state) copyLines(from io.Reader, line func([]byte)) {
	lines := bufio.NewReaderSize(from, maxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) > 0 {
			if text[len(text)-1] == '\n' {
				text = text[:len(text)-1]
			}
			line(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
