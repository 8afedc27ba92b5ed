// Package labfile reads and checks the labs that a user names.
//
// In goes a name: a file, - for standard input, or a lab inside the program by path or name. Out
// come checked labs, one for each point of the sweep, or all problems at once: of the text, of the
// network that it describes and of its expectations, each with its line and column.
//
// The one idea: problems of one stage do not hide those of the next. A section with an error is
// left out of later checks, and so is everything that only follows from it.
//
// A file on disk takes precedence over a lab inside the program, a directory does not. Standard
// input is read once and is the same wherever it is named. Files that a lab names are found beside
// it, also inside the program.
//
// Start reading at Open and Load; Complete serves the shell.
package labfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/clip"
	"weft/internal/regular"
	library "weft/labs"
	"weft/orchestrator/catalogue"
	"weft/orchestrator/lab"
)

// errIrregular rejects a pipe, a socket or a device.
var errIrregular = errors.New("it is not a regular file, and a lab is one; - reads a lab from standard input")

// Stdin names standard input as an argument, and StdinName in messages.
const (
	Stdin     = "-"
	StdinName = "stdin"
)

// NameOf returns the name of a lab in messages: the argument, or StdinName.
func NameOf(arg string) string {
	if arg == Stdin {
		return StdinName
	}
	return arg
}

// Source is the text of a lab before parsing.
type Source struct {
	Name  string // for messages and results
	Text  []byte
	Read  func(string) ([]byte, error) // reads the files that the lab names
	Files fs.FS                        // the folder of the lab file, for jobs
	Note  string                       // what else the name may mean, if it is not clear; empty: nothing

	recorder *Recorder // of what is read; nil: there is none yet
}

// Open reads a lab: a file, standard input or, if there is no such file, a lab inside the
// program by its path or name, such as quickstart, labs/pc4/incast.yaml or pc4-incast. A directory
// is no lab, and hides none. builtIn skips files.
func Open(name string, builtIn bool) (Source, error) {
	if strings.ContainsFunc(name, clip.Forbidden) {
		// Messages begin with the name. An untrusted checkout must not write lines of its own.
		return Source{}, &fs.PathError{Op: "open", Path: clip.Line(name),
			Err: errors.New("its name has characters that do not print; rename the file")}
	}
	if name == Stdin {
		text, err := readStdin()
		return Source{Name: StdinName, Text: text, Read: beside(StdinName), Files: folder(StdinName)}, err
	}
	text, err := []byte(nil), error(fs.ErrNotExist)
	if !builtIn {
		if text, err = readLab(name); err == nil {
			return Source{Name: name, Text: text, Read: beside(name), Files: folder(name), Note: hidden(name)}, nil
		}
	}
	isFolder := errors.Is(err, unix.EISDIR)
	if !errors.Is(err, fs.ErrNotExist) && !isFolder {
		return Source{}, err
	}
	inside, ok := catalogue.Find(library.Files, name)
	switch {
	case !ok && isFolder:
		return Source{}, noLab(name, err)
	case !ok:
		return Source{}, notThere(name, err)
	}
	src := Source{Name: "labs/" + inside, Read: func(other string) ([]byte, error) {
		return library.Files.ReadFile(path.Join(path.Dir(inside), other))
	}}
	if labs := labsIn(name); isFolder && len(labs) > 0 {
		src.Note = fmt.Sprintf("%s: took the lab inside weft, not %s in the directory of that name", name, labs[0])
	}
	files, bad := fs.Sub(library.Files, path.Dir(inside))
	src.Text, err = library.Files.ReadFile(inside)
	src.Files = files
	return src, errors.Join(err, bad)
}

// hidden returns the note about a file without a suffix that has the name of a lab inside the
// program.
func hidden(name string) string {
	if path.Ext(name) != "" {
		return ""
	}
	if _, ok := catalogue.Find(library.Files, name); !ok {
		return ""
	}
	return fmt.Sprintf("%s: took the file of that name, not the lab inside weft", name)
}

// noLab returns the error for a directory, with a lab in it.
func noLab(name string, err error) error {
	if labs := labsIn(name); len(labs) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, labs[0])
	}
	return err
}

// labsIn returns the lab files in a directory.
func labsIn(name string) (files []string) {
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		// an error means that the name is no pattern; then nothing is found
		found, _ := filepath.Glob(filepath.Join(name, pattern))
		files = append(files, found...)
	}
	return files
}

// Folder returns the folder of a file as a file system whose files can be opened without risk.
func Folder(file string) fs.FS { return folder(file) }

// folder is the folder of a lab file as a file system. Only regular files and folders in it can be
// opened.
type folder string

// Open implements fs.FS.
func (labFile folder) Open(name string) (_ fs.File, err error) {
	root, err := os.OpenRoot(filepath.Dir(string(labFile)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if info, err := root.Stat(name); err == nil && info.IsDir() {
		return root.Open(name)
	}
	return regular.OpenIn(root, name, os.O_RDONLY, 0)
}

// notThere returns the error for a name that is neither a file nor a lab, with similar labs.
func notThere(name string, err error) error {
	hint := "weft labs lists those that need no file"
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	for _, file := range labsIn(filepath.Dir(name)) {
		if strings.TrimSuffix(file, filepath.Ext(file)) == filepath.Clean(stem) {
			return Missing{err, "did you mean " + file + "?"}
		}
	}
	if near := catalogue.Near(library.Files, name); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? weft labs lists the labs inside weft", strings.Join(near, " or "))
	}
	return Missing{err, hint}
}

// Missing is the error for a lab that does not exist, with suggestions.
type Missing struct {
	error
	Hint string
}

func (m Missing) Error() string { return m.error.Error() + "; " + m.Hint }
func (m Missing) Unwrap() error { return m.error }

// readLab reads a regular file. Other files, such as a pipe without a writer, could block forever.
// It reads one byte more than the parser accepts, so that the parser reports files that are too
// large.
func readLab(name string) (_ []byte, err error) {
	f, err := regular.Open(name)
	if errors.Is(err, regular.ErrNotRegular) {
		why := errIrregular
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			why = unix.EISDIR
		}
		return nil, &fs.PathError{Op: "read", Path: name, Err: why}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, lab.MaxText+1))
}

// readStdin reads standard input and replaces it with a copy: the command line may be executed
// again in a user namespace, and may name - twice.
func readStdin() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, lab.MaxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", StdinName, err)
	}
	fd, err := unix.MemfdCreate("lab", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", StdinName, err)
	}
	kept := os.NewFile(uintptr(fd), StdinName)
	if _, err = io.Copy(kept, bytes.NewReader(text)); err == nil {
		_, err = kept.Seek(0, io.SeekStart)
	}
	os.Stdin = kept
	return text, err
}

// maxTrace is the largest file that a lab may name, in bytes; see lab.ErrTooLarge.
const maxTrace = 4 << 20

// beside returns a reader of the files that a lab names. They must lie below its directory;
// symbolic links do not lead out of it.
func beside(labFile string) func(string) ([]byte, error) {
	return func(name string) (_ []byte, err error) {
		folder, err := os.OpenRoot(filepath.Dir(labFile))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
		f, err := regular.OpenIn(folder, name, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		text, err := io.ReadAll(io.LimitReader(f, maxTrace+1))
		if err == nil && len(text) > maxTrace {
			err = &fs.PathError{Op: "read", Path: name, Err: lab.ErrTooLarge}
		}
		return text, err
	}
}
