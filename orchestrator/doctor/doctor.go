package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weft/orchestrator/uml"
)

// State says how much of something there is.
type State string

// The states of a finding.
const (
	OK       State = "ok"
	Degraded State = "degraded" // Weft does without, and something suffers
	Missing  State = "missing"  // what needs it cannot be done
)

// Finding is one thing that was looked for.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`         // what was found, or the kernel's refusal
	Cost   string `json:"cost,omitempty"` // what its absence costs; empty when OK
	Fix    string `json:"fix,omitempty"`  // how to get it; empty when OK
}

// Options are what a check needs from its caller.
type Options struct {
	// PacketRate measures how many packets per second this machine carries through the fabric. It may be nil:
	// then the list says nothing about it.
	PacketRate func(context.Context) (perSecond float64, err error)

	// BootUML boots the User Mode Linux that is installed here, and says how long that took. It may be nil: then the list
	// says only which one there is.
	BootUML func(context.Context, *uml.Kernel) (time.Duration, error)

	// DockerHost is where to ask for a Docker Engine, as in unix:///var/run/docker.sock; empty means DOCKER_HOST, or there.
	DockerHost string
}

// A test looks for one thing and returns what it found, or the error with which the machine refused.
type test struct {
	name  string
	try   func(context.Context) (detail string, err error)
	grade State // of an error
	cost  string
	fix   string
}

// Check tries everything and returns the findings in a fixed order. It takes well under a second, apart from
// Options.PacketRate and Options.BootUML.
func Check(ctx context.Context, o Options) []Finding {
	tests := append(machine(), isolation()...)
	tests = append(tests, timing(o)...)
	tests = append(tests, network(o)...)
	tests = append(tests, containers(o.DockerHost))
	findings := make([]Finding, 0, len(tests))
	for _, t := range tests {
		findings = append(findings, t.run(ctx))
	}
	return findings
}

func (t test) run(ctx context.Context) Finding {
	if err := ctx.Err(); err != nil {
		return Finding{Name: t.name, State: t.grade, Detail: err.Error()}
	}
	detail, err := t.try(ctx)
	if err == nil {
		return Finding{Name: t.name, State: OK, Detail: detail}
	}
	return Finding{Name: t.name, State: t.grade, Detail: err.Error(), Cost: t.cost, Fix: t.fix}
}

// WriteJSON writes the findings as one JSON array, indented.
func WriteJSON(w io.Writer, findings []Finding) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(findings)
}

// WriteTable writes the findings as a table, and below it what each lack costs and how to mend it.
func WriteTable(w io.Writer, findings []Finding) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, f.State, oneLine(f.Detail))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Cost == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s (%s)\n  costs  %s\n  get it %s\n", f.Name, f.State, f.Cost, f.Fix); err != nil {
			return err
		}
	}
	return nil
}

// oneLine keeps a table a table, whatever an error says.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
