package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
	"weft/results/record"
)

// Names of the files of a run.
const (
	ManifestFile    = "manifest.json"
	SummaryFile     = "summary.json"
	LabFile         = "lab.yaml"
	FlowsFile       = "flows.parquet"
	CollectivesFile = "collectives.parquet"
	QueuesFile      = "queues.parquet"
	RTTFile         = "rtt.parquet"
	QueueDelayFile  = "queue_delay.parquet"
	WindowsFile     = "cwnd.parquet"
	AcksFile        = "acks.parquet"
	RatesFile       = "rates.parquet"
	PortsFile       = "ports.parquet"
	ClocksFile      = "clocks.parquet"
	EventsFile      = "events.jsonl"
)

// Options say where a run is kept and what its manifest begins with.
type Options struct {
	Root     string          // directory that holds all runs; "" means DefaultRoot()
	Now      time.Time       // start of the run
	Series   Series          // names the directory
	Manifest record.Manifest // Lab must be set; Run, Started, Status and Process are filled in
	LabText  []byte          // the lab file as it was read, kept beside the results; may be empty
}

// Series says which run this is of those that one command line makes of a lab: of the points of a sweep, say, which
// begin and end in any order. The zero value is a run by itself.
type Series struct {
	ID     string    // tells command lines apart, those of one second too; "" for a run by itself
	Began  time.Time // of the command line; the zero value is the start of the run
	Number int       // of this run, from 1
	Of     int       // how many there are
	Sweep  string    // name of the folder beside the runs that is about all of them; may be empty
}

// Stamp begins the names of what a series leaves: the second in which it began.
func (s *Series) Stamp() string { return s.Began.UTC().Format("20060102T150405") }

// Run is the directory of one run while it is being written. The first error of any write sticks: later
// writes return it, and Finish does. Not safe for concurrent use.
type Run struct {
	dir      string
	manifest record.Manifest
	files    map[string]stream
	live     bool     // not a simulation: data is flushed by the clock too
	order    []string // names in files, in order of creation
	reserve  *os.File // room for the files that say how it ended
	err      error
	closed   bool
}

// Open creates the directory <root>/<lab>/<stamp>-<n> and writes a manifest with status "running" into it. The stamp is
// the second in which the series began, and n the number of the run in it: where another command line has taken that,
// the next one further by the length of the series, so that runs of one series never take each other's. When something
// fails no directory is left.
func Open(o Options) (*Run, error) {
	if err := checkName(o.Manifest.Lab); err != nil {
		return nil, err
	}
	if o.Series.Began.IsZero() {
		o.Series.Began = o.Now
	}
	dir, err := makeDir(filepath.Join(rootDir(o.Root), o.Manifest.Lab), o.Series)
	if err != nil {
		return nil, fmt.Errorf("create a run directory: %w", err)
	}
	r := &Run{dir: dir, manifest: o.Manifest, files: map[string]stream{}, live: o.Manifest.Engine != "sim"}
	r.manifest.Format = Format
	r.manifest.Run = filepath.ToSlash(dir)
	r.manifest.Started = o.Now.UTC().Format(time.RFC3339)
	r.manifest.Status = record.Running
	r.manifest.Process = self()
	if s := o.Series; s.ID != "" {
		r.manifest.Series = &record.Series{ID: s.ID, Number: s.Number, Of: s.Of, Sweep: s.Sweep}
	}
	if err := r.begin(o.LabText); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir)) // nobody else knows of it
	}
	return r, nil
}

// begin writes what is known from the start, and takes room for what is not.
func (r *Run) begin(labText []byte) (err error) {
	if err := r.writeManifest(); err != nil {
		return err
	}
	if len(labText) > 0 {
		if err := replaceFile(filepath.Join(r.dir, LabFile), labText); err != nil {
			return err
		}
	}
	r.reserve, err = reserve(r.dir)
	return err
}

// checkName refuses lab names that would lead out of the directory of runs.
func checkName(lab string) error {
	if lab == "" || lab != filepath.Base(lab) || strings.HasPrefix(lab, ".") {
		return fmt.Errorf("lab name %q cannot name a directory", lab)
	}
	return nil
}

// rootDir is the directory that holds all runs.
func rootDir(root string) string {
	if root == "" {
		return DefaultRoot()
	}
	return root
}

// RootVar names the environment variable that says which directory keeps runs unless the command line does.
const RootVar = "WEFT_OUT"

// DefaultRoot is the directory that keeps runs unless the command line names one: what RootVar says, or runs.
func DefaultRoot() string {
	if root := os.Getenv(RootVar); root != "" {
		return root
	}
	return "runs"
}

// CheckRoot returns an error if runs of labs cannot be kept in root: it, the folder of a lab in it, or what exists of the
// way to it, is no directory that may be written to. It creates nothing, and does not see everything, such as a disk that
// is full.
func CheckRoot(root string, labs ...string) error {
	err := checkDir(rootDir(root))
	for _, lab := range labs {
		if err == nil {
			err = checkDir(filepath.Join(rootDir(root), lab))
		}
	}
	return err
}

func checkDir(dir string) error {
	dir = filepath.Clean(dir)
	for {
		info, err := os.Stat(dir)
		if to, lerr := os.Readlink(dir); errors.Is(err, fs.ErrNotExist) && lerr == nil {
			return fmt.Errorf("nowhere to keep runs: %s is a symbolic link to %s, which does not exist; create that, or name another directory", dir, to)
		}
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "create a directory in", Path: dir, Err: unix.ENOTDIR}
		}
		if err == nil {
			err = os.NewSyscallError("write to "+dir, unix.Access(dir, unix.W_OK|unix.X_OK))
		}
		if err != nil {
			return fmt.Errorf("nowhere to keep runs: %w", err)
		}
		return nil
	}
}

// makeDir creates <parent>/<stamp>-<n> with the first n of the series that does not exist. Creating a directory is
// atomic, so two runs of the same second never share one.
func makeDir(parent string, s Series) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	for n := max(s.Number, 1); ; n += max(s.Of, 1) {
		dir := filepath.Join(parent, fmt.Sprintf("%s-%d", s.Stamp(), n))
		err := os.Mkdir(dir, 0o755)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// Claim creates a file or a folder in the folder of a lab, and returns its path. It is called name+ext or, where something has that
// name, name-2+ext, name-3+ext and so on. create fails with fs.ErrExist for what exists, so that two callers never get the same.
func Claim(root, lab, name, ext string, create func(path string) error) (path string, err error) {
	if err := checkName(lab); err != nil {
		return "", err
	}
	parent := filepath.Join(rootDir(root), lab)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path = filepath.Join(parent, name+ext)
		if n > 1 {
			path = filepath.Join(parent, fmt.Sprintf("%s-%d%s", name, n, ext))
		}
		if err = create(path); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// NewFolder creates a folder that is not there; for Claim.
func NewFolder(path string) error { return os.Mkdir(path, 0o755) }

// NewFile creates a file that is not there, with a content; for Claim.
func NewFile(content []byte) func(path string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return errors.Join(err, f.Close())
	}
}

// Dir returns the directory of the run, as it was named: relative when Options.Root was.
func (r *Run) Dir() string { return r.dir }

// Update changes the manifest of a run that is under way, for what is only known after the start (the dilation
// that was chosen, say).
func (r *Run) Update(change func(*record.Manifest)) error {
	if r.err == nil {
		change(&r.manifest)
		r.err = r.writeManifest()
	}
	return r.err
}

// PlotsDir is the folder of a run's drawings.
const PlotsDir = "plots"

// Plot keeps a drawing of the run as plots/NAME.svg. The name is one of the program's own.
func (r *Run) Plot(name string, svg []byte) error {
	if r.err != nil {
		return r.err
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return r.keep(fmt.Errorf("plot %q: not a name of letters a-z", name))
	}
	dir := filepath.Join(r.dir, PlotsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r.keep(err)
	}
	return r.keep(os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644))
}

// Finish completes the directory: data files are flushed and synchronised, summary.json is written, and the
// manifest takes the summary's status. s.Run is set to the directory. now is the end of the run. When something
// could not be written, the manifest says failed if it still can, and the first error is returned.
func (r *Run) Finish(now time.Time, s *record.Summary) error {
	if r.closed {
		return r.err
	}
	r.closed = true
	s.Run, s.Format = r.manifest.Run, Format
	r.manifest.Fidelity = s.Fidelity
	r.closeFiles()
	if r.err != nil {
		s.Status = record.Failed
		if s.Error == "" {
			s.Error = r.err.Error()
		}
	}
	if err := writeJSON(filepath.Join(r.dir, SummaryFile), s); err != nil && r.err == nil {
		r.err = err
	}
	return r.end(now, s.Status, s.Error)
}

// Abandon closes a run that has no summary to finish with; it does nothing after Finish, so it may be deferred.
func (r *Run) Abandon(now time.Time, why error) error {
	if r.closed {
		return r.err
	}
	r.closed = true
	r.closeFiles()
	return r.end(now, record.Failed, why.Error())
}

// end writes the last manifest.
func (r *Run) end(now time.Time, status, why string) error {
	r.manifest.Ended = now.UTC().Format(time.RFC3339)
	r.manifest.Status, r.manifest.Error = status, why
	if r.err != nil {
		r.manifest.Status = record.Failed
		if why == "" {
			r.manifest.Error = r.err.Error()
		}
	}
	r.manifest.Files = r.contents()
	if err := r.writeManifest(); err != nil && r.err == nil {
		r.err = err
	}
	return r.err
}

func (r *Run) closeFiles() {
	for _, name := range r.order {
		if err := r.files[name].close(); err != nil && r.err == nil {
			r.err = err
		}
	}
	_ = r.reserve.Close() // nothing of it is kept
}

// contents lists the files of the run with their sums, so that what is changed later shows.
func (r *Run) contents() []record.File {
	var out []record.File
	for _, name := range append([]string{LabFile, SummaryFile}, r.order...) {
		if f, err := sum(filepath.Join(r.dir, name)); err == nil {
			out = append(out, f)
		}
	}
	return out
}

// sum describes a file.
func sum(path string) (_ record.File, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return record.File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(h, f)
	return record.File{Name: filepath.Base(path), Bytes: n, Sum: h.Sum32()}, err
}

func (r *Run) writeManifest() error {
	return writeJSON(filepath.Join(r.dir, ManifestFile), r.manifest)
}

// writeJSON writes v, indented, in place of whatever path holds. A reader sees the old file or the new one.
func writeJSON(path string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an expectation reads <=, not \u003c=
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replaceFile(path, b.Bytes())
}

// replaceFile writes a temporary file beside path, synchronises it and renames it to path.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the write error is what matters
		}
	}()
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
