package slurm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/internal/shell"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// Script returns the batch script of a round: it runs the shard with the number of its task, and
// puts the task into the queue again if its machine failed it.
func Script(weft, path string, r *sweep.Round) string {
	heap := ""
	if r.Memory > 0 {
		heap = fmt.Sprintf("GOMEMLIMIT=%d ", sweep.HeapLimit(r.Memory))
	}
	return fmt.Sprintf(`#!/bin/sh
# A shard of a sweep of Weft: see docs/scale-out.md.
%s%s sweep shard %s --round %d --workers %d
code=$?
if [ "$code" = %d ] && [ "${SLURM_RESTART_COUNT:-0}" -lt %d ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
`, heap, shell.Quote(weft), shell.Quote(path), r.Number, max(1, r.Workers), shard.ExitMachine, sweep.MaxTries)
}

// jobName returns the name of a round's job. The series is unique among all submissions, so the
// name finds the job also if its submitter was killed before it knew the number.
func jobName(s *sweep.Submission, round int) string {
	return fmt.Sprintf("weft-%s-%d", strings.ToLower(s.Series[:min(len(s.Series), 12)]), round)
}

// Arguments returns the arguments of sbatch for a round.
func Arguments(s *sweep.Submission, r *sweep.Round, script, logs string) []string {
	args := []string{
		"--parsable", "--requeue", "--job-name=" + jobName(s, r.Number), fmt.Sprintf("--array=0-%d", s.Shards-1),
		"--ntasks=1", fmt.Sprintf("--cpus-per-task=%d", max(1, r.Workers)), "--chdir=/",
		"--output=" + filepath.Join(strings.ReplaceAll(logs, "%", "%%"), "%a.log"), "--open-mode=append",
	}
	if r.Memory > 0 {
		args = append(args, fmt.Sprintf("--mem=%dK", r.Memory>>10))
	}
	if s.Kind != "sim" {
		args = append(args, "--exclusive") // other work would delay the nodes of an emulation
	}
	return append(args, script)
}

// parseJob reads the answer of sbatch --parsable: the job's number, and the cluster behind a
// semicolon if there are several.
func parseJob(text string) (string, error) {
	job, _, _ := strings.Cut(strings.TrimSpace(text), ";")
	if _, err := strconv.ParseUint(job, 10, 63); err != nil {
		return "", fmt.Errorf("sbatch printed %.100q instead of the number of a job", text)
	}
	return job, nil
}

// parseNodes reads lines of node|processors|state. Only nodes that take jobs, now or later, count.
// A node in several partitions is listed for each.
func parseNodes(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 3 {
			continue
		}
		cpus, err := strconv.Atoi(f[1])
		state := strings.TrimRight(f[2], "*~#!%$@^-+")
		if err != nil || cpus < 1 || cpus > 1<<20 || f[2] != state && strings.HasSuffix(f[2], "*") { // does not answer
			continue
		}
		switch state {
		case "idle", "mix", "alloc", "comp":
			out[f[0]] = cpus
		}
	}
	return out
}

// parseTasks reads lines of index|state|nodes|user|reason. Names of jobs are not unique, so jobs of
// other users than these do not count.
func parseTasks(text string, shards int, users ...string) []sweep.Task {
	out := make([]sweep.Task, 0, min(shards, 1024))
	seen := map[int]bool{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 5)
		if len(f) != 5 || !slices.Contains(users, f[3]) {
			continue
		}
		k, err := strconv.Atoi(f[0])
		if err != nil || k < 0 || k >= shards || seen[k] {
			continue
		}
		seen[k] = true
		t := sweep.Task{Shard: k, State: stateOf(f[1]), Host: f[2], Tries: 1}
		switch {
		case t.State == sweep.Failed:
			t.Error = strings.ToLower(f[1])
		case t.State == sweep.Waiting && f[4] != "None":
			t.Error, t.Tries = f[4], 0
		}
		out = append(out, t)
	}
	return out
}

// stateOf returns the state of a shard from that of its task, as squeue(1) calls it.
func stateOf(state string) string {
	switch state {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return sweep.Waiting
	case "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT":
		return sweep.Running
	case "COMPLETED":
		return sweep.Done
	}
	return sweep.Failed // CANCELLED, FAILED, NODE_FAIL, OUT_OF_MEMORY, PREEMPTED, TIMEOUT, ...
}

// reason returns what a command of Slurm wrote to its standard error as one line, without its name
// at the start of each.
func reason(name, text string) string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{name + ": ", "error: ", "fatal: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return clip.Line(strings.Join(all, "; "))
}
