package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"weft/internal/terminal"
	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/watch"
)

// watchEvery is the time between two updates of a terminal. Our own choice.
const watchEvery = 100 * time.Millisecond

// terminalView shows a run in a terminal while it runs. It takes the terminal with the first
// frame, and what is written to standard error from then on is held back until it ends.
type terminalView struct {
	out       *os.File
	interrupt func() // does what Ctrl-C does outside of the view
	held      *heldWriter

	mu       sync.Mutex // guards screen, between the run and the program
	screen   *watch.Screen
	program  *tea.Program
	finished chan struct{} // closed when program has ended; nil: it never began
	last     time.Time
	progress orchestrate.Progress
}

// runInTerminal runs a lab as run does, and shows the run in the terminal until it ends.
func (a *app) runInTerminal(ctx context.Context, names []string, flags runFlags) error {
	out, ok := a.stdout.(*os.File)
	if !ok || !isTerminal(a.stdout) || !isTerminal(a.stdin()) || flags.json {
		fmt.Fprintln(a.stderr, "--watch needs a terminal that can move its cursor, for input and output, "+
			"and no --json; the run goes on without it")
		return a.run(ctx, names, flags)
	}
	if terminal.Background(out) || terminal.Background(os.Stdin) {
		fmt.Fprintln(a.stderr, "--watch needs the foreground of the terminal (with timeout: timeout --foreground); "+
			"the run goes on without it")
		return a.run(ctx, names, flags)
	}
	v := &terminalView{
		out: out, held: &heldWriter{to: a.stderr}, interrupt: func() { _ = unix.Kill(os.Getpid(), unix.SIGINT) },
	}
	defer v.end()
	flags.terminal = v
	flags.done = func([]*record.Summary) { v.end() }
	b := *a
	b.stderr = v.held
	return b.run(ctx, names, flags)
}

// stdin returns standard input.
func (*app) stdin() io.Writer { return os.Stdin }

// update shows the frames of a run, at most every watchEvery. The run calls it.
func (v *terminalView) update(x *experiment.Experiment, _ string, n *record.NetworkMap, all []frames.Frame) {
	if now := time.Now(); now.Sub(v.last) < watchEvery {
		return
	}
	v.mu.Lock()
	if v.screen == nil {
		v.screen = watch.New(x.Lab.Name+" "+x.Lab.Sends(), n)
		for i := range x.Lab.Expect {
			v.screen.Expect = append(v.screen.Expect, x.Lab.Expect[i].Text)
		}
		for _, w := range x.Lab.Workload {
			v.screen.Collectives = append(v.screen.Collectives, w.Collective)
		}
		v.begin()
	}
	v.screen.Done, v.screen.Total = v.progress.Done, v.progress.Total
	v.screen.Add(all)
	v.mu.Unlock()
	v.program.Send(shownMsg{})
	v.last = time.Now()
}

// note keeps the progress of a run. The run calls it.
func (v *terminalView) note(p orchestrate.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.progress = p
}

// begin takes the terminal.
func (v *terminalView) begin() {
	v.held.hold()
	v.program = tea.NewProgram(terminalModel{view: v}, tea.WithOutput(v.out), tea.WithoutSignalHandler())
	v.finished = make(chan struct{})
	go func() {
		defer close(v.finished)
		if _, err := v.program.Run(); err != nil {
			fmt.Fprintf(v.held, "the terminal view has ended: %v\n", err)
		}
		v.held.release()
	}()
}

// end gives the terminal back. Ending twice does nothing.
func (v *terminalView) end() {
	if v.finished != nil {
		v.program.Quit()
		<-v.finished
	}
}

// shownMsg says that the screen has changed.
type shownMsg struct{}

// terminalModel is the state of the program that owns the terminal.
type terminalModel struct {
	view          *terminalView
	width, height int
}

// Init implements tea.Model.
func (terminalModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m terminalModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc":
			return m, tea.Quit
		case "ctrl+c":
			m.view.interrupt()
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m terminalModel) View() tea.View {
	m.view.mu.Lock()
	defer m.view.mu.Unlock()
	screen := tea.NewView(m.view.screen.Text(m.width, m.height))
	screen.AltScreen = true
	return screen
}

// heldWriter passes on what is written to it, and keeps it from hold to release.
type heldWriter struct {
	mu   sync.Mutex
	to   io.Writer
	kept *bytes.Buffer // nil: nothing is held back
}

// Write implements io.Writer.
func (w *heldWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept != nil {
		return w.kept.Write(p)
	}
	return w.to.Write(p)
}

func (w *heldWriter) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = new(bytes.Buffer)
}

func (w *heldWriter) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept != nil {
		_, _ = w.kept.WriteTo(w.to) // nobody can be told
		w.kept = nil
	}
}
