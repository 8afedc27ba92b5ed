// Package slurm runs the shards of a sweep as an array job of Slurm, and the agents of one lab
// (package machine) as a job of one step.
//
// In goes the directory of a sweep on the shared file system, into which this program copies its
// own binary, so that the machines need nothing. Out come the states of the array's tasks.
//
// Slurm has no interface but its commands. They are asked for single fields with a separator, and
// what they print is read by the pure functions of output.go. Nothing here needs privileges: jobs
// run as the submitter, and emulations use user namespaces.
//
// A task whose machine dies is queued again by Slurm, and a task that ends with an error queues
// itself again, up to three times. SBATCH_PARTITION and the other variables of sbatch(1) apply.
//
// Start reading at Scheduler.Start; Script is the batch script. Agents are in agents.go.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// Names in the folder of the submission, while tasks run.
const (
	binFile    = "weft"
	scriptFile = "slurm.sh"
	logsFolder = "slurm"

	newSuffix = ".new" // of a copy that is not complete
)

const (
	answerTime = 30 * time.Second // for a command of Slurm, which waits for a busy controller
	endTime    = 60 * time.Second // for cancelled tasks to end
	pollTime   = 500 * time.Millisecond
	maxAnswer  = 16 << 20
)

// Scheduler runs shards on the Slurm cluster that SLURM_CONF or the machine's configuration names.
type Scheduler struct{}

// Name implements shard.Scheduler.
func (Scheduler) Name() string { return "slurm" }

// limited keeps the first bytes that are written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, maxAnswer-l.Len()))])
	return len(p), nil
}

// confVar is the environment variable that names the cluster by its configuration.
const confVar = "SLURM_CONF"

// ask runs a command of Slurm and returns what it prints.
func ask(ctx context.Context, name string, args ...string) (string, error) {
	return askAt(ctx, os.Getenv(confVar), name, args...)
}

// askAt is ask with the configuration of the cluster; "": that of the machine.
func askAt(ctx context.Context, conf, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // formats of the user's
		return strings.HasPrefix(v, "SQUEUE_") || strings.HasPrefix(v, "SINFO_") || strings.HasPrefix(v, confVar+"=")
	})
	if conf != "" {
		cmd.Env = append(cmd.Env, confVar+"="+conf)
	}
	var out, said limited
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errNoSlurm(err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, reason(name, said.String()))
	}
	return out.String(), nil
}

func errNoSlurm(err error) error {
	return fmt.Errorf("no Slurm here: %w; run this where sbatch is (apt-get install slurm-client)", err)
}

// Check implements shard.Scheduler.
func (Scheduler) Check(ctx context.Context, _ string) error {
	_, err := nodes(ctx)
	return err
}

// nodes returns the machines that take jobs.
func nodes(ctx context.Context) (map[string]int, error) {
	text, err := ask(ctx, "sinfo", "--noheader", "--Node", "--format=%N|%c|%t")
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("no Slurm cluster answers: %w; "+confVar+" names the configuration of one", err)
	}
	if err != nil {
		return nil, err
	}
	all := parseNodes(text)
	if len(all) == 0 {
		return nil, errors.New("no machine of the Slurm cluster takes jobs: sinfo shows why")
	}
	return all, nil
}

// Slots implements shard.Scheduler: the processors of all machines. An emulation has a machine to
// itself.
func (Scheduler) Slots(ctx context.Context, kind string) (int, error) {
	all, err := nodes(ctx)
	if err != nil {
		return 0, err
	}
	if kind != "sim" {
		return len(all), nil
	}
	slots := 0
	for _, cpus := range all {
		slots += cpus
	}
	return slots, nil
}

// Start implements shard.Scheduler.
func (Scheduler) Start(ctx context.Context, d *shard.Dir, r *sweep.Round) (err error) {
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(path, shard.Folder, name) }
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFiles(d))
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := copyFile(self, at(binFile)); err != nil {
		return fmt.Errorf("copy weft to the shared directory: %w", err)
	}
	if err := os.MkdirAll(at(logsFolder), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(at(scriptFile), []byte(Script(at(binFile), path, r)), 0o755); err != nil {
		return err
	}
	answer, err := ask(ctx, "sbatch", Arguments(d.Sub, r, at(scriptFile), at(logsFolder))...)
	if err != nil {
		return err
	}
	r.Handle, err = parseJob(answer)
	return err
}

// copyFile copies a program.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	temp := to + newSuffix
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(temp, to) // the program of a running task stays what it is
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp))
	}
	return err
}

// removeFiles removes what Start wrote.
func removeFiles(d *shard.Dir) error {
	var all error
	for _, name := range []string{binFile, binFile + newSuffix, scriptFile, logsFolder} {
		all = errors.Join(all, os.RemoveAll(filepath.Join(d.Path, shard.Folder, name)))
	}
	return all
}

// Tasks implements shard.Scheduler. Slurm forgets ended jobs after some minutes; the shards' files
// do not.
func (Scheduler) Tasks(ctx context.Context, d *shard.Dir, r sweep.Round) ([]sweep.Task, error) {
	text, err := ask(ctx, "squeue", "--noheader", "--array", "--states=all", "--format=%K|%T|%N|%U|%r",
		"--name="+jobName(d.Sub, r.Number))
	if err != nil {
		return nil, err
	}
	users := []string{fmt.Sprint(os.Geteuid())} // the submitter is another if a colleague asks
	if info, err := os.Stat(filepath.Join(d.Path, shard.Folder, scriptFile)); err == nil {
		users = append(users, fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid))
	}
	all := parseTasks(text, d.Sub.Shards, users...)
	for i := range all {
		if t := &all[i]; t.State == sweep.Failed {
			t.Error += lastLine(filepath.Join(d.Path, shard.Folder, logsFolder, fmt.Sprintf("%d.log", t.Shard)))
		}
	}
	return all, nil
}

// maxLine is how much of the end of a log is read, in bytes.
const maxLine = 1 << 10

// lastLine returns what a shard said last according to its log; "" if it said nothing.
func lastLine(log string) string {
	f, err := regular.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()                     //nolint:errcheck // only read
	_, _ = f.Seek(-maxLine, io.SeekEnd) // a shorter one is read from its start
	// What can be read is shown.
	text, _ := io.ReadAll(io.LimitReader(f, maxLine))
	said := strings.TrimSpace(string(text))
	if said == "" {
		return ""
	}
	return ": " + clip.Line(said[strings.LastIndexByte(said, '\n')+1:])
}

// End implements shard.Scheduler. Its files are removed even if Slurm does not answer: a task that
// is started again ends at once.
func (s Scheduler) End(ctx context.Context, d *shard.Dir, r sweep.Round) error {
	return errors.Join(s.cancel(ctx, d, r), removeFiles(d))
}

// cancel cancels the job of a round, and waits until none of its tasks runs.
func (s Scheduler) cancel(ctx context.Context, d *shard.Dir, r sweep.Round) error {
	if _, err := ask(ctx, "scancel", "--quiet", fmt.Sprintf("--user=%d", os.Geteuid()),
		"--name="+jobName(d.Sub, r.Number)); err != nil {
		return err
	}
	for over := time.Now().Add(endTime); ; {
		all, err := s.Tasks(ctx, d, r)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(t sweep.Task) bool { return t.State == sweep.Running }) {
			return nil
		}
		if time.Now().After(over) {
			return fmt.Errorf("job %s has not ended in %v: squeue --name=%[1]s", jobName(d.Sub, r.Number), endTime)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollTime):
		}
	}
}
