package deploy

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A supervisor that is killed closes its connections before it stops listening. Until then it is
// neither alive nor crashed.
func TestKilledSupervisorListensForAMoment(t *testing.T) {
	r, err := OpenRoot(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.dir.Mkdir("lab", 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := r.folder("lab")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	time.AfterFunc(200*time.Millisecond, func() { l.Close() })
	h := &Handle{root: r, name: "lab"}
	if err := h.Crashed(); !errors.Is(err, ErrCrashed) {
		t.Errorf("got %v, want %v", err, ErrCrashed)
	}
}

// A lab that its supervisor takes down meanwhile is down.
func TestTwoTakeALabDown(t *testing.T) {
	r, err := OpenRoot(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 500 {
		if err := r.dir.Mkdir("lab", 0o700); err != nil {
			t.Fatal(err)
		}
		dir, err := r.folder("lab")
		if err != nil {
			t.Fatal(err)
		}
		j, err := createJournal(dir, newID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		dir.Close()
		var both sync.WaitGroup
		both.Go(func() {
			if err := removeFolder(r, "lab"); err != nil {
				t.Error(err)
			}
		})
		if err := takeDown(t.Context(), r, "lab", Options{}); err != nil {
			t.Error(err)
		}
		both.Wait()
		if t.Failed() {
			return
		}
	}
}
