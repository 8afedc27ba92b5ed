package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/fuzztest"
	"weft/internal/golden"
	"weft/orchestrator/lab"
	"weft/orchestrator/machine"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// newSub returns a submission of four points in two shards.
func newSub() *sweep.Submission {
	return &sweep.Submission{Format: sweep.Format, ID: "sweep-20260101T000000-sim", Lab: "many", Kind: "sim", Points: make([]string, 4),
		Shards: 2, Began: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Series: "S"}
}

func TestScript(t *testing.T) {
	r := &sweep.Round{Number: 2, Workers: 3, Memory: 1 << 30}
	emu := newSub()
	emu.Kind = "emu"
	text := Script("/sh/it's/weft", "/sh/many/sweep 1", r) + "\nsbatch " +
		strings.Join(Arguments(newSub(), r, "/sh/slurm.sh", "/sh/100%/slurm"), " ") + "\nsbatch " +
		strings.Join(Arguments(emu, &sweep.Round{}, "/sh/slurm.sh", "/sh/slurm"), " ") + "\n"
	golden.File(t, "testdata/script.golden", text)
}

// The secret is on no command line, and each agent has a machine to itself.
func TestSrun(t *testing.T) {
	p := &machine.Placement{Name: "weft-run-a", Count: 3, Meet: "10.0.0.1:7", Secret: "hush"}
	text := strings.Join(srun(p, "/sh/weft"), " ")
	if want := "srun --label --job-name=weft-run-a --comment=0.0.0.0. --nodes=3 --ntasks=3 --ntasks-per-node=1 --exclusive " +
		"--export=ALL --chdir=/ --kill-on-bad-exit=1 --input=none /sh/weft machine --meet 10.0.0.1:7"; text != want {
		t.Errorf("%s, expected %s", text, want)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{"12\n": "12", "7;cluster\n": "7", "": "", "x": "", "-1": "", "1 2": ""} {
		if got, err := parseJob(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	got := parseNodes("m1|8|idle\nm1|8|idle\nm2|4|mix\nm3|4|down\nm4|4|idle*\nm5|x|idle\nm6\nm7|2|alloc\nm8|2|drain\nm9|2|idle~\n")
	if len(got) != 4 || got["m1"] != 8 || got["m2"] != 4 || got["m7"] != 2 || got["m9"] != 2 {
		t.Errorf("%v", got)
	}
	tasks := parseTasks("0|RUNNING|m1|7|None\n1|RUNNING|m9|8|None\n1|PENDING||7|Resources\n2|COMPLETED|m2|9|None\n"+
		"3|NODE_FAIL|m2|7|None\n3|RUNNING|m1|7|None\n9|RUNNING|m1|7|None\nN/A|RUNNING|m1|7|None\nx\n", 5, "7", "9")
	want := []sweep.Task{
		{Shard: 0, State: sweep.Running, Host: "m1", Tries: 1}, {Shard: 1, State: sweep.Waiting, Error: "Resources"},
		{Shard: 2, State: sweep.Done, Host: "m2", Tries: 1}, {Shard: 3, State: sweep.Failed, Host: "m2", Error: "node_fail", Tries: 1},
	}
	if !slices.Equal(tasks, want) {
		t.Errorf("%+v", tasks)
	}
}

func FuzzOutput(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add("0|RUNNING|m1|7|None\nm1|8|idle\n12;x\n", 3)
	corpus.Fuzz(func(t *testing.T, text string, shards int) {
		shards = min(max(shards, 0), 1000)
		for _, task := range parseTasks(text, shards, "7") {
			if task.Shard < 0 || task.Shard >= shards {
				t.Fatalf("%+v", task)
			}
		}
		for _, cpus := range parseNodes(text) {
			if cpus < 1 {
				t.Fatal(cpus)
			}
		}
		_, _ = parseJob(text)
	})
}

// Without Slurm a submission says what is missing. With commands that answer, a job is started,
// listed and cancelled, and leaves no files.
func TestScheduler(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	s := Scheduler{}
	if err := s.Check(t.Context(), "sim"); err == nil || !strings.Contains(err.Error(), "no Slurm here") {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"sinfo":   "echo 'm1|8|idle'",
		"sbatch":  "echo 42",
		"squeue":  fmt.Sprintf("case \"$*\" in *--name=weft-s-1*) echo '0|COMPLETED|m1|%d|None';; esac", os.Geteuid()),
		"scancel": "exit 0",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "many", newSub().ID)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	whole := newSub()
	whole.File, whole.Engine = "many.yaml", lab.EngineOptions{Kind: "sim"}
	whole.Text = "weft: 1\nname: many\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n" +
		"sweep: {seed: [1, 2, 3, 4]}\n"
	whole.Points = []string{"seed=1", "seed=2", "seed=3", "seed=4"}
	d, err := shard.Create(path, whole)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := s.Slots(t.Context(), "sim")
	emu, err2 := s.Slots(t.Context(), "emu")
	if sim != 8 || emu != 1 || err != nil || err2 != nil {
		t.Errorf("%d and %d slots, %v, %v", sim, emu, err, err2)
	}
	r := sweep.Round{Number: 1}
	if err := s.Start(t.Context(), d, &r); err != nil || r.Handle != "42" {
		t.Fatal(r.Handle, err)
	}
	if all, err := s.Tasks(t.Context(), d, r); err != nil || len(all) != 1 || all[0].State != sweep.Done {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := s.Tasks(t.Context(), d, sweep.Round{Number: 2}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	for range 2 {
		if err := s.End(t.Context(), d, r); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte("#!/bin/sh\necho 'error: no such partition' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), d, &r); err == nil || !strings.Contains(err.Error(), "no such partition") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(path, shard.Folder, binFile)); !os.IsNotExist(err) {
		t.Error("weft's copy is left", err)
	}
}

// Of a failed task the status has what its shard said last.
func TestLastLine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	if said := lastLine(log); said != "" {
		t.Error(said)
	}
	for text, want := range map[string]string{"": "", "\n\n": "", "one": ": one", "one\ntwo\n": ": two",
		strings.Repeat("x", 2*maxLine) + "\n\x1btwo\n\n": ": \uFFFDtwo"} {
		if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if said := lastLine(log); said != want {
			t.Errorf("%.20q: %q, want %q", text, said, want)
		}
	}
}

// What a command says in several lines is one, without its name.
func TestReason(t *testing.T) {
	const text = "sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n" +
		"sinfo: error: fetch_config: DNS SRV lookup failed\nsinfo: error: fetch_config: DNS SRV lookup failed\n" +
		"sinfo: fatal: Could not establish a configuration source\n"
	const want = "resolve_ctls_from_dns_srv: res_nsearch error: Unknown host; fetch_config: DNS SRV lookup failed; " +
		"Could not establish a configuration source"
	if got := reason("sinfo", text); got != want {
		t.Errorf("%q", got)
	}
	if got := reason("sbatch", "\n \x1b[1m\n"); got != "\uFFFD[1m" {
		t.Errorf("%q", got)
	}
}

// Another process than the one that placed agents removes their job from its cluster, and waits
// until it has ended.
func TestRemoveAgents(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("SLURM_CONF", "/elsewhere")
	t.Setenv("LOG", filepath.Join(bin, "log"))
	for name, text := range map[string]string{
		"scancel": `echo "scancel $SLURM_CONF $*" >>"$LOG"`,
		"squeue":  `echo "squeue $SLURM_CONF $*" >>"$LOG"; [ "$(grep -c squeue "$LOG")" -gt 1 ] || echo 42`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := new(Agents).Remove(t.Context(), "/cluster/slurm.conf", "weft-run-a"); err != nil {
		t.Fatal(err)
	}
	const asked = "squeue /cluster/slurm.conf --me --noheader --name=weft-run-a\n"
	text, err := os.ReadFile(filepath.Join(bin, "log"))
	if err != nil || string(text) != "scancel /cluster/slurm.conf --quiet --name=weft-run-a\n"+asked+asked {
		t.Errorf("%s%v", text, err)
	}
}
