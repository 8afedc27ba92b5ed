package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cgroups is where systemd and every engine mount control groups.
const cgroups = "/sys/fs/cgroup"

// groups opens cgroup.procs of every control group that the container has of its own, so that
// programs in the node are limited like the container. The caller closes them.
func (p *proc) groups() (files []*os.File, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // cgroups(7)
		if len(f) != 3 || !strings.Contains(f[2], p.container) {
			continue
		}
		var file *os.File
		for _, hierarchy := range hierarchies(f[1]) {
			file, err = os.OpenFile(filepath.Join(cgroups, hierarchy, f[2], "cgroup.procs"), os.O_WRONLY, 0)
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("the container's control group: %w", err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("container %.12s has no control groups of its own", p.container)
	}
	return files, nil
}

// hierarchies returns the folders in which the groups of these controllers may be. No controllers
// means the unified hierarchy.
func hierarchies(controllers string) []string {
	if controllers == "" {
		return []string{"", "unified"}
	}
	return []string{strings.TrimPrefix(controllers, "name=")}
}
