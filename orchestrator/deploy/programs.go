package deploy

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weft/internal/clip"
	"weft/orchestrator/runtime"
)

// hostPrograms records the programs that a lab's hosts run (run: of the lab file).
type hostPrograms struct {
	over chan struct{} // receives a value for each end of a program

	mu  sync.Mutex      // guards what follows
	is  map[int]*string // by host with a program: why it failed, "" if it ended well; nil: it runs
	all int             // number of programs
}

// newHostPrograms returns the record of hosts' programs, with all running.
func newHostPrograms(hosts []int) *hostPrograms {
	p := &hostPrograms{over: make(chan struct{}, len(hosts)), is: map[int]*string{}, all: len(hosts)}
	for _, h := range hosts {
		p.is[h] = nil
	}
	return p
}

// began records that a host starts again, and its program with it.
func (p *hostPrograms) began(host int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, has := p.is[host]; has {
		p.is[host] = nil
	}
}

// ended records the end of a host's program. The state of a host that has ended says so itself.
func (p *hostPrograms) ended(host int, err error) {
	if node := new(runtime.ExitError); !errors.As(err, &node) {
		why := ""
		if err != nil {
			why = clip.Line(err.Error())
		}
		p.mu.Lock()
		p.is[host] = &why
		p.mu.Unlock()
	}
	select {
	case p.over <- struct{}{}:
	default: // nobody settles any more
	}
}

// startTime is the time in which a program counts as one that failed at its start. Our own choice:
// a program that cannot be started, or refuses its arguments, ends in milliseconds.
const startTime = 500 * time.Millisecond

// settle returns when all programs have ended, after startTime, or when done is closed.
func (p *hostPrograms) settle(done <-chan struct{}) {
	limit := time.After(startTime)
	for range p.all {
		select {
		case <-p.over:
		case <-limit:
			return
		case <-done:
			return
		}
	}
}

// describe adds the state of a host's program to that of the host.
func (p *hostPrograms) describe(host int, out *NodeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch why, has := p.is[host]; {
	case !has || out.State == "dead":
	case why == nil:
		out.Program = "running"
	case *why == "":
		out.Program = "done"
	default:
		out.Program, out.ProgramError = "failed", *why
	}
}

// maxFailed is the number of failed programs, or of changes, that a deployment names one by one.
const maxFailed = 8

// failed returns the programs and hosts of a lab that have failed, a line for each and one for
// those beyond maxFailed.
func (s *State) failed() (out []string) {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.ProgramError != "":
			out = append(out, n.programFailure())
		case n.State == "dead" && !n.Killed:
			out = append(out, n.silent(s.Lab))
		case n.Unplugged:
			out = append(out, n.Name+": "+n.Why)
		}
	}
	return clipped(out, "more failed")
}

// changed returns what requests have changed in a lab, a line for each and one for those beyond
// maxFailed.
func (s *State) changed() (out []string) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Killed || n.State == "paused" {
			out = append(out, n.silent(s.Lab))
		}
	}
	for i := range s.Links {
		k := &s.Links[i]
		if k.State == "down" {
			out = append(out, fmt.Sprintf("link %s is down; weft link %s %[1]s up brings it up", k.Name, s.Lab))
		}
		if len(k.Changes) > 0 {
			out = append(out, fmt.Sprintf("link %s has %s; weft link %s %[1]s set %[4]s restores it", k.Name,
				strings.Join(k.Changes, ", "), s.Lab, strings.Join(k.Restore, ",")))
		}
	}
	return clipped(out, "more changed")
}

// silent returns why a node sends and receives nothing now, with a way out; "": it may.
func (n *NodeState) silent(lab string) string {
	switch n.State {
	case "dead":
		return fmt.Sprintf("%s; weft node %s %s restart starts it again", n.Why, lab, n.Name)
	case "paused":
		return fmt.Sprintf("%s is paused; weft node %s %[1]s resume continues it", n.Name, lab)
	}
	return ""
}

// clipped returns the first maxFailed lines, and one with the number of the others.
func clipped(lines []string, more string) []string {
	if n := len(lines) - maxFailed; n > 0 {
		lines = append(lines[:maxFailed], fmt.Sprintf("%d %s", n, more))
	}
	return lines
}

// programFailure returns that the node's program has failed, and why.
func (n *NodeState) programFailure() string {
	why := strings.TrimPrefix(strings.TrimPrefix(n.ProgramError, "the program of "), n.Name+": ")
	return fmt.Sprintf("the program of %s failed: %s", n.Name, why)
}
