package run

import (
	"errors"
	"fmt"
	"os"
	"time"

	"weft/orchestrator/capture"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/realtime"
)

// Capture is what of an emulated run is captured, and where to.
type Capture struct {
	Point string // a host, or a port such as leaf0->spine1
	File  string // must not exist
}

// Capturable reports what is known to be in the way of captures of an experiment in an engine before anything is done.
func Capturable(x *experiment.Experiment, engine string, all []Capture) error {
	if engine == "sim" {
		return errors.New("--capture: the simulator's packets have no bytes to write; --engine emu captures")
	}
	if x.Lab.Engine.Datapath == experiment.OnKernel {
		return x.Lab.Errorf("engine.datapath", "datapath kernel copies no packets for weft, so that --capture cannot have them; datapath fabric does")
	}
	for _, c := range all {
		if _, err := Captured(x, c.Point); err != nil {
			return fmt.Errorf("--capture: %w", err)
		}
	}
	return nil
}

// Captured finds what a capture is of: a host, or a port by the names of its ends.
func Captured(x *experiment.Experiment, name string) (realtime.Capture, error) {
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
	return realtime.Capture{}, fmt.Errorf("lab %s has no node or port %q; expected one such as %s or '%s'; weft graph shows the lab", x.Lab.Name, name, x.Graph.Nodes[0].Name, ports[0])
}

// captures are those of a run.
type captures []*capturing

// capturing is one from when its file is there until it is complete.
type capturing struct {
	Capture
	of           realtime.Capture
	file         *os.File
	ours, theirs *os.File
	done         chan struct{} // closed when all is written; nil: nothing was to be
	n            int64
	err          error
}

// createCaptures makes the files of captures, or none.
func createCaptures(x *experiment.Experiment, o Options) (all captures, err error) {
	for _, c := range o.Captures {
		of, err := Captured(x, c.Point)
		if err == nil {
			next := &capturing{Capture: c, of: of}
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

func (c *capturing) create() (err error) {
	c.file, err = os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already, and a capture is a new file; remove it, or name another", c.File)
	}
	if err != nil {
		return err
	}
	if c.ours, c.theirs, err = capture.Messages(); err != nil {
		c.discard()
	}
	return err
}

// begin has what comes written to the files, and returns what the fabric process is to be asked for. failed is called when
// a file cannot be written.
func (all captures) begin(failed func(), of func(*capturing) capture.Of) (ask []emulate.Capture) {
	for _, c := range all {
		c.done = make(chan struct{})
		go func() {
			defer close(c.done)
			if c.n, _, c.err = capture.Copy(c.file, c.ours, of(c)); c.err != nil {
				failed()
			}
			c.ours.Close() // the fabric process stops copying
		}()
		ask = append(ask, emulate.Capture{Of: c.of, Socket: int(c.theirs.Fd())})
	}
	return ask
}

// drainTime is how long what was captured may take to be written when the run is over. Ours.
const drainTime = 10 * time.Second

// end completes the files after the run and tells what they hold. A run that failed before the first packet leaves none.
func (all captures) end(failed bool, say func(string)) (err error) {
	for _, c := range all {
		c.theirs.Close()
		_ = c.ours.SetReadDeadline(time.Now().Add(drainTime)) // unless it is closed already
		<-c.done
		if cerr := c.file.Close(); c.err == nil && cerr != nil {
			c.err = cerr
		}
		if c.err != nil {
			err = errors.Join(err, fmt.Errorf("--capture %s: %w", c.Point, c.err))
		}
		if failed && c.n == 0 {
			os.Remove(c.File)
		} else if say != nil {
			say(fmt.Sprintf("packets of %s in %s: %d", c.Point, c.File, c.n))
		}
	}
	return err
}

// discard removes the files of captures that were never begun.
func (all captures) discard() {
	for _, c := range all {
		c.discard()
	}
}

func (c *capturing) discard() {
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
