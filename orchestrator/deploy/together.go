package deploy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Together is a program to be run on several nodes at once.
type Together struct {
	Nodes   []string
	Exec    Exec          // Node and TTY are not used
	Launch  string        // one of Launches: what each program is told about the others; empty: nothing
	Timeout time.Duration // real time after which all are ended; 0: none
}

// Launches are the ways to tell programs about each other, by environment variables.
func Launches() []string { return []string{"torchrun"} }

// torchPort is the port of the first rank's store: torchrun's own default.
const torchPort = 29500

// environment returns what the program with number i is told.
func (t *Together) environment(i int) ([]string, error) {
	switch t.Launch {
	case "":
		return nil, nil
	case "torchrun": // https://pytorch.org/docs/stable/elastic/run.html#environment-variables
		return []string{
			fmt.Sprintf("RANK=%d", i), fmt.Sprintf("WORLD_SIZE=%d", len(t.Nodes)), "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
			fmt.Sprintf("GROUP_RANK=%d", i), fmt.Sprintf("GROUP_WORLD_SIZE=%d", len(t.Nodes)),
			"MASTER_ADDR=" + t.Nodes[0], fmt.Sprintf("MASTER_PORT=%d", torchPort),
			"GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1",
		}, nil
	}
	return nil, fmt.Errorf("unknown launch %q", t.Launch)
}

// Ending is how the program of one node ended.
type Ending struct {
	Node string
	Exit Exit
	Err  error  // the program could not be run
	Cut  string // why it was ended from outside; empty: it ended by itself
}

// Failed reports whether the program did not end by itself with exit code 0.
func (e *Ending) Failed() bool { return e.Err != nil || e.Cut != "" || e.Exit.Code != 0 }

// How returns how the program ended, in words.
func (e *Ending) How() string {
	switch {
	case e.Cut != "":
		return e.Cut
	case e.Err != nil:
		return e.Err.Error()
	case e.Exit.Ended != "":
		return e.Exit.Ended
	case e.Exit.Text != "":
		return e.Exit.Text
	}
	return fmt.Sprintf("exit status %d", e.Exit.Code)
}

// ExecAll runs a program on several nodes at once and returns how each ended, in the order of
// Nodes. When one fails, the others are ended: they would wait for it. Lines of output have the
// node in front. first is the index of the program that failed first, or -1.
func (h *Handle) ExecAll(ctx context.Context, t Together, stdout, stderr io.Writer) (endings []Ending, first int) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if t.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, t.Timeout, fmt.Errorf("it did not end within %v", t.Timeout))
		defer stop()
	}
	endings, first = make([]Ending, len(t.Nodes)), -1
	var mu sync.Mutex // guards first, and lines of output
	var all sync.WaitGroup
	for i, node := range t.Nodes {
		all.Go(func() {
			e := h.execOne(ctx, &t, i, &mu, stdout, stderr)
			e.Node = node
			mu.Lock()
			defer mu.Unlock()
			endings[i] = e
			if e.Failed() && first < 0 {
				first = i
				end(fmt.Errorf("it was ended, since %s failed", node))
			}
		})
	}
	all.Wait()
	return endings, first
}

// execOne runs the program with number i.
func (h *Handle) execOne(ctx context.Context, t *Together, i int, mu *sync.Mutex, stdout, stderr io.Writer) (e Ending) {
	exec := t.Exec
	exec.Node, exec.Whole = t.Nodes[i], true
	told, err := t.environment(i)
	if err != nil {
		return Ending{Err: err}
	}
	exec.Env = slices.Concat(told, exec.Env) // a user's own come last, and win
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Ending{Err: err}
	}
	defer null.Close()
	files := []*os.File{null}
	var outputs []*os.File
	var copied sync.WaitGroup
	for _, to := range []io.Writer{stdout, stderr} {
		from, file, err := os.Pipe()
		if err != nil {
			return Ending{Err: err}
		}
		defer from.Close()
		files, outputs = append(files, file), append(outputs, from)
		copied.Go(func() { copyLines(to, mu, exec.Node, from) })
	}
	e.Exit, e.Err = h.Exec(ctx, exec, files...)
	for _, f := range files[1:] {
		f.Close()
	}
	for _, f := range outputs { // a daemon may hold it open
		_ = f.SetReadDeadline(time.Now().Add(lastOutput))
	}
	if ctx.Err() != nil {
		e.Err, e.Cut = nil, context.Cause(ctx).Error()
		if errors.Is(context.Cause(ctx), context.Canceled) {
			e.Cut = "it was interrupted"
		}
	}
	copied.Wait()
	return e
}

// lastOutput is how long output may take to arrive after a program has ended. Our own choice: it is
// there already.
const lastOutput = time.Second

// maxLine bounds a line of output: a longer one is cut into several.
const maxLine = 64 << 10

// copyLines copies the output of a node line by line.
func copyLines(to io.Writer, mu *sync.Mutex, node string, from io.Reader) {
	lines := bufio.NewReaderSize(from, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			newline := ""
			if line[len(line)-1] != '\n' {
				newline = "\n"
			}
			mu.Lock()
			fmt.Fprintf(to, "%s: %s%s", node, line, newline) // nobody may read it any more
			mu.Unlock()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
