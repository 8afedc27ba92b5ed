package deploy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/regular"
)

// Kinds of what operations make, beside those of package runtime.
const (
	kindFile       = "file"       // in the lab's folder
	kindSupervisor = "supervisor" // processes with the deployment's mark
)

// entry is a line of a journal: an operation that is about to be done, or, with only its number, what became of it.
type entry struct {
	Seq    int    `json:"seq,omitempty"`
	Do     string `json:"do,omitempty"`
	Kind   string `json:"kind,omitempty"`  // how it is undone
	Name   string `json:"name,omitempty"`  // what
	Where  string `json:"where,omitempty"` // of a container: the engine that has it; empty: the usual one
	Done   bool   `json:"done,omitempty"`
	Undone bool   `json:"undone,omitempty"`

	Deployment string `json:"deployment,omitempty"` // first line: the mark of its processes
	Committed  bool   `json:"committed,omitempty"`  // the lab is up, and stays without whoever deployed it
	Ending     bool   `json:"ending,omitempty"`     // somebody wants it gone
}

// journalFile is its name in the lab's folder.
const journalFile = "journal.jsonl"

// Journal is what was done to a machine for a lab, in order. It is safe for concurrent use.
type Journal struct {
	step func(string) // told before and after every operation and every undo; nil: nobody is

	mu         sync.Mutex // guards what follows
	file       *os.File   // nil: it is only read
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
	if err := syncFolder(dir); err != nil { // a crash of the machine must not lose the name of what was synced
		return nil, cleanup.Join(err, f.Close(), dir.Remove(journalFile))
	}
	return j, nil
}

// syncFolder returns when the disk has the names of a folder's files.
func syncFolder(dir *os.Root) error {
	folder, err := dir.Open(".")
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// openJournal reads a journal to go on with it. A last line that was cut short is one that was not written.
func openJournal(dir *os.Root, step func(string)) (*Journal, error) {
	text, err := readJournal(dir, journalFile)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{step: step}
	if err := j.read(text); err != nil {
		return nil, err
	}
	if j.file, err = regular.OpenIn(dir, journalFile, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if n := bytes.LastIndexByte(text, '\n') + 1; n < len(text) {
		if err := j.file.Truncate(int64(n)); err != nil {
			return nil, cleanup.Join(fmt.Errorf("journal: %w", err), j.file.Close())
		}
	}
	return j, nil
}

// maxJournal is how much of a journal is believed. A lab of a thousand hosts writes a tenth of it.
const maxJournal = 8 << 20

// readJournal reads the text of a journal, by its path below dir, or a little more than is believed of it. What is not a
// file was not written by Weft, is not followed, and not waited for.
func readJournal(dir *os.Root, path string) ([]byte, error) {
	info, err := dir.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a file", errDamaged)
	}
	f, err := regular.OpenIn(dir, path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxJournal+1))
}

// errDamaged is returned for what is not a journal, or names what no journal names.
var errDamaged = errors.New("it is damaged")

// read takes in the text of a journal, up to the first line that is not one of a journal.
func (j *Journal) read(text []byte) error {
	if err := j.lines(text); err != nil {
		return fmt.Errorf("journal: %w: %w", errDamaged, err)
	}
	return nil
}

func (j *Journal) lines(text []byte) error {
	if len(text) > maxJournal {
		return fmt.Errorf("%d bytes", len(text))
	}
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	lines.Buffer(nil, maxJournal)
	for n := 1; lines.Scan(); n++ {
		var e entry
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := j.take(e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// take adds a line to what is known.
func (j *Journal) take(e entry) error {
	switch {
	case e.Deployment != "" && (!deploymentName.MatchString(e.Deployment) || j.deployment != ""):
		return fmt.Errorf("%q is not its deployment", clip(e.Deployment))
	case e.Kind == kindFile && (!filepath.IsLocal(e.Name) || e.Name != filepath.Base(e.Name) || e.Name == "." || e.Name == journalFile):
		return fmt.Errorf("%q is not a file of the lab's folder", clip(e.Name))
	case e.Kind == kindSupervisor && e.Name != j.deployment:
		return fmt.Errorf("%q is not its deployment", clip(e.Name))
	case e.Deployment != "":
		j.deployment = e.Deployment
	case e.Committed:
		j.committed = true
	case e.Ending:
		j.committed = false
	case e.Do != "" && e.Seq == len(j.entries)+1:
		j.entries = append(j.entries, e)
	case e.Do == "" && e.Seq >= 1 && e.Seq <= len(j.entries):
		j.entries[e.Seq-1].Done = j.entries[e.Seq-1].Done || e.Done
		j.entries[e.Seq-1].Undone = j.entries[e.Seq-1].Undone || e.Undone
	default:
		return fmt.Errorf("operation %d after %d", e.Seq, len(j.entries))
	}
	return nil
}

// write appends a line, and returns when the disk has it.
func (j *Journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	before, err := j.file.Stat()
	if err == nil {
		if _, err = j.file.Write(append(line, '\n')); err != nil {
			_ = j.file.Truncate(before.Size()) // half a line, on a full disk, would spoil the next
		}
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Ahead writes that an operation is about to be done, and how it is undone, and returns what is to be called with how
// it went. An operation that failed may have been done in part, and is undone like any other.
func (j *Journal) Ahead(do, kind, name, where string) (done func(error) error, err error) {
	j.tell("before " + do)
	j.mu.Lock()
	defer j.mu.Unlock()
	e := entry{Seq: len(j.entries) + 1, Do: do, Kind: kind, Name: name, Where: where}
	if err := j.write(e); err != nil {
		return nil, fmt.Errorf("%s: %w", do, err)
	}
	j.entries = append(j.entries, e)
	return func(err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", do, err)
		}
		j.tell("after " + do)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.entries[e.Seq-1].Done = true
		return j.write(entry{Seq: e.Seq, Done: true})
	}, nil
}

// Do writes an operation ahead and does it.
func (j *Journal) Do(do, kind, name string, f func() error) error {
	done, err := j.Ahead(do, kind, name, "")
	if err != nil {
		return err
	}
	return done(f())
}

// Commit writes that the lab is up.
func (j *Journal) Commit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed = true
	return j.write(entry{Committed: true})
}

// Settle writes that everything of some kinds is undone already: whoever made it has taken it down in order.
func (j *Journal) Settle(kinds ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.entries {
		if e := &j.entries[i]; !e.Undone && slices.Contains(kinds, e.Kind) {
			e.Undone = true
			_ = j.write(entry{Seq: e.Seq, Undone: true}) // undoing it once more does no harm
		}
	}
}

// End writes that the lab is to go: whoever finds it half gone is to finish that. A full disk must not keep it.
func (j *Journal) End() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed = false
	_ = j.write(entry{Ending: true})
}

// Committed says whether the lab was up, and nobody wanted it gone.
func (j *Journal) Committed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.committed
}

// Deployment is the mark of the deployment's processes.
func (j *Journal) Deployment() string { return j.deployment }

// An undoer takes away what an operation made, if it is there. What is not there any more is no error.
type undoer func(ctx context.Context, where, name string) error

// Rollback undoes, last first, everything that was not undone, and returns all that went wrong. An undo that cannot
// be written down, because the disk is full, is still done. What by does not know is left alone, and is not what went
// wrong: see Unknown.
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
			continue
		}
		j.tell("before undo " + e.Do)
		if err := undo(ctx, e.Where, e.Name); err != nil {
			failed.add(e.Do, err)
			continue
		}
		j.entries[e.Seq-1].Undone = true
		_ = j.write(entry{Seq: e.Seq, Undone: true}) // undoing it once more does no harm
		j.tell("after undo " + e.Do)
	}
	return failed.sentence()
}

// Unknown describes the operations of which nobody here knows the undo: another version of Weft did them. Only what was
// undone before is not among them.
func (j *Journal) Unknown(by map[string]undoer) (what []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if !e.Undone && by[e.Kind] == nil {
			what = append(what, fmt.Sprintf("%q of the kind %q", clip(e.Name), clip(e.Kind)))
		}
	}
	return what
}

// failures are the operations that could not be undone, by what went wrong: an engine that is gone is one trouble, however
// many containers it had.
type failures struct {
	errs  []error
	first []string // what could not be undone for it
	more  []int    // how many others
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

func (f *failures) sentence() error {
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

func (j *Journal) tell(step string) {
	if j.step != nil {
		j.step(step)
	}
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// removeFile undoes a file of a lab's folder. The name is one, not a path: see os.Root.
func removeFile(dir *os.Root) undoer {
	return func(_ context.Context, _, name string) error {
		err := dir.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
}
