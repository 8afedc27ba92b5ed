package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"weft/internal/cleanup"
	"weft/internal/clip"
	"weft/orchestrator/runtime"
)

// Kinds of operation, in addition to those of package runtime.
const (
	kindFile       = "file"       // makes a file in the lab's folder
	kindSupervisor = "supervisor" // starts processes with the deployment's mark
)

// entry is a line of a journal: an operation that is about to be carried out or, with only its
// number, was undone.
type entry struct {
	Seq    int    `json:"seq,omitempty"`   // from 1
	Do     string `json:"do,omitempty"`    // what it does, in words
	Kind   string `json:"kind,omitempty"`  // selects the undoer
	Name   string `json:"name,omitempty"`  // of the resource
	Where  string `json:"where,omitempty"` // how another process finds a container's engine, or that of agents
	Undone bool   `json:"undone,omitempty"`

	Deployment string `json:"deployment,omitempty"` // first line: the deployment's ID
	Committed  bool   `json:"committed,omitempty"`  // the lab is up and no longer depends on its deployer
	Ending     bool   `json:"ending,omitempty"`     // the lab is being removed
}

// journalFile is the name of the journal in the lab's folder.
const journalFile = "journal.jsonl"

// Journal lists what was done to a machine for a lab, in order. It is safe for concurrent use.
type Journal struct {
	step func(string) // called before and after every operation and every undo; may be nil

	mu         sync.Mutex // guards what follows
	file       *os.File   // nil if the journal is only read
	entries    []entry
	committed  bool
	deployment string
}

// createJournal begins the journal of a deployment.
func createJournal(dir *os.Root, deployment string, step func(string)) (*Journal, error) {
	f, err := dir.OpenFile(journalFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{file: f, step: step, deployment: deployment}
	if err := j.write(entry{Deployment: deployment}); err != nil {
		return nil, cleanup.Join(err, f.Close(), dir.Remove(journalFile))
	}
	return j, nil
}

// openJournal reads a journal and opens it for more entries. A last line without its end was never
// completely written and is removed.
func openJournal(dir *os.Root, step func(string)) (*Journal, error) {
	j, whole, err := readJournal(dir)
	if err != nil {
		return nil, err
	}
	j.step = step
	if j.file, err = dir.OpenFile(journalFile, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := j.file.Truncate(whole); err != nil {
		return nil, cleanup.Join(fmt.Errorf("journal: %w", err), j.file.Close())
	}
	return j, nil
}

// readJournal reads the journal in a lab's folder, and returns the length of its whole lines.
func readJournal(dir *os.Root) (j *Journal, whole int64, err error) {
	text, err := dir.ReadFile(journalFile)
	if err != nil {
		return nil, 0, fmt.Errorf("journal: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	j = new(Journal)
	return j, int64(len(text)), j.read(text)
}

// read parses the lines of a journal.
func (j *Journal) read(text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var e entry
		err := json.Unmarshal(line, &e)
		if err == nil {
			err = j.apply(e)
		}
		if err != nil {
			return fmt.Errorf("journal: line %d is damaged: %w; remove the lab's folder, and weft clean ends what it "+
				"left", n, err)
		}
	}
	return nil
}

// apply adds an entry to the journal's state. It returns an error if the entry cannot follow those
// before it.
func (j *Journal) apply(e entry) error {
	switch {
	case e.Deployment != "":
		j.deployment = e.Deployment
	case e.Committed:
		j.committed = true
	case e.Ending:
		j.committed = false
	case e.Do != "" && e.Seq == len(j.entries)+1:
		j.entries = append(j.entries, e)
	case e.Do == "" && e.Seq >= 1 && e.Seq <= len(j.entries):
		j.entries[e.Seq-1].Undone = j.entries[e.Seq-1].Undone || e.Undone
	default:
		return fmt.Errorf("operation %d follows operation %d", e.Seq, len(j.entries))
	}
	return nil
}

// write appends an entry. It outlives this process, and no lab outlives the machine.
func (j *Journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	before, err := j.file.Stat()
	if err == nil {
		if _, err = j.file.Write(append(line, '\n')); err != nil {
			_ = j.file.Truncate(before.Size()) // half a line would damage the journal
		}
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Ahead writes that an operation is about to be carried out, and how it is undone. An operation
// that fails may have been carried out in part, so it is undone like any other.
func (j *Journal) Ahead(op runtime.Op) error {
	j.notify("before " + op.Do)
	j.mu.Lock()
	defer j.mu.Unlock()
	e := entry{Seq: len(j.entries) + 1, Do: op.Do, Kind: op.Kind, Name: op.Name, Where: op.Where}
	if err := j.write(e); err != nil {
		return fmt.Errorf("%s: %w", op.Do, err)
	}
	j.entries = append(j.entries, e)
	return nil
}

// Do writes an operation ahead and does it.
func (j *Journal) Do(do, kind, name string, f func() error) error {
	if err := j.Ahead(runtime.Op{Do: do, Kind: kind, Name: name}); err != nil {
		return err
	}
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	j.notify("after " + do)
	return nil
}

// Commit writes that the lab is up.
func (j *Journal) Commit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed = true
	return j.write(entry{Committed: true})
}

// Settle writes that all operations of some kinds are undone: their maker has removed everything in
// order.
func (j *Journal) Settle(kinds ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.entries {
		if e := &j.entries[i]; !e.Undone && slices.Contains(kinds, e.Kind) {
			e.Undone = true
			_ = j.write(entry{Seq: e.Seq, Undone: true}) // an undo may be repeated
		}
	}
}

// End writes that the lab is being removed, so that a later clean removes what is left. It ignores
// a full disk.
func (j *Journal) End() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed = false
	_ = j.write(entry{Ending: true})
}

// Committed reports whether the lab was up and its removal has not begun.
func (j *Journal) Committed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.committed
}

// Deployment is the mark of the deployment's processes.
func (j *Journal) Deployment() string { return j.deployment }

// An undoer removes what an operation made. It returns no error if that is gone already.
type undoer = func(ctx context.Context, where, name string) error

// Rollback undoes every operation that was not undone yet, last first, and returns all errors. It
// continues if an undo cannot be written down because the disk is full. An operation of a kind that
// by does not have, of another version of Weft, is left alone and is an error.
func (j *Journal) Rollback(ctx context.Context, by map[string]undoer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var failed failures
	for _, e := range slices.Backward(j.entries) {
		if e.Undone {
			continue
		}
		undo := by[e.Kind]
		if undo == nil {
			failed.add(e.Do, fmt.Errorf("this version of Weft cannot: %q is of the kind %q; destroy the lab with the "+
				"version that deployed it", clip.Text(e.Name), clip.Text(e.Kind)))
			continue
		}
		j.notify("before undo " + e.Do)
		if err := undo(ctx, e.Where, e.Name); err != nil {
			failed.add(e.Do, err)
			continue
		}
		j.entries[e.Seq-1].Undone = true
		_ = j.write(entry{Seq: e.Seq, Undone: true}) // an undo may be repeated
		j.notify("after undo " + e.Do)
	}
	return failed.err()
}

// failures collects operations that could not be undone, grouped by error: an engine that is gone
// is one error, however many containers it had.
type failures struct {
	errs  []error
	first []string // first operation with that error
	more  []int    // number of others
}

func (f *failures) add(do string, err error) {
	for i := range f.errs {
		if f.errs[i].Error() == err.Error() {
			f.more[i]++
			return
		}
	}
	f.errs, f.first, f.more = append(f.errs, err), append(f.first, do), append(f.more, 0)
}

// err returns one error with a line for each group.
func (f *failures) err() error {
	var all cleanup.Errors
	for i, err := range f.errs {
		what := f.first[i]
		if n := f.more[i]; n > 0 {
			what += fmt.Sprintf(" (and %d more)", n)
		}
		all.Add(fmt.Errorf("undo %s: %w", what, err))
	}
	return all.Err()
}

func (j *Journal) notify(step string) {
	if j.step != nil {
		j.step(step)
	}
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// removeFile returns the undoer of a file in a lab's folder. os.Root keeps names within the folder.
func removeFile(dir *os.Root) undoer {
	return func(_ context.Context, _, name string) error {
		err := dir.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
}
