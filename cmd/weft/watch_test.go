package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"weft/results/record"
	"weft/results/watch"
)

// Without a terminal a run goes on, and says so in one line.
func TestWatchWithoutATerminal(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs, engine: orchestrated{}}
	flags := runFlags{out: t.TempDir(), quiet: true}
	flags.lab.builtIn = true
	flags.lab.Engine.Kind = "sim"
	if err := a.runInTerminal(t.Context(), []string{"quickstart"}, flags); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(errs.String(), "--watch needs a terminal that can move its cursor, for input and output, and no --json; the run goes on without it\n") || !strings.Contains(out.String(), "every expectation met") {
		t.Errorf("it printed %q and %q", errs.String(), out.String())
	}
}

// Ctrl-C interrupts the run, q only leaves the view; messages of the meantime are printed after it.
func TestTerminalView(t *testing.T) {
	var after bytes.Buffer
	interrupted := 0
	v := &terminalView{held: &heldWriter{to: &after}, interrupt: func() { interrupted++ }, screen: watch.New("small", &record.NetworkMap{})}
	m := tea.Model(terminalModel{view: v})
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if text := m.View().Content; !strings.HasPrefix(text, "small") || strings.Count(text, "\n") > 23 {
		t.Errorf("the view is %q", text)
	}
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: tea.KeyEsc}, {Code: 'c', Mod: tea.ModCtrl}} {
		if _, cmd := m.Update(key); cmd == nil {
			t.Errorf("%s does not leave the view", key)
		}
	}
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil || interrupted != 1 {
		t.Errorf("interrupted %d times, expected once", interrupted)
	}
	v.held.hold()
	_, _ = io.WriteString(v.held, "a warning\n") // a buffer
	if after.Len() > 0 {
		t.Error("a message goes to the terminal that the view has")
	}
	v.held.release()
	v.end() // it never began
	if after.String() != "a warning\n" {
		t.Errorf("after the view: %q", after.String())
	}
}
