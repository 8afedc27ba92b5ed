package emulate

import (
	"os"

	"weft/internal/bypass"
	"weft/internal/control"
	"weft/internal/rings"
	"weft/realtime"
	"weft/units"
)

// nics are the bypass NICs of a run, before its processes have them: a region for each host, and a
// bell for each process that drives hosts.
type nics struct {
	frame   int        // size of the longest frame in bytes
	regions []*os.File // by host; nil: it uses sockets
	bells   [][3]*os.File
	bell    []int // by host; -1: it uses sockets
}

// bypasses reports whether the agent of host h has a bypass NIC.
func (x *Experiment) bypasses(h int) bool {
	return x.Processes.Bypass && (x.Sockets == nil || !x.Sockets[h])
}

// makeNICs returns the bypass NICs of x, whose hosts are driven by the given number of processes;
// 0: each drives itself. It returns nil if the hosts use sockets.
func (x *Experiment) makeNICs(agents int) (n *nics, err error) {
	if !x.Processes.Bypass {
		return nil, nil
	}
	hosts := len(x.Plans)
	if agents == 0 {
		agents = hosts
	}
	n = &nics{frame: x.maxFrame(), bell: make([]int, hosts), regions: make([]*os.File, hosts)}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	layout, err := rings.For(n.frame)
	if err != nil {
		return nil, err
	}
	for h := range hosts {
		if n.bell[h] = -1; !x.bypasses(h) {
			continue
		}
		if n.regions[h], err = bypass.Create("weft-nic", layout.Bytes()); err != nil {
			return nil, err
		}
		n.bell[h] = h % agents // as crew.give distributes them
	}
	for range min(agents, hosts) {
		b, err := bypass.NewBell()
		if err != nil {
			return nil, err
		}
		n.bells = append(n.bells, b)
	}
	return n, nil
}

// nicMemory returns the size of the shared memory of bypass NICs.
func (x *Experiment) nicMemory() (all units.Bytes, err error) {
	layout, err := rings.For(x.maxFrame())
	for h := range x.Plans {
		if x.bypasses(h) {
			all += units.Bytes(layout.Bytes())
		}
	}
	return all, err
}

// node returns the descriptors for the node of host h.
func (n *nics) node(h int) (fds []int) {
	if n == nil || n.regions[h] == nil {
		return nil
	}
	fds = append(fds, int(n.regions[h].Fd()))
	for _, f := range n.bells[n.bell[h]] {
		fds = append(fds, int(f.Fd()))
	}
	return fds
}

// send hands all of them to the fabric process, after its configuration.
func (n *nics) send(conn *control.Conn) error {
	if n == nil {
		return nil
	}
	var fds []int
	for _, f := range n.regions {
		if f != nil {
			fds = append(fds, int(f.Fd()))
		}
	}
	for _, b := range n.bells {
		for _, f := range b {
			fds = append(fds, int(f.Fd()))
		}
	}
	for len(fds) > 0 {
		some := min(len(fds), control.MaxFDs)
		if err := conn.SendValue(realtime.KindNICs, nil, fds[:some]...); err != nil {
			return err
		}
		fds = fds[some:]
	}
	return nil
}

// config returns their configuration for the fabric process.
func (n *nics) config() *realtime.NICs {
	if n == nil {
		return nil
	}
	return &realtime.NICs{Bells: len(n.bells), Bell: n.bell}
}

// close closes this process's descriptors.
func (n *nics) close() {
	if n == nil {
		return
	}
	for _, f := range n.regions {
		if f != nil {
			f.Close()
		}
	}
	for _, b := range n.bells {
		for _, f := range b {
			f.Close()
		}
	}
}
