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

// wanted are the modules that labs and the tests of Weft use, by the names of their files. What a kernel has built in, or
// does not have at all, is passed over: whoever needs it finds out by trying.
var wanted = []string{
	"tun", "veth", "bridge", "vrf", "ifb", "dummy", "macvlan", "vxlan",
	"sch_netem", "sch_red", "sch_htb", "sch_tbf", "sch_prio", "sch_fq", "sch_fq_codel", "sch_ingress", "sch_plug",
	"cls_basic", "cls_bpf", "cls_flower", "cls_fw", "cls_matchall", "cls_u32",
	"act_bpf", "act_gact", "act_mirred", "act_pedit", "act_police", "act_skbedit",
	"inet_diag", "tcp_diag", "udp_diag",
}

// dependencies is a modules.dep (modprobe.d(5), depmod(8)): what has to be loaded before a module, in the file's order:
// the last first.
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

// order returns the paths of the named modules and all that they need, each once and after what it needs.
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

// loadModules loads the wanted modules that are in a directory of depmod(8).
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
