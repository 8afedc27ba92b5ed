package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/shell"
	"weft/internal/testenv"
)

// walk is a reader of docs/scale-out.md, who types its commands as they stand.
type walk struct {
	*workspace
	page   map[string][]string              // command lines, by the heading above them
	names  *strings.Replacer                // names in the page, and those of the test
	on     func(*exec.Cmd) *exec.Cmd        // where commands run; nil: here
	aside  func(line string) (skipped bool) // does what is no command; may be nil
	export []string                         // environment
}

// newWalk returns a reader with a lab and a folder of labs. pairs are names in the page, and those
// of the test.
func newWalk(d *workspace, lab string, pairs ...string) *walk {
	d.t.Helper()
	text, err := os.ReadFile("../docs/scale-out.md")
	if err != nil {
		d.t.Fatal(err)
	}
	w := &walk{workspace: d, page: map[string][]string{}}
	heading := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		} else if command, ok := strings.CutPrefix(line, "    "); ok {
			command, _, _ = strings.Cut(command, " #")
			w.page[heading] = append(w.page[heading], strings.TrimSpace(command))
		}
	}
	if err := os.CopyFS(filepath.Join(d.dir, "labs"), os.DirFS(labs)); err != nil {
		d.t.Fatal(err)
	}
	d.writeLab("lab.yaml", lab)
	w.names = strings.NewReplacer(append(pairs, "/shared/runs", shell.Quote(filepath.Join(d.dir, "shared")),
		"unix:///var/run/docker.sock", os.Getenv("DOCKER_HOST"))...)
	return w
}

// section runs the commands under a heading. A sweep that the page only submits is awaited and
// collected.
func (w *walk) section(heading string) {
	w.t.Helper()
	if len(w.page[heading]) == 0 {
		w.t.Errorf("the page has no commands under %q", heading)
	}
	id, submitted := "", ""
	for _, line := range w.page[heading] {
		line = w.names.Replace(line)
		if w.aside != nil && w.aside(line) {
			continue
		}
		if name, ok := strings.CutPrefix(line, "export "); ok {
			w.export = append(w.export, name)
			continue
		}
		out := w.enter(strings.ReplaceAll(line, " ID", " "+id))
		if strings.Contains(line, "sweep submit") {
			w.finish(id, submitted)
			id, submitted = strings.TrimSpace(out), line
		}
		if strings.Contains(line, "sweep collect") {
			id = ""
		}
	}
	w.finish(id, submitted)
}

// finish waits for a sweep and collects it; "": there is none.
func (w *walk) finish(id, submitted string) {
	if id == "" {
		return
	}
	_, results, _ := strings.Cut(submitted, "--results ")
	if results != "" {
		results = " --results " + results
	}
	w.enter("weft sweep wait -q " + id + results)
	w.enter("weft sweep collect " + id + results)
}

// enter runs a line in a shell, and returns what it printed.
func (w *walk) enter(line string) string {
	w.t.Helper()
	cmd := w.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
	cmd.Env = append(append(cmd.Env, "PATH="+filepath.Dir(weft)+":"+os.Getenv("PATH")), w.export...)
	if w.on != nil {
		cmd = w.on(cmd)
	}
	r := w.startCommand(cmd).waitLong()
	w.t.Log(line)
	if r.code != 0 {
		w.t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// The sections of docs/scale-out.md with commands, which the tests below run, and TestCluster's.
var sections = []string{"Docker Swarm", "Kubernetes", "One lab in parts", "One lab on several machines", "Slurm",
	"Several machines", "Without a shared directory"}

// The sweeps of docs/scale-out.md work as they stand, on a manager that starts processes.
func TestScaleOutPage(t *testing.T) {
	d, f := newWorkspace(t), newFakeSwarm(t)
	w := newWalk(d, sharded)
	for heading := range maps.Keys(w.page) {
		if !slices.Contains(sections, heading) {
			t.Errorf("no test runs the commands under %q", heading)
		}
	}
	for _, heading := range []string{"Several machines", "Docker Swarm", "Without a shared directory", "Kubernetes"} {
		w.section(heading)
	}
	f.wantNothing(d)
}

// So does a lab in parts.
func TestPrivScaleOutPageInParts(t *testing.T) {
	testenv.NeedEmulation(t)
	newWalk(newWorkspace(t), acrossLab).section("One lab in parts")
}

// threeRacks is acrossLab with a rack for each machine.
var threeRacks = strings.Replace(acrossLab, "leaves: 2", "leaves: 3", 1)

// So do sweeps, and labs on several machines, where the machines are a swarm.
func TestClusterPage(t *testing.T) {
	c := needCluster(t)
	w := newWalk(c.d, sharded, "10.0.0.", "10.213.0.", "weft node lab ", "weft node across ")
	w.on = func(cmd *exec.Cmd) *exec.Cmd { return c.into(collectFrom, cmd) }
	w.section("Docker Swarm")
	w.section("Without a shared directory")
	c.d.writeLab("lab.yaml", threeRacks)
	w.aside = func(line string) bool {
		if agent, ok := strings.CutPrefix(line, "weft machine --listen 10.213.0.2:"); ok {
			for n := 2; n <= 3; n++ {
				args := strings.Fields(fmt.Sprintf("machine --listen 10.213.0.%d:%s", n, agent))
				p := c.d.startCommand(c.on(n, args...))
				p.awaitOutput(&p.stderr, "listening")
			}
			return true
		}
		return strings.Contains(line, "slurm:") // TestClusterSlurmPage
	}
	w.section("One lab on several machines")
	c.wantNothing()
}

// So do sweeps, and labs on several machines, under Slurm, for an ordinary user.
func TestClusterSlurmPage(t *testing.T) {
	d, _ := slurmWorkspace(t)
	openTo(t, filepath.Dir(weft))
	w := newWalk(d, sharded, "/home/me/runs", filepath.Join(d.dir, "home"), "SBATCH_PARTITION=short", "SBATCH_PARTITION=all")
	w.on = func(cmd *exec.Cmd) *exec.Cmd { return asNobody(cmd, d.dir) }
	w.section("Slurm")
	d.writeLab("lab.yaml", threeRacks)
	w.aside = func(line string) bool { return !strings.Contains(line, "slurm:") }
	w.section("One lab on several machines")
}
