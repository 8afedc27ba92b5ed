package run

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/orchestrator/capture"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/realtime"
)

// Capture is a capture of an emulated run.
type Capture struct {
	Point string // a host, or a port such as leaf0->spine1
	File  string // must not exist
}

// CheckCaptures returns an error if an engine is known to be unable to make the captures, before
// anything starts.
func CheckCaptures(x *experiment.Experiment, engine string, all []Capture) error {
	if engine == "sim" {
		return errors.New("--capture: packets of the simulator have no bytes to write; --engine emu captures them")
	}
	if x.Lab.Engine.OnKernel() {
		return x.Lab.Errorf("engine.datapath",
			"datapath kernel does not copy packets to weft for --capture; datapath fabric does")
	}
	for _, c := range all {
		if _, err := CapturePoint(x, c.Point); err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
	}
	return nil
}

// CapturePoint returns the host, or the port, of a name. A port has the names of its ends.
func CapturePoint(x *experiment.Experiment, name string) (realtime.Capture, error) {
	ports := x.PortNames()
	for i, port := range ports {
		if port == name {
			return realtime.Capture{Port: i, Host: -1}, nil
		}
	}
	n, ok := x.Graph.NodeNamed(name)
	if ok && int(n) < x.Graph.Hosts {
		return realtime.Capture{Port: -1, Host: int(n)}, nil
	}
	if ok {
		example := ports[x.Graph.Port(x.Graph.Adjacent[n][0], topology.NodeID(n))]
		return realtime.Capture{}, fmt.Errorf("%s is a switch; expected one of its ports, such as '%s'", name, example)
	}
	example := ports[0]
	if _, to, port := strings.Cut(name, "->"); port {
		if n, ok := x.Graph.NodeNamed(to); ok { // into the same node
			l := x.Graph.Adjacent[n][0]
			example = ports[x.Graph.Port(l, x.Graph.Links[l].Other(n))]
		}
	}
	const unknown = "lab %s has no node or port %q; expected one such as %s or '%s'; weft graph shows the lab"
	return realtime.Capture{}, fmt.Errorf(unknown, x.Lab.Name, clip.Text(name), x.Graph.Nodes[0].Name, example)
}

// captures are the captures of a run.
type captures []*captureFile

// captureFile is one capture, from the creation of its file until the file is complete.
type captureFile struct {
	Capture
	source       realtime.Capture
	file         *os.File
	ours, theirs *os.File      // the socket pair to the fabric process
	done         chan struct{} // closed when everything is written; nil before start
	packets      int64
	err          error
}

// createCaptures creates the files of all captures, or none.
func createCaptures(x *experiment.Experiment, o Options) (all captures, err error) {
	for _, c := range o.Captures {
		source, err := CapturePoint(x, c.Point)
		if err == nil {
			next := &captureFile{Capture: c, source: source}
			if err = next.create(); err == nil {
				all = append(all, next)
				continue
			}
		}
		all.discard()
		return nil, fmt.Errorf("--capture: %w", err)
	}
	return all, nil
}

func (c *captureFile) create() (err error) {
	c.file, err = os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already, and a capture needs a new file; remove it, or name another", c.File)
	}
	if err != nil {
		return err
	}
	if c.ours, c.theirs, err = capture.Messages(); err != nil {
		c.discard()
	}
	return err
}

// start copies arriving frames to the files, and returns the request for the fabric process. It
// calls failed when a file cannot be written.
func (all captures) start(failed func(), of func(*captureFile) capture.Of) (ask []emulate.Capture) {
	for _, c := range all {
		c.done = make(chan struct{})
		go func() {
			defer close(c.done)
			if c.packets, _, c.err = capture.Copy(c.file, c.ours, of(c)); c.err != nil {
				failed()
			}
			c.ours.Close() // the fabric process stops copying
		}()
		ask = append(ask, emulate.Capture{Of: c.source, Socket: int(c.theirs.Fd())})
	}
	return ask
}

// drainTime is the time limit for writing the rest of the frames after the run. Our own choice.
const drainTime = 10 * time.Second

// finish completes the files after the run and says how many packets they hold. A run that failed
// before the first packet leaves no file.
func (all captures) finish(failed bool, say func(string)) (err error) {
	for _, c := range all {
		c.theirs.Close()
		_ = c.ours.SetReadDeadline(time.Now().Add(drainTime)) // fails if it is already closed
		<-c.done
		if cerr := c.file.Close(); c.err == nil && cerr != nil {
			c.err = cerr
		}
		if c.err != nil {
			err = errors.Join(err, fmt.Errorf("--capture %s: %w", c.Point, c.err))
		}
		if failed && c.packets == 0 {
			os.Remove(c.File)
		} else if say != nil {
			say(fmt.Sprintf("packets of %s in %s: %d", c.Point, c.File, c.packets))
		}
	}
	return err
}

// discard removes the files of captures that were never started.
func (all captures) discard() {
	for _, c := range all {
		c.discard()
	}
}

func (c *captureFile) discard() {
	if c.done != nil {
		return
	}
	c.file.Close()
	if c.ours != nil {
		c.ours.Close()
		c.theirs.Close()
	}
	os.Remove(c.File)
}
