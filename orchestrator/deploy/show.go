package deploy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weft/internal/plural"
	"weft/units"
)

// ShowMeasured prints a table of expected and measured values.
func ShowMeasured(w io.Writer, all []Measured, of Checked) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "link\tmeasured over\trate asked\tgot\tdelay asked\tgot\tloss asked\tgot")
	links := map[string]bool{} // in the kernel datapath a link has a row for each direction
	for _, m := range all {
		links[m.Link] = true
		if !m.Tried {
			fmt.Fprintf(t, "%s\tnot measured: %s\n", m.Link, m.Why)
			continue
		}
		verdict := m.verdict()
		got := gbps(m.RateBPS)
		if m.RateBPS == 0 { // packets overtake each other on this link
			got = "-"
		}
		if m.Tries > 1 {
			verdict += fmt.Sprintf(" (try %d)", m.Tries)
		}
		over := "only this link"
		if m.Hops > 1 {
			over = "path of " + plural.Count(m.Hops, "link")
		}
		fmt.Fprintf(t, "%s\t%s to %s, %s\t%s\t%s\t%s\t%s\t%.3g %%\t%.3g %%\t%s\n",
			m.Link, m.From, m.To, over, gbps(m.AskedRateBPS), got,
			units.Shown(m.AskedDelayUS, "us"), units.Shown(m.DelayUS, "us"), 100*m.AskedLoss, 100*m.Loss, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %s\n", len(links), plural.Count(of.Links, "link"))
	return err
}

// verdict returns what a measurement says of the link, in words.
func (m *Measured) verdict() string {
	if m.Bad != "" {
		var parts []string
		if missed := strings.TrimSuffix(strings.TrimSuffix(m.Bad, settings), ", "); missed != "" {
			if m.Hops > 1 {
				missed += " of the path; any of its links may be the cause"
			}
			parts = append(parts, "missed: "+missed)
		}
		if len(m.Changes) > 0 {
			parts = append(parts, "changed since the lab was deployed: the link has "+strings.Join(m.Changes, ", "))
		}
		return strings.Join(parts, "; ")
	}
	verdict, but := "ok", []string(nil)
	if m.Unjudged != "" {
		sound := slices.DeleteFunc([]string{"rate", "delay", "loss"}, m.unjudged)
		verdict = "nothing is missed"
		if len(sound) > 0 {
			verdict = strings.Join(sound, " and ") + " ok"
		}
	}
	hidden := slices.DeleteFunc([]string{"rate", "delay"}, func(what string) bool { return !m.unjudged(what) })
	if len(hidden) > 0 {
		but = append(but, strings.Join(hidden, " and ")+
			" cannot be judged, since packets have jitter or overtake each other")
	}
	if m.unjudged("loss") {
		but = append(but, fmt.Sprintf("a loss of %.3g %% is too small to tell from none with %d packets",
			100*m.AskedLoss, m.Probes))
	}
	if m.Bound {
		but = append(but, fmt.Sprintf("its own rate of %s was not measured above %s", gbps(m.LinkRateBPS),
			gbps(m.RateBPS)))
	}
	if but != nil {
		verdict += ", but " + strings.Join(but, ", and ")
	}
	return verdict
}

// unjudged reports whether a property could not be judged.
func (m *Measured) unjudged(what string) bool {
	return slices.Contains(strings.Split(m.Unjudged, ", "), what)
}

// gbps formats a rate of bits per second.
func gbps(bps float64) string { return units.Shown(bps/1e9, "Gb/s") }

// Show prints the state of a lab for people.
func (s *State) Show(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", s.Lab, s.Topology)
	fmt.Fprintf(w, "up since %s; runtime %s, datapath %s, dilation %.15g, addresses %s; lab time %.3f ms\n",
		s.Began.Local().Format(time.DateTime), s.Runtime, s.Datapath, s.Dilation, s.Subnet, s.NowUS/1e3)
	fmt.Fprintf(w, "memory: %s\n", s.Memory)
	if len(s.Machines) > 0 {
		fmt.Fprintf(w, "machines: %s\n", strings.Join(s.Machines, ", "))
	}
	if s.Broken != "" {
		fmt.Fprintf(w, "broken: %s\n", s.Broken)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintln(w)
	var nodes strings.Builder
	t := tabwriter.NewWriter(&nodes, 0, 0, 2, ' ', 0)
	clocks := slices.ContainsFunc(s.Nodes, func(n NodeState) bool { return n.Clock != nil })
	fmt.Fprint(t, "node\ttier\taddress\tstate\tprocess")
	if clocks {
		fmt.Fprint(t, "\tclock ahead by")
	}
	fmt.Fprintln(t)
	for _, n := range s.Nodes {
		state := n.State
		if n.Program != "" {
			state += ", program " + n.Program
		}
		switch in := n.Holder.short(); {
		case n.Holder.Container == "" && n.Unplugged:
			state += ", without its interface"
		case n.Unplugged:
			state += ", of container " + in + ", without its interface"
		case n.Holder.Container != "":
			state += ", as " + n.Holder.Interface + " of container " + in
		}
		pid := ""
		if n.PID != 0 {
			pid = fmt.Sprint(n.PID)
		}
		if n.Machine != "" {
			pid += " on " + n.Machine
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s", n.Name, n.Tier, n.Address, state, pid)
		if n.Clock != nil {
			fmt.Fprintf(t, "\t%.3f us, %s", n.Clock.OffsetUS, n.Clock.State) // clocks differ by nanoseconds
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // writes to memory
	for line := range strings.Lines(nodes.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	fmt.Fprintln(w)
	if err := s.showLinks(w); err != nil {
		return err
	}
	if n := s.Network; n != nil {
		fmt.Fprintf(w,
			"\n%d packets sent, %d delivered; %d dropped by queues, %d lost on links, %d cut off, %d at stopped "+
				"nodes, %d not ordered by the lab\n",
			n.Injected, n.Delivered, n.Drops, n.Lost, n.Cut, n.Unreceived, n.Refused)
	}
	for _, n := range s.Nodes {
		if n.NotRouted+n.Malformed+n.Spoofed+n.SpoofedMAC > 0 {
			fmt.Fprintf(w,
				"%s sent frames that were not carried: %d without a destination, %d malformed, %d with a spoofed "+
					"address, %d with a spoofed MAC address\n",
				n.Name, n.NotRouted, n.Malformed, n.Spoofed, n.SpoofedMAC)
		}
		if n.Unplugged {
			fmt.Fprintf(w, "%s: %s\n", n.Name, n.Why)
		}
		if n.ProgramError != "" {
			fmt.Fprintln(w, n.programFailure())
		}
		if n.Untaken > 0 {
			fmt.Fprintf(w, "%s sent %d frames to Weft's own ports, on which nothing listens in this lab\n",
				n.Name, n.Untaken)
		}
	}
	return nil
}

// showLinks prints a table of the links.
func (s *State) showLinks(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "link\tstate\trate\tdelay\tloss\tqueued\tpackets\tmarked\tdropped")
	for _, k := range s.Links {
		notes := k.Further
		switch {
		case len(k.Changes) > 0:
			notes = append(notes, "(changed: "+strings.Join(k.Changes, ", ")+")")
		case k.Changed:
			notes = append(notes, "(changed)") // its state says how
		}
		if len(notes) > 0 {
			notes[0] = "\t" + notes[0]
		}
		var queued, packets, marks, drops int64
		for _, p := range k.Ports {
			queued, packets, marks, drops = queued+p.QueuedBytes, packets+p.Packets, marks+p.Marks,
				drops+p.Drops+p.Lost+p.Cut
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g%%\t%d B\t%d\t%d\t%d%s\n", k.Name, k.State, units.Bandwidth(k.RateBPS),
			units.Time(k.DelayUS*float64(units.Microsecond)), 100*k.Loss, queued, packets, marks, drops,
			strings.Join(notes, " "))
	}
	return t.Flush()
}
