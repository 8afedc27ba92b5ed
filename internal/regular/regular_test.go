package regular

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Anything but a regular file is refused without blocking, whatever the flag.
func TestIrregularFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		os.Symlink("pipe", filepath.Join(dir, "link")),
		os.Symlink("/dev/zero", filepath.Join(dir, "device"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "socket", "folder", "link", "device"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREATE} {
			if name == "folder" && flag != os.O_RDONLY {
				continue // EISDIR says so
			}
			if f, err := OpenFile(filepath.Join(dir, name), flag, 0o600); !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s, flags %#x: %v, %v", name, flag, f, err)
			}
			if f, err := OpenIn(root, name, flag, 0o600); err == nil {
				t.Errorf("%s below a root, flags %#x: %v", name, flag, f)
			}
		}
		if _, err := OpenIn(root, name, os.O_RDONLY, 0); err == nil || errors.Is(err, errOutside) != (name == "device") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An output is written completely, replacing what was there. A FIFO without a reader is refused
// without blocking.
func TestWriteOutput(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a longer text", "short"} {
		if err := WriteOutput(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := WriteOutput(pipe, nil); !errors.Is(err, ErrNoReader) {
		t.Error(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := WriteOutput(pipe, []byte("read along")); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "read along" {
		t.Errorf("%q, %v", got, err)
	}
	if err := WriteOutput("/dev/full", []byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
}

// A file is read completely or not at all.
func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path, 5); err != nil || !bytes.Equal(text, []byte("12345")) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := Read(path, 4); !errors.Is(err, ErrTooLarge) || text != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := Read(path+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Whether a file can be written is decided without writing it.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, good := range map[string]bool{
		file: true, filepath.Join(dir, "new"): true, pipe: false, dir: false,
		filepath.Join(dir, "none", "new"): false, filepath.Join(file, "new"): false,
	} {
		if err := Writable(path); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
