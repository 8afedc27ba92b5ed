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

// State is the availability of a feature.
type State string

// The states of a finding.
const (
	OK       State = "ok"
	Degraded State = "degraded" // Weft works without it, at a cost
	Missing  State = "missing"  // what needs it is impossible
)

// Finding is the result for one feature.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`         // what was found, or why the kernel refused
	Cost   string `json:"cost,omitempty"` // what its absence costs; empty when OK
	Fix    string `json:"fix,omitempty"`  // how to get it; empty when OK
}

// Options are a caller's contributions to a check.
type Options struct {
	// PacketRate measures how many packets per second this machine carries through the fabric. If
	// it is nil, the list has no such finding.
	PacketRate func(context.Context) (perSecond float64, err error)
	BypassRate func(context.Context) (perSecond float64, err error) // the same with bypass NICs

	// BootUML boots the installed User Mode Linux and returns how long that took. If it is nil, the
	// list only names the kernel.
	BootUML func(context.Context, *uml.Kernel) (time.Duration, error)

	// Engines start weft on other machines: each has a finding.
	Engines []Engine
}

// Engine starts weft on other machines: Docker Swarm or Slurm.
type Engine struct {
	Name     string                                            // as --on calls it
	Machines func(context.Context) (names []string, err error) // those that take work
}

// test tries one feature and returns what it found, or the machine's refusal as an error.
type test struct {
	name  string
	try   func(context.Context) (detail string, err error)
	grade State // state if there is an error
	cost  string
	fix   string
}

// Check tries everything and returns the findings in a fixed order. It takes well under a second,
// without Options.PacketRate and Options.BootUML.
func Check(ctx context.Context, o Options) []Finding {
	tests := append(machine(), isolation()...)
	tests = append(tests, timing(o)...)
	tests = append(tests, network(o)...)
	tests = append(tests, containers(""))
	for _, e := range o.Engines {
		tests = append(tests, engine(e))
	}
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

// WriteTable writes the findings as a table, followed by what each missing feature costs and how to
// get it.
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
		_, err := fmt.Fprintf(w, "\n%s (%s)\n  costs  %s\n  get it %s\n", f.Name, f.State, f.Cost, f.Fix)
		if err != nil {
			return err
		}
	}
	return nil
}

// oneLine replaces line breaks, so that an error fits into a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
