package deploy

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weft/internal/clip"
	"weft/internal/plural"
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

// maxFailed is the number of failed programs that a deployment names one by one.
const maxFailed = 8

// failed returns the programs of a lab that have failed, a line for each and one for those beyond
// maxFailed.
func (s *State) failed() (out []string) {
	more := 0
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.ProgramError == "":
		case len(out) < maxFailed:
			out = append(out, n.programFailure())
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%s more failed", plural.Count(more, "program")))
	}
	return out
}

// programFailure returns that the node's program has failed, and why.
func (n *NodeState) programFailure() string {
	why := strings.TrimPrefix(strings.TrimPrefix(n.ProgramError, "the program of "), n.Name+": ")
	return fmt.Sprintf("the program of %s failed: %s", n.Name, why)
}
