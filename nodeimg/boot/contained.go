package boot

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/poller"
)

// OwnerVar is an environment variable of processes that a container engine starts. Its value is the
// uid, valid in the container, of the user that may take control of the process.
const OwnerVar = "WEFT_OWNER"

// patience is how long a process in a container waits for its orchestrator: as long as a busy
// engine may take to start it and report so. Ours.
const patience = 20 * time.Second

// Connect returns the control connection of this process: the inherited one, or in a container the
// first that its owner opens.
func Connect() (*control.Conn, error) {
	text, inContainer := os.LookupEnv(OwnerVar)
	if _, second := os.LookupEnv(stageVar); second || !inContainer {
		return control.Open(control.FD)
	}
	owner, err := strconv.Atoi(text)
	if err != nil || owner < 0 {
		return nil, fmt.Errorf("%s=%q is not the number of a user", OwnerVar, text)
	}
	return control.Accept(owner, patience)
}

// A process in a container gets everything ready-made with the boot message: first the descriptor
// for its output, then its sockets. It has no privileges and needs none.

// containedNode takes over a node that the orchestrator has wired from outside.
func containedNode(conn *control.Conn) (handover, []uintptr, error) {
	var spec NodeSpec
	fds, err := conn.Expect(KindBoot, &spec)
	if err != nil {
		return handover{}, nil, err
	}
	h := handover{Name: spec.Name, Switch: spec.Switch}
	if h.Sockets, err = takeOver(fds); err != nil {
		return h, nil, err
	}
	return h, nil, nil
}

// containedFabric takes over the fabric's process.
func containedFabric(conn *control.Conn) (handover, []uintptr, error) {
	var spec FabricSpec
	fds, err := conn.Expect(KindBoot, &spec)
	if err != nil {
		return handover{}, nil, err
	}
	h := handover{Name: "fabric", Links: spec.Links}
	if _, err := takeOver(fds); err != nil {
		return h, nil, err
	}
	return h, nil, nil
}

// takeOver makes the first descriptor standard output and standard error, and returns the others,
// moved out of the way of control.FD.
func takeOver(fds []int) ([]int, error) {
	for _, std := range []int{1, 2} {
		if err := unix.Dup3(fds[0], std, 0); err != nil {
			return nil, fmt.Errorf("standard output: %w", err)
		}
	}
	var moved []int
	for i, fd := range fds {
		if i > 0 {
			high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, control.FD+1)
			if err != nil {
				return nil, fmt.Errorf("socket: %w", err)
			}
			moved = append(moved, high)
		}
		unix.Close(fd)
	}
	return moved, nil
}

// Wire makes a node's interface, addresses, neighbours and sockets in the network namespace of the
// calling thread, which must be locked to it. Node does the same for itself unless a container
// engine started it. The descriptors (Link.FD and those of the sockets) are the caller's, closed on
// exec. The cable of a host with Wired must exist; FD then is -1.
func Wire(spec *NodeSpec) (link Link, sockets []int, lacks []string, err error) {
	var t tree
	allowPing(&t)
	if spec.Switch {
		return Link{FD: -1}, nil, t.lacks, Apply([]Setting{Lo(spec.Name)})
	}
	if link, err = spec.network(); err != nil {
		return Link{}, nil, nil, err
	}
	if sockets, err = listen(spec); err != nil {
		link.close()
		return Link{}, nil, nil, err
	}
	return link, sockets, t.lacks, nil
}

// Renice asks for a nice value for every thread of another process. 0 asks for nothing.
func Renice(pid, want int) error {
	if want == 0 {
		return nil
	}
	tids, err := poller.Threads(pid)
	if err != nil {
		return err
	}
	for _, tid := range tids {
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, want) // not granted, or the thread has ended
	}
	return nil
}
