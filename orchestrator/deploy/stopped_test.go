package deploy

import (
	"fmt"
	"os"
	"reflect"
	"sync"
	"syscall"
	"testing"

	"weft/internal/testenv"
	"weft/orchestrator/together"
)

// Every request to a supervisor that is stopped gives up after the same time with the same words,
// and no method of a Handle is missing here.
func TestPrivRequestsToAStoppedSupervisor(t *testing.T) {
	testenv.NeedNamespaces(t)
	h, supervisor := openLab(t, "stopped")
	null := openNull(t)
	up, program := true, []string{"true"}
	requests := map[string]func() error{
		"State": func() error { _, err := h.State(); return err },
		"Hosts": func() error { _, err := h.Hosts(); return err },
		"Link":  func() error { return h.Link(Link{Link: "h0-switch0", Up: &up}) },
		"Node":  func() error { return h.Node(Node{Node: "h0", Action: NodeResume}) },
		"Exec": func() error {
			_, err := h.Exec(t.Context(), Exec{Node: "h0", Args: program}, null, null, null)
			return err
		},
		"ExecAll": func() error {
			endings, first := h.ExecAll(t.Context(), &together.Job{Hosts: []string{"h0"}, Args: program, Line: func(int, bool, []byte) {}}, false)
			if first < 0 {
				return nil
			}
			return endings[first].Err
		},
		"Events":  func() error { return h.Events(t.Context(), false, func(Event) error { return nil }) },
		"Capture": func() error { _, err := h.Capture(Capture{What: "h0"}, null); return err },
		"Check": func() error {
			_, err := h.Check(t.Context(), Check{}, func(Measured) error { return nil })
			return err
		},
		"Attach": func() error {
			_, err := h.Attach(Attach{Holder: Holder{Container: "c", Interface: "eth0"}, Check: true}, "/proc/self/ns/net")
			return err
		},
		"Detach": func() error { return h.Detach(Detach{Holder{Container: "c", Interface: "eth0"}}, "") },
	}
	asksNothing := map[string]bool{"Name": true, "Crashed": true} // what Crashed asks has a limit of its own
	for m := range reflect.TypeFor[*Handle]().Methods() {
		if requests[m.Name] == nil && !asksNothing[m.Name] {
			t.Errorf("no request with %s", m.Name)
		}
	}
	stop(t, supervisor)
	want := unanswered(supervisor)
	var all sync.WaitGroup
	for name, ask := range requests {
		all.Go(func() {
			if err := ask(); err == nil || err.Error() != want {
				t.Errorf("%s: %v\nwant %s", name, err, want)
			}
		})
	}
	all.Wait()
	if err := syscall.Kill(supervisor, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"State", "Hosts", "Link", "Exec", "Events", "Detach"} {
		if err := requests[name](); err != nil {
			t.Errorf("%s of one that continues: %v", name, err)
		}
	}
}

// unanswered is the error of a request to the stopped supervisor of the lab "stopped".
func unanswered(supervisor int) string {
	return fmt.Sprintf("lab stopped: its supervisor (process %d) does not answer within 5s; weft destroy stopped ends it", supervisor)
}

// openNull opens what swallows everything.
func openNull(t *testing.T) *os.File {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return null
}

// So does every request that may last for ever and whose supervisor is stopped meanwhile. Check is
// answered as Events is.
func TestPrivRequestsWhoseSupervisorIsStopped(t *testing.T) {
	testenv.NeedNamespaces(t)
	h, supervisor := openLab(t, "stopped")
	null := openNull(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	program := []string{"sh", "-c", "echo here; sleep 600"}
	begun, stopped := make(chan string), make(chan bool)
	once := map[string]*sync.Once{"Exec": {}, "ExecAll": {}, "Events": {}}
	begins := func(name string) {
		once[name].Do(func() { begun <- name })
		<-stopped
	}
	requests := map[string]func() error{
		"Exec": func() error {
			_, err := h.Exec(t.Context(), Exec{Node: "h0", Args: program}, null, write, null)
			return err
		},
		"ExecAll": func() error {
			endings, first := h.ExecAll(t.Context(), &together.Job{Hosts: []string{"h0", "h1"}, Args: program,
				Line: func(int, bool, []byte) { begins("ExecAll") }}, false)
			if first < 0 {
				return nil
			}
			return endings[first].Err
		},
		"Events": func() error {
			return h.Events(t.Context(), true, func(Event) error { begins("Events"); return nil })
		},
	}
	go func() {
		_, _ = read.Read(make([]byte, 1))
		begins("Exec")
	}()
	var all sync.WaitGroup
	for name, ask := range requests {
		all.Go(func() {
			if err := ask(); err == nil || err.Error() != unanswered(supervisor) {
				t.Errorf("%s: %v\nwant %s", name, err, unanswered(supervisor))
			}
		})
	}
	for range requests {
		<-begun
	}
	stop(t, supervisor)
	close(stopped)
	all.Wait()
	if err := syscall.Kill(supervisor, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := h.State(); err != nil {
		t.Errorf("after it continues: %v", err)
	}
}
