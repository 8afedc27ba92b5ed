package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
)

// filesPrefix begins the names of folders with the files of a program, which are in the folder for
// temporary files. The agent follows, as a runtime.Owner, and a random number.
const filesPrefix = "weft-files-"

// placeFiles writes files into a new folder that every user may read. CleanFiles removes it if this
// process is killed.
func placeFiles(files map[string][]byte) (folder string, err error) {
	owner, err := runtime.Self()
	if err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp("", filesPrefix+owner.String()+"_"); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(folder) // names are another machine's
	if err == nil {
		err = cleanup.Join(writeAll(root, files), root.Close())
	}
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		return "", cleanup.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// CleanFiles removes the folders of placeFiles whose agent, a process of this user on this machine,
// has ended, and returns them. unseen is why it could not look for them.
func CleanFiles() (removed []string, unseen, err error) {
	all, err := os.ReadDir(os.TempDir())
	if err != nil {
		return nil, err, nil
	}
	var failed cleanup.Errors
	for _, entry := range all {
		text, prefixed := strings.CutPrefix(entry.Name(), filesPrefix)
		text, _, numbered := strings.Cut(text, "_")
		owner, ok := runtime.ParseOwner(text)
		if !prefixed || !numbered || !ok || !owner.Dead() {
			continue
		}
		name := filepath.Join(os.TempDir(), entry.Name())
		var s unix.Stat_t
		err := unix.Lstat(name, &s)
		switch {
		case errors.Is(err, unix.ENOENT) || err == nil && int(s.Uid) != os.Geteuid(): // removed meanwhile, or not ours
			continue
		case err == nil:
			err = os.RemoveAll(name)
		}
		if err != nil {
			failed.Add(err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, nil, failed.Err()
}

func writeAll(root *os.Root, files map[string][]byte) error {
	for name, text := range files {
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = cleanup.Join(err, f.Chmod(0o755), f.Close()); err != nil { // whatever the umask
			return err
		}
	}
	return nil
}
