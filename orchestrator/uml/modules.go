package uml

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are the modules that labs and Weft's tests use, by file name. Modules that are built in or
// missing are skipped; their users find out by trying.
var wanted = []string{
	"tun", "veth", "bridge", "vrf", "ifb", "dummy", "macvlan", "vxlan",
	"sch_netem", "sch_red", "sch_htb", "sch_tbf", "sch_prio", "sch_fq", "sch_fq_codel", "sch_ingress", "sch_plug",
	"cls_basic", "cls_bpf", "cls_flower", "cls_fw", "cls_matchall", "cls_u32",
	"act_bpf", "act_gact", "act_mirred", "act_pedit", "act_police", "act_skbedit",
	"inet_diag", "tcp_diag", "udp_diag",
}

// dependencies is a modules.dep (modprobe.d(5), depmod(8)): for each path, the modules to load
// before it, last first.
type dependencies map[string][]string // by path

func parseDependencies(r io.Reader) (dependencies, error) {
	deps := dependencies{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, list, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			return nil, fmt.Errorf("modules.dep: %q is not a module and what it needs", lines.Text())
		}
		deps[name] = strings.Fields(list)
	}
	return deps, lines.Err()
}

// order returns the paths of the named modules and their dependencies, each once and after its
// dependencies.
func (d dependencies) order(names []string) []string {
	paths := map[string]string{}
	for p := range d {
		paths[strings.TrimSuffix(path.Base(p), ".ko")] = p
	}
	var out []string
	done := map[string]bool{}
	var add func(p string)
	add = func(p string) {
		if done[p] {
			return
		}
		done[p] = true
		for _, need := range d[p] {
			add(need)
		}
		out = append(out, p)
	}
	for _, name := range names {
		if p, ok := paths[name]; ok {
			add(p)
		}
	}
	return out
}

// loadModules loads the wanted modules of a depmod(8) directory.
func loadModules(dir string) error {
	f, err := os.Open(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	defer f.Close()
	deps, err := parseDependencies(f)
	if err != nil {
		return err
	}
	for _, p := range deps.order(wanted) {
		if err := loadModule(filepath.Join(dir, filepath.FromSlash(p))); err != nil {
			return fmt.Errorf("load module %s: %w", p, err)
		}
	}
	return nil
}

func loadModule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}
