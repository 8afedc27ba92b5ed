package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"weft/internal/privilege"
)

// defaultHost is the address of an engine by default.
const defaultHost = "unix:///var/run/docker.sock"

// answerTime is the time limit for an engine to answer. Our own choice.
const answerTime = 5 * time.Second

// ErrUnusable is returned if no engine here can run labs. The text says why and what to do.
var ErrUnusable = errors.New("no Docker for labs here")

// engine is a Docker Engine on this machine.
type engine struct {
	api  *client.Client
	host string
	// remapped means that containers have a user namespace without this machine's users.
	remapped bool
	about    string // version and drivers, for people
}

// HostVar is the environment variable with the engine's address.
const HostVar = client.EnvOverrideHost

// open connects to the engine at host, a unix:// address; empty: DOCKER_HOST or the default one. It
// checks that this package can use the engine.
func open(ctx context.Context, host string) (*engine, error) {
	host = cmp.Or(host, os.Getenv(client.EnvOverrideHost), defaultHost)
	if err := checkSocket(ctx, host); err != nil {
		return nil, err
	}
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnusable, host, err)
	}
	e := &engine{api: api, host: host}
	if err := e.identify(ctx); err != nil {
		api.Close()
		return nil, err
	}
	return e, nil
}

// checkSocket connects to the engine's socket, since its errors say more than those of a request.
func checkSocket(ctx context.Context, host string) error {
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "unix" {
		return fmt.Errorf("%w: DOCKER_HOST is %s, but nodes are wired from this machine: the engine must be here, "+
			"at a unix:// address; unset DOCKER_HOST, or use --runtime namespace", ErrUnusable, host)
	}
	var d net.Dialer
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := d.DialContext(ctx, "unix", u.Path)
	switch {
	case err == nil:
		defer conn.Close()
		if seen, err := privilege.SeesPeer(conn.(*net.UnixConn)); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrUnusable, host, err)
		} else if !seen { // the numbers that it gives for its processes are others' here
			return fmt.Errorf("%w: the processes of the engine at %s cannot be seen from here, which is another PID "+
				"namespace (a container?): run weft where the engine runs, or use --runtime namespace", ErrUnusable,
				host)
		}
		return nil
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %w; run as root", ErrUnusable, err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: there is no engine (%w); install and start one (apt-get install docker.io, systemctl "+
			"start docker), or use --runtime namespace", ErrUnusable, err)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w: no engine is running (%w); start it (systemctl start docker), or use --runtime "+
			"namespace", ErrUnusable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnusable, err)
}

// identify asks the engine for its version and settings, and returns an error if its containers
// cannot be wired.
func (e *engine) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	info, err := e.api.Info(ctx)
	if err != nil {
		return fmt.Errorf("%w: the engine at %s does not answer: %w", ErrUnusable, e.host, err)
	}
	has := func(option string) bool {
		return slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, option) })
	}
	switch {
	case info.OSType != "linux":
		return fmt.Errorf("%w: the engine at %s runs %s containers, not Linux ones", ErrUnusable, e.host, info.OSType)
	case has("name=rootless"):
		return fmt.Errorf("%w: the engine at %s is rootless, and keeps its containers out of reach of this "+
			"machine's network tools; --runtime namespace needs no root either", ErrUnusable, e.host)
	}
	e.remapped = has("name=userns")
	e.about = fmt.Sprintf("%s (API %s, %s, cgroup v%s) at %s", info.ServerVersion, e.api.ClientVersion(),
		info.Driver, cmp.Or(info.CgroupVersion, "1"), e.host)
	return nil
}

// alive returns an error unless the engine answers.
func (e *engine) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := e.api.Ping(ctx)
	return err
}

// Probe checks whether a lab could be launched on the engine at host (empty: DOCKER_HOST or the
// default one). It returns the engine's version and drivers, or why it cannot be used and what to
// do.
func Probe(ctx context.Context, host string) (about string, err error) {
	e, err := open(ctx, host)
	if err != nil {
		return "", err
	}
	defer e.api.Close()
	return e.about, checkPrivileges()
}

// checkPrivileges returns an error unless this process may enter the network namespaces of
// containers.
func checkPrivileges() error {
	const needs = "containers are wired by netlink, which only root may: run as root, or use --runtime namespace, " +
		"which needs no root"
	if initial, _ := privilege.InitialUserNS(); !initial {
		return fmt.Errorf("%w: this process is in a user namespace; %s", ErrUnusable, needs)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("%w: capabilities: %w", ErrUnusable, err)
	}
	for c, name := range map[uint]string{unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN",
		unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE"} {
		if have[c/32].Effective&(1<<(c%32)) == 0 {
			return fmt.Errorf("%w: this process lacks %s; %s", ErrUnusable, name, needs)
		}
	}
	return nil
}
