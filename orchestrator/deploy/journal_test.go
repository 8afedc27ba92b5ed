package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/fuzztest"
)

func newJournal(t *testing.T) (*os.Root, *Journal) {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	j, err := createJournal(dir, newID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, j
}

// Operations are undone last first, each once. One that fails stays to be undone, and every error
// is returned.
func TestRollback(t *testing.T) {
	dir, j := newJournal(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		err := j.Do("make "+name, "thing", name, func() error {
			if name == "d" {
				return errors.New("half made")
			}
			return nil
		})
		if (err != nil) != (name == "d") {
			t.Fatal(err)
		}
	}
	var undone []string
	stubborn := map[string]bool{"b": true, "c": true}
	by := map[string]undoer{"thing": func(_ context.Context, _, name string) error {
		if stubborn[name] {
			return errors.New(name + " stays")
		}
		undone = append(undone, name)
		return nil
	}}
	err := j.Rollback(t.Context(), by)
	if err == nil || !strings.Contains(err.Error(), "undo make c: c stays") || !strings.Contains(err.Error(), "undo make b: b stays") {
		t.Errorf("errors: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	stubborn = nil
	again, err := openJournal(dir, nil) // by another process, later
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Rollback(t.Context(), by); err != nil {
		t.Error(err)
	}
	if got := strings.Join(undone, ""); got != "dacb" {
		t.Errorf("undone in the order %s", got)
	}
	if again.Deployment() != j.Deployment() {
		t.Error("it is another deployment")
	}
}

// A line that a crash cut short counts as not written. Text that is not a journal is rejected.
func TestTruncatedJournal(t *testing.T) {
	dir, j := newJournal(t)
	if err := j.Do("make a", "thing", "a", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir.Name(), journalFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"seq":2,"do":"ma`...), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := openJournal(dir, nil)
	if err != nil || len(again.entries) != 1 {
		t.Fatalf("%v, %d operations", err, len(again.entries))
	}
	if err := again.Commit(); err != nil {
		t.Fatal(err)
	}
	if last, err := openJournal(dir, nil); err != nil || !last.Committed() {
		t.Errorf("after that: %v", err)
	}
	for _, text := range []string{"x\n", "{}\n", `{"seq":7,"do":"a"}` + "\n", `{"seq":1,"undone":true}` + "\n", `{"do":"a"}` + "\n"} {
		if err := new(Journal).read([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func FuzzJournal(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte(`{"deployment":"0123456789abcdef0123456789abcdef"}` + "\n" + `{"seq":1,"do":"x","kind":"file","name":"y"}` + "\n"))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		j := new(Journal)
		if err := j.read(text); err != nil {
			return
		}
		for i, e := range j.entries {
			if e.Seq != i+1 || e.Do == "" {
				t.Errorf("entry %d is %+v", i, e)
			}
		}
	})
}
