package docker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sys/unix"

	"weft/internal/poller"
	"weft/nodeimg/boot"
	"weft/nodeimg/image"
	"weft/orchestrator/runtime"
)

// tmpSize limits what a container can write.
const tmpSize = "size=64m"

// containerOOMScore is the oom_score_adj (-1000 to 1000) of a lab's processes: the kernel kills
// them early if the machine is out of memory.
const containerOOMScore = 500

// labels returns the labels of one container of this lab.
func (c *Cluster) labels(name string) map[string]string {
	return map[string]string{labelLab: c.spec.Lab, labelRun: c.id, labelNode: name, labelOwner: c.owner.String()}
}

// Bound describes the nodes' memory limit for people.
func (c *Cluster) Bound() string {
	return fmt.Sprintf("%v per node, by the engine", cmp.Or(c.spec.Memory, runtime.DefaultMemory))
}

// foreign matches what a container's name may not contain.
var foreign = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

// containerName returns a container's name, which is for people only: Weft finds containers by
// their labels.
func (c *Cluster) containerName(name string) string {
	clean := func(s string) string { s = foreign.ReplaceAllString(s, "-"); return s[:min(len(s), 40)] }
	return fmt.Sprintf("weft-%s-%s-%s", clean(c.spec.Lab), c.id[:6], clean(name))
}

// hostConfig returns the restrictions of every container of a lab: no network, no privileges, only
// memory to write to. The container removes itself when it ends.
func (c *Cluster) hostConfig() *container.HostConfig {
	const realTime = int64(poller.RealTimeLimit / time.Microsecond)
	memory := int64(cmp.Or(c.spec.Memory, runtime.DefaultMemory))
	processes := int64(runtime.MaxProcesses)
	return &container.HostConfig{
		NetworkMode:    "none",
		AutoRemove:     true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		ReadonlyRootfs: true,
		Tmpfs:          map[string]string{"/tmp": "rw,nosuid,nodev,mode=1777," + tmpSize},
		LogConfig:      container.LogConfig{Type: "none"},
		IpcMode:        "private",
		OomScoreAdj:    containerOOMScore,
		Resources: container.Resources{
			Memory: memory, MemorySwap: memory, PidsLimit: &processes,
			// Only lower limits: the engine may lack the privilege to raise them.
			Ulimits: []*container.Ulimit{{Name: "core"}, {Name: "rttime", Soft: realTime, Hard: realTime}},
		},
	}
}

// create creates the container of a node or of the fabric (spec is nil). It returns the ID and the
// engine's warnings.
func (c *Cluster) create(ctx context.Context, name string, spec *boot.NodeSpec) (id string, notes []string, err error) {
	args := c.spec.FabricArgs
	host := c.hostConfig()
	if spec != nil {
		args = c.spec.NodeArgs
		for _, h := range spec.Hosts {
			host.ExtraHosts = append(host.ExtraHosts, h.Name+":"+h.Addr.String())
		}
	}
	if args == nil && spec != nil {
		args = []string{"node"}
	} else if args == nil {
		args = []string{"fabric"}
	}
	as := c.containerName(name)
	owner := os.Geteuid()
	if c.engine.remapped {
		owner = overflowUser // the container's user namespace does not have this user
	}
	config := &container.Config{
		Image:      c.image,
		Entrypoint: []string{"/weft"},
		Cmd:        args,
		User:       image.User,
		Hostname:   name,
		WorkingDir: "/",
		Env:        append([]string{"HOME=/tmp", fmt.Sprintf("%s=%d", boot.OwnerVar, owner)}, c.spec.Env...),
		Labels:     c.labels(name),
	}
	var made container.CreateResponse
	op := runtime.Op{Do: "create container " + as, Kind: runtime.Container, Name: as}
	err = c.spec.Do(op, func() (err error) {
		made, err = c.engine.api.ContainerCreate(ctx, config, host, &network.NetworkingConfig{}, nil, as)
		if err != nil {
			return fmt.Errorf("create container: %w", err)
		}
		return nil
	})
	if err != nil {
		return made.ID, nil, err
	}
	for _, w := range made.Warnings {
		notes = append(notes, "the engine says: "+w)
	}
	return made.ID, notes, nil
}

// overflowUser is the ID that the kernel shows for users that a user namespace does not have:
// user_namespaces(7).
const overflowUser = 65534

// startContainer starts a container and returns its first process: the PID and an open descriptor.
func (c *Cluster) startContainer(ctx context.Context, id string) (pid, pidfd int, err error) {
	err = c.spec.Around("start container", func() error {
		return c.engine.api.ContainerStart(ctx, id,
			container.StartOptions{})
	})
	if err != nil {
		return 0, -1, fmt.Errorf("start container: %w", err)
	}
	about, err := c.engine.api.ContainerInspect(ctx, id)
	if errdefs.IsNotFound(err) { // it ended, and the engine has removed it
		return 0, -1, errEnded
	}
	if err != nil {
		return 0, -1, fmt.Errorf("inspect container: %w", err)
	}
	if about.State == nil || about.State.Pid == 0 {
		return 0, -1, errEnded
	}
	pid = about.State.Pid
	if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return 0, -1, fmt.Errorf("%w (process %d: %w)", errEnded, pid, err)
	}
	if err := checkInContainer(pid, id); err != nil {
		unix.Close(pidfd)
		return 0, -1, err
	}
	return pid, pidfd, nil
}

// checkInContainer checks that a process is in a container by its control group, which the process
// cannot choose.
func checkInContainer(pid int, id string) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if os.IsNotExist(err) {
		return errEnded
	}
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), id) {
		return fmt.Errorf("process %d is not in container %.12s: does the engine run in another PID namespace?", pid,
			id)
	}
	return nil
}

// exitState describes how a container's first process ended.
func exitState(code string, outOfMemory bool) string {
	var n int
	if _, err := fmt.Sscan(code, &n); err != nil {
		return "unknown"
	}
	what := fmt.Sprintf("exit status %d", n)
	if n > 128 && n < 128+65 {
		what = "signal: " + unix.SignalName(unix.Signal(n-128))
		if n == 128+int(unix.SIGKILL) {
			what = "signal: killed"
		}
	}
	if outOfMemory {
		what += " (out of memory)"
	}
	return what
}

// termStatus is how a Go program that is the first of its PID namespace exits on SIGTERM, which
// cannot kill it.
const termStatus = "exit status 2"

// Exit returns how the container ended.
func (p *proc) Exit() *runtime.ExitError {
	e := &runtime.ExitError{Name: p.Name, State: p.state, Stderr: p.tail.String()}
	if e.State == termStatus && e.Stderr == "" {
		e.State += " without output: terminated, as when the engine is stopped"
	}
	return e
}
