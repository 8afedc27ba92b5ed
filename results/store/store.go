package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
	"weft/results/record"
)

// The files of a run.
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
	NetworkFile     = "network.json"
	FramesFile      = "frames.parquet"
	FrameConnsFile  = "frame_conns.parquet"
	MetricsFile     = "metrics.parquet"
)

// Options describe a run to Open.
type Options struct {
	Root     string          // directory of all runs; empty: DefaultRoot()
	Now      time.Time       // start of the run
	Series   Series          // of the command line; names the directory
	Manifest record.Manifest // Lab must be set; Open fills in Run, Started, Status and Process
	LabText  []byte          // contents of the lab file, kept with the results; may be empty
	Inputs   Inputs          // files that the lab names, kept beside it
	As       string          // path in the run's files if it is moved there once it is finished; empty: its directory
}

// Bounds of Inputs, since each point of a sweep has a copy.
const (
	MaxInputs     = 4 << 20 // bytes
	MaxInputFiles = 1000
)

// TooLarge is the value of Inputs.Left for more than MaxInputs.
var TooLarge = fmt.Sprintf("the files that the lab names have more than %d MiB", MaxInputs>>20)

// Inputs are the files that a lab names. They are all kept in the directory of a run, or none.
type Inputs struct {
	Lab   string            // the name of the lab file; -: standard input
	Files map[string][]byte // by their path relative to the lab file
	Left  string            // why they are not kept; empty: they are
}

// check sets Left if the files do not fit into the directory of a run.
func (in *Inputs) check() {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		size += len(in.Files[name])
		first, _, _ := strings.Cut(name, "/")
		if !fs.ValidPath(name) || first[0] == '.' || slices.Contains([]string{".parquet", ".json", ".jsonl", ".html"},
			filepath.Ext(first)) || slices.Contains([]string{LabFile, PlotsDir}, first) {
			in.Left = cmp.Or(in.Left, fmt.Sprintf("the directory of a run may have a file %q of its own", first))
		}
	}
	switch {
	case len(in.Files) > MaxInputFiles:
		in.Left = fmt.Sprintf("the lab names more than %d files", MaxInputFiles)
	case size > MaxInputs:
		in.Left = TooLarge
	}
	if in.Left != "" {
		in.Files = nil
	}
}

// Series identifies a run among those that one command line makes of a lab, such as the points of a
// sweep, which start and end in any order. The zero value is a single run.
type Series struct {
	ID     string    // unique for each command line; empty for a single run
	Began  time.Time // start of the command line; zero: the start of the run
	Number int       // of this run, from 1
	Of     int       // number of runs
	Sweep  string    // name of the directory, beside the runs, about all of them; may be empty
}

// Stamp returns the start of the series to the second, which begins the names of its files.
func (s *Series) Stamp() string { return s.Began.UTC().Format("20060102T150405") }

// A Run is the directory of a run while it is written. The first error of any write is kept: later
// writes and Finish return it. A Run is not safe for concurrent use.
type Run struct {
	dir      string
	manifest record.Manifest
	files    map[string]stream
	live     bool     // an emulation, whose data is flushed by time too
	order    []string // names in files, in order of creation
	inputs   []string // names of the files that the lab names
	reserve  *os.File // disk space for the last manifest and the summary
	err      error
	closed   bool
}

// Open creates the directory <root>/<lab>/<stamp>-<n> and writes a manifest with status "running"
// to it. The stamp is the second in which the series started, and n the number of the run in it. If
// that name is taken, n advances by the length of the series, so that two series never interleave.
// After an error no directory is left.
func Open(o Options) (*Run, error) {
	if err := checkName(o.Manifest.Lab); err != nil {
		return nil, err
	}
	if o.Series.Began.IsZero() {
		o.Series.Began = o.Now
	}
	parent := filepath.Join(rootDir(o.Root), o.Manifest.Lab)
	undo, err := makeParents(parent)
	if err != nil {
		return nil, fmt.Errorf("create a run directory: %w", err)
	}
	dir, err := makeDir(parent, o.Series)
	if err != nil {
		undo()
		return nil, fmt.Errorf("create a run directory: %w", err)
	}
	r := &Run{dir: dir, manifest: o.Manifest, files: map[string]stream{}, live: o.Manifest.Engine != "sim"}
	r.manifest.Format = Format
	r.manifest.Run = filepath.ToSlash(cmp.Or(o.As, dir))
	r.manifest.Started = o.Now.UTC().Format(time.RFC3339)
	r.manifest.Status = record.Running
	r.manifest.Process = runProcess()
	if s := o.Series; s.ID != "" {
		r.manifest.Series = &record.Series{ID: s.ID, Number: s.Number, Of: s.Of, Sweep: s.Sweep}
	}
	if o.Inputs.check(); o.Inputs.Left != "" {
		r.manifest.Original = &record.Original{Lab: o.Inputs.Lab, Why: o.Inputs.Left}
	}
	if err := r.begin(&o); err != nil {
		err = errors.Join(err, os.RemoveAll(dir)) // nobody else knows the directory
		undo()
		return nil, err
	}
	return r, nil
}

// begin writes the manifest, the lab file and the files that it names, and reserves space for the
// end.
func (r *Run) begin(o *Options) (err error) {
	if err := r.writeManifest(); err != nil {
		return err
	}
	if len(o.LabText) > 0 {
		if err := replaceFile(filepath.Join(r.dir, LabFile), o.LabText); err != nil {
			return err
		}
		r.inputs = slices.Sorted(maps.Keys(o.Inputs.Files))
	}
	for _, name := range r.inputs {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := NewFile(o.Inputs.Files[name])(path); err != nil {
			return err
		}
	}
	r.reserve, err = reserve(r.dir)
	return err
}

// Network writes network.json.
func (r *Run) Network(m *record.NetworkMap) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = replaceFile(filepath.Join(r.dir, NetworkFile), append(text, '\n'))
	}
	if err != nil {
		return r.fail(fmt.Errorf("%s: %w", NetworkFile, err))
	}
	return nil
}

// checkName returns an error for lab names that would leave the directory of runs.
func checkName(lab string) error {
	if lab == "" || lab != filepath.Base(lab) || strings.HasPrefix(lab, ".") {
		return fmt.Errorf("lab name %q cannot name a directory", lab)
	}
	return nil
}

// rootDir returns the directory of all runs.
func rootDir(root string) string {
	if root == "" {
		return DefaultRoot()
	}
	return root
}

// RootVar is the environment variable that names the directory of all runs, unless the command line
// does.
const RootVar = "WEFT_OUT"

// DefaultRoot returns the directory of all runs without an option of the command line: the value of
// RootVar, or runs.
func DefaultRoot() string {
	if root := os.Getenv(RootVar); root != "" {
		return root
	}
	return "runs"
}

// CheckRoot returns an error if runs of labs cannot be written below root: if root, the directory
// of a lab in it, or the nearest existing parent is not a writable directory. It leaves nothing,
// and it does not detect everything, such as a full disk.
func CheckRoot(root string, labs ...string) error {
	err := checkDir(rootDir(root))
	for _, lab := range labs {
		if err == nil {
			err = checkDir(filepath.Join(rootDir(root), lab))
		}
	}
	return err
}

// checkDir returns an error unless dir, or the nearest parent that exists, is a writable directory.
func checkDir(dir string) error {
	dir = filepath.Clean(dir)
	for wanted := dir; ; {
		info, err := os.Stat(dir)
		if to, lerr := os.Readlink(dir); errors.Is(err, fs.ErrNotExist) && lerr == nil {
			return fmt.Errorf("cannot store runs: %s is a symbolic link to %s, which does not exist; "+
				"create it, or name another directory", dir, to)
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
		if err == nil && dir != wanted {
			err = probeDir(dir)
		}
		if err != nil {
			return fmt.Errorf("cannot store runs: %w; --out DIR names another directory", err)
		}
		return nil
	}
}

// probeDir returns an error unless a directory can be created in dir. Some file systems, such as
// /proc, and removed directories deny it although they grant access.
func probeDir(dir string) error {
	made, err := os.MkdirTemp(dir, ".weft-")
	var path *fs.PathError
	switch {
	case err == nil:
		return os.Remove(made)
	case dir == "." && errors.Is(err, fs.ErrNotExist):
		return errors.New("the working directory has been removed")
	case errors.As(err, &path):
		err = path.Err
	}
	return fmt.Errorf("create a directory in %s: %w", dir, err)
}

// makeParents creates dir and its parents. undo removes those that it created and that are empty.
func makeParents(dir string) (undo func(), err error) {
	var created []string // the deepest first
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		created = append(created, d)
	}
	undo = func() {
		for _, d := range created {
			_ = os.Remove(d) // one that is not empty stays
		}
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		undo()
	}
	return undo, err
}

// makeDir creates <parent>/<stamp>-<n> with the first free n of the series. Creating a directory is
// atomic, so two runs of the same second never share one.
func makeDir(parent string, s Series) (string, error) {
	for n := max(s.Number, 1); ; n += max(s.Of, 1) {
		dir := filepath.Join(parent, fmt.Sprintf("%s-%d", s.Stamp(), n))
		err := os.Mkdir(dir, 0o755)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// Claim creates a file or directory in the directory of a lab and returns its path. The name is
// name+ext or, if that exists, name-2+ext, name-3+ext and so on. create must fail with fs.ErrExist
// for an existing path, so that two callers never get the same one.
func Claim(root, lab, name, ext string, create func(path string) error) (path string, err error) {
	if err := checkName(lab); err != nil {
		return "", err
	}
	parent := filepath.Join(rootDir(root), lab)
	undo, err := makeParents(parent)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path = filepath.Join(parent, name+ext)
		if n > 1 {
			path = filepath.Join(parent, fmt.Sprintf("%s-%d%s", name, n, ext))
		}
		if err = create(path); !errors.Is(err, fs.ErrExist) {
			if err != nil {
				undo()
			}
			return path, err
		}
	}
}

// NewFolder creates a new directory, for Claim.
func NewFolder(path string) error { return os.Mkdir(path, 0o755) }

// NewFile returns a function that creates a new file with the given content, for Claim.
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

// Dir returns the directory of the run. It is relative if Options.Root was.
func (r *Run) Dir() string { return r.dir }

// Update changes the manifest of a run in progress, for values known only after the start, such as
// the chosen dilation.
func (r *Run) Update(change func(*record.Manifest)) error {
	if r.err == nil {
		change(&r.manifest)
		r.err = r.writeManifest()
	}
	return r.err
}

// PlotsDir is the directory of a run's drawings.
const PlotsDir = "plots"

// Plot writes a drawing of the run as plots/NAME.svg. The name consists of a-z and -.
func (r *Run) Plot(name string, svg []byte) error {
	if r.err != nil {
		return r.err
	}
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return r.fail(fmt.Errorf("plot name %q: use letters a-z and -", name))
	}
	dir := filepath.Join(r.dir, PlotsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r.fail(err)
	}
	return r.fail(os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644))
}

// Finish completes the directory at the end of the run: it flushes and syncs the data files, writes
// summary.json with s.Run set to the directory or to Options.As, and copies the status of the
// summary to the manifest. If a write failed, the manifest gets status failed if possible, and
// Finish returns the first error.
func (r *Run) Finish(now time.Time, s *record.Summary) error {
	if r.closed {
		return r.err
	}
	r.closed = true
	s.Run, s.Format = r.manifest.Run, Format
	r.manifest.Fidelity, r.manifest.Carried = s.Fidelity, s.Carried
	r.closeFiles()
	if r.err != nil {
		s.Status = record.Failed
		if s.Error == "" {
			s.Error = r.err.Error()
		}
	}
	r.err = cmp.Or(r.err, writeJSON(filepath.Join(r.dir, SummaryFile), s))
	return r.end(now, s.Status, s.Error)
}

// Fail marks a finished run as failed because something that belongs to it, such as its report,
// could not be written. It changes s, the manifest and the summary in the run's directory.
func Fail(dir string, s *record.Summary, why error) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	r := &Run{dir: dir, manifest: *m}
	for _, f := range r.manifest.Files {
		if f.Name != LabFile && f.Name != SummaryFile {
			r.order = append(r.order, f.Name)
		}
	}
	s.Status, s.Error = record.Failed, why.Error()
	r.manifest.Status, r.manifest.Error = s.Status, s.Error
	err = writeJSON(filepath.Join(dir, SummaryFile), s)
	r.manifest.Files = r.contents()
	return errors.Join(r.writeManifest(), err)
}

// Abandon closes a run without a summary. It does nothing after Finish, so it may be deferred.
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
	r.err = cmp.Or(r.err, r.writeManifest())
	return r.err
}

// closeFiles flushes and closes all data files, and releases the reserved space.
func (r *Run) closeFiles() {
	for _, name := range r.order {
		r.err = cmp.Or(r.err, r.files[name].close())
	}
	_ = r.reserve.Close() // it has no name and keeps no data
}

// contents returns the files of the run with their checksums, which reveal later changes.
func (r *Run) contents() []record.File {
	var out []record.File
	for _, name := range slices.Concat([]string{LabFile, SummaryFile}, r.inputs, r.order) {
		if f, err := fileSum(filepath.Join(r.dir, name)); err == nil {
			f.Name = name
			out = append(out, f)
		}
	}
	return out
}

// fileSum returns the size and checksum of a file.
func fileSum(path string) (_ record.File, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return record.File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(h, f)
	return record.File{Name: filepath.Base(path), Bytes: n, Sum: h.Sum32()}, err
}

// writeManifest replaces manifest.json.
func (r *Run) writeManifest() error {
	return writeJSON(filepath.Join(r.dir, ManifestFile), r.manifest)
}

// writeJSON replaces path with v as indented JSON. A reader sees the old file or the new one.
func writeJSON(path string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an expectation has <=, not \u003c=
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replaceFile(path, b.Bytes())
}

// replaceFile writes a temporary file beside path, syncs it and renames it to path.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the write error matters more
		}
	}()
	_, err = f.Write(content)
	if err = cmp.Or(err, syncAndClose(f)); err == nil {
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
