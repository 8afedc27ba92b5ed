package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/sockbuf"
)

// stageVar is an environment variable by which the first stage reports to the second. The first
// stage does not have it.
const stageVar = "WEFT_BOOTED"

// titleVar is an environment variable with the process's name in ps and top. exec through /proc
// would make that "exe".
const titleVar = "WEFT_TITLE"

// init sets the process's name. That is the name of the first thread, and only init is sure to run
// on it.
func init() {
	if title := os.Getenv(titleVar); title != "" {
		text := append([]byte(title), 0) // the kernel takes the first 15 bytes
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
		os.Unsetenv(titleVar)
	}
}

// handover is the report of the first stage to the second.
type handover struct {
	Name    string `json:"name"`
	Links   int    `json:"links,omitempty"`
	Sockets []int  `json:"sockets,omitempty"`
	Switch  bool   `json:"switch,omitempty"`
	Report  Report `json:"report"`
}

// Node boots this process as a host of a lab, and returns in its second stage, ready for the agent.
// conn leads to the waiting orchestrator, which also receives any error. After an error the process
// is useless.
func Node(conn *control.Conn) (*NodeEnv, error) {
	h, err := boot(conn, stages{free: nodeStage, contained: containedNode})
	if err == nil {
		err = conn.SendValue(KindUp, h.Report)
	}
	if err != nil {
		return nil, failed(conn, "boot node", err)
	}
	for _, fd := range h.Sockets {
		unix.CloseOnExec(fd)
	}
	// The process is the init of its PID namespace and inherits orphans of programs in the node.
	// With the signal ignored the kernel reaps them.
	signal.Ignore(unix.SIGCHLD)
	return &NodeEnv{Sockets: h.Sockets, Switch: h.Switch}, nil
}

// Fabric boots this process as the fabric of a lab, and returns in its second stage, with the far
// ends of the cables of all nodes, by Link.Index. The process keeps CAP_SYS_NICE if it had it, for
// Realtime.
func Fabric(conn *control.Conn) ([]Link, error) {
	h, err := boot(conn, stages{free: fabricStage, contained: containedFabric})
	var links []Link
	if err == nil {
		links, err = receiveLinks(conn, h.Links)
	}
	if err == nil {
		err = conn.SendValue(KindUp, h.Report)
	}
	if err != nil {
		return nil, failed(conn, "boot fabric", err)
	}
	return links, nil
}

func failed(conn *control.Conn, what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	_ = conn.SendError(err) // the orchestrator may be gone
	return err
}

// stage is the first stage of a process. It returns the report for the second, and the capabilities
// to keep.
type stage func(*control.Conn) (handover, []uintptr, error)

// stages are the first stages of a process that was started in namespaces, and of one in a
// container.
type stages struct{ free, contained stage }

// boot runs the first stage, which ends in the second, or continues in the second.
func boot(conn *control.Conn, s stages) (handover, error) {
	var h handover
	_, inContainer := os.LookupEnv(OwnerVar)
	first := s.free
	if inContainer {
		// its parent belongs to the engine, and may end at any time
		first = s.contained
	} else if err := dieWithParent(); err != nil {
		return h, err
	}
	if text, second := os.LookupEnv(stageVar); second {
		os.Unsetenv(stageVar)
		os.Unsetenv(OwnerVar)
		// Only the root of this namespace may trace the process or read its memory through /proc.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return h, err
		}
		return h, json.Unmarshal([]byte(text), &h)
	}
	runtime.LockOSThread() // privileges are properties of a thread
	h, keep, err := first(conn)
	if err != nil {
		return h, err
	}
	return h, h.enter(conn, dropper{keep: keep, contained: inContainer})
}

// enter drops privileges and becomes the second stage. It returns only on error.
func (h *handover) enter(conn *control.Conn, d dropper) error {
	if err := d.drop(); err != nil {
		return err
	}
	h.Report.Notes = append(h.Report.Notes, d.notes...)
	uid, _, _ := unix.RawSyscall(unix.SYS_GETEUID, 0, 0, 0) // of this thread
	h.Report.UID = int(uid)
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := conn.Inherit(control.FD); err != nil {
		return err
	}
	return become(append(os.Environ(), stageVar+"="+string(text), titleVar+"=weft-"+h.Name),
		append(h.Sockets, control.FD))
}

// nodeStage makes a host.
func nodeStage(conn *control.Conn) (handover, []uintptr, error) {
	var spec NodeSpec
	if _, err := conn.Expect(KindBoot, &spec); err != nil {
		return handover{}, nil, err
	}
	h := handover{Name: spec.Name, Switch: spec.Switch}
	t := tree{hosts: spec.Hosts, hidden: spec.Hidden, user: spec.User}
	err := t.begin(spec.Name)
	if err != nil {
		return h, nil, err
	}
	if err = attach(conn, &spec); err != nil {
		return h, nil, err
	}
	if h.Sockets, err = listen(&spec); err != nil {
		return h, nil, err
	}
	if err := t.seal(); err != nil {
		return h, nil, err
	}
	if spec.Nice != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, spec.Nice) // not granted: it keeps that of its parent
	}
	h.Report.Lacks = t.lacks
	return h, nil, nil
}

// attach gives a node its network: the loopback of a switch, whose ports come later, a cable that
// the orchestrator plugs in, or one whose other end goes to the orchestrator.
func attach(conn *control.Conn, s *NodeSpec) error {
	switch {
	case s.Switch || s.Agents:
		return Apply([]Setting{Lo(s.Name)})
	case s.Wired:
		return plugged(conn, s)
	}
	l, err := s.network()
	if err != nil {
		return err
	}
	err = conn.SendValue(KindLink, l, l.FD)
	unix.Close(l.FD)
	return err
}

// fabricStage makes the fabric's process. It has no interface: its network is the descriptors that
// it receives.
func fabricStage(conn *control.Conn) (handover, []uintptr, error) {
	var spec FabricSpec
	if _, err := conn.Expect(KindBoot, &spec); err != nil {
		return handover{}, nil, err
	}
	h := handover{Name: "fabric", Links: spec.Links}
	var t tree
	if err := t.begin(h.Name); err != nil {
		return h, nil, err
	}
	if err := Apply([]Setting{Lo(h.Name)}); err != nil {
		return h, nil, err
	}
	if err := t.seal(); err != nil {
		return h, nil, err
	}
	return h, []uintptr{unix.CAP_SYS_NICE}, nil
}

// begin isolates the process and changes the settings that need a writable /proc.
func (t *tree) begin(hostname string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set host name %q: %w", hostname, err)
	}
	if err := t.isolate(); err != nil {
		return err
	}
	allowPing(t)
	return expendable()
}

// allowPing makes ping work without privileges. A user namespace with one group can name only that
// one.
func allowPing(t *tree) {
	const groups = "net/ipv4/ping_group_range"
	if err := sysctl(groups, "0 2147483647"); errors.Is(err, unix.EINVAL) {
		err = sysctl(groups, "0 0")
		if err != nil {
			t.lack("%s: %v: ping needs privileges", groups, err)
		}
	} else if err != nil {
		t.lack("%s: %v: ping needs privileges", groups, err)
	}
}

// expendable makes the process and its children the first to be killed when the machine is out of
// memory.
func expendable() error {
	const file, first = "/proc/self/oom_score_adj", 500 // of -1000 to 1000
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if now, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || now >= first {
		return err
	}
	return os.WriteFile(file, []byte(strconv.Itoa(first)), 0)
}

// receiveLinks collects the far ends of n cables.
func receiveLinks(conn *control.Conn, n int) ([]Link, error) {
	links := make([]Link, n)
	for seen := 0; seen < n; {
		var some []Link
		fds, err := conn.Expect(KindLinks, &some)
		if err != nil {
			return nil, err
		}
		for i, l := range some {
			l.FD = fds[i]
			links[l.Index] = l
		}
		seen += len(some)
	}
	return links, nil
}

// listen opens the sockets of s, or none.
func listen(s *NodeSpec) (fds []int, err error) {
	defer func() {
		if err != nil {
			control.CloseAll(fds)
			fds = nil
		}
	}()
	for _, want := range s.Sockets {
		low, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fds, fmt.Errorf("socket: %w", err)
		}
		fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, control.FD+1) // control.FD is about to be replaced
		unix.Close(low)
		if err != nil {
			return fds, fmt.Errorf("socket: %w", err)
		}
		fds = append(fds, fd)
		if err := want.open(fd, s); err != nil {
			return fds, fmt.Errorf("socket %v:%d: %w", s.Addr.Addr(), want.Port, err)
		}
	}
	return fds, nil
}

func (want *Socket) open(fd int, s *NodeSpec) error {
	if want.ReadBuffer > 0 {
		if err := sockbuf.Receive(fd, int(want.ReadBuffer)); err != nil {
			return fmt.Errorf("receive buffer: %w", err)
		}
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Port: int(want.Port), Addr: s.Addr.Addr().As4()})
}
