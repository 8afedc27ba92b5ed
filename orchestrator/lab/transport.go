package lab

import (
	"fmt"
	"strings"

	"weft/units"
)

// transports is where the lab file's transports are named, a line each: the name, the section of its parameters, and what reads it.
// The section has the transport's name, but for spray, which is STrack over paths that are taken in turn, and has its parameters.
// What a transport does is registered in package transport (kinds.go).
var transports = []struct {
	kind, section string
	read          func(*section) Section
}{
	{"pc4", "pc4", (*section).pc4},
	{"roce", "roce", (*section).roce},
	{"swift", "swift", (*section).swift},
	{"hpcc", "hpcc", (*section).hpcc},
	{"strack", "strack", (*section).strack},
	{"spray", "strack", (*section).strack},
	{"ccm", "ccm", (*section).ccm},
}

// laterTransports are those that the format names and Weft has not yet.
var laterTransports []string

// transportKinds lists the transports.
func transportKinds() choice {
	kinds := choice{later: laterTransports}
	for _, t := range transports {
		kinds.built = append(kinds.built, t.kind)
	}
	return kinds
}

// transportSection says where the parameters of a transport are.
func transportSection(kind string) string {
	for _, t := range transports {
		if t.kind == kind {
			return t.section
		}
	}
	return kind
}

const (
	maxTimer  = 10 * units.Second // queueing targets and retransmission timeouts
	maxWindow = units.GB
	maxTries  = 1000
)

// transport reads the section of the lab's transport. Those of others are there for other runs of the same file,
// which a sweep or the command line gives another transport: they are held to the same rules, but set nothing here,
// and one that no run has a use for is refused.
func (d *decoder) transport(s *section) Transport {
	var t Transport
	t.Kind, _ = s.field("kind").enum(transportKinds())
	used := make(map[string]bool)
	for kind := range d.kinds {
		used[transportSection(kind)] = true
	}
	for _, own := range transports {
		kind := own.kind
		if kind != own.section {
			continue
		}
		f := s.field(kind)
		if kind == transportSection(t.Kind) {
			t.Section = f.open().parameters(own.read)
			continue
		}
		if !f.written() {
			continue
		}
		if t.Kind != "" && !used[kind] && !f.empty() {
			f.problem("no run of this lab uses the transport %s; leave it out", kind)
		}
		d.aside++
		f.open().parameters(own.read)
		d.aside--
	}
	if p, ok := t.Section.(STrack); ok && t.Kind == "spray" && p.Paths&(p.Paths-1) != 0 {
		s.field("strack").problem("spray goes through its paths by an index that is a power of two; %d paths are not", p.Paths)
	}
	for _, kind := range laterTransports {
		s.field(kind).later("the transport " + kind + " is")
	}
	s.close()
	return t
}

// parameters reads all of a transport's section.
func (s *section) parameters(read func(*section) Section) Section {
	defer s.close()
	return read(s)
}

// transportKindsOf returns the transports that the runs of a lab file use: what it says itself, what its sweep goes
// through, and what the command line asks for.
func transportKindsOf(root *node, sets []override) map[string]bool {
	kinds := make(map[string]bool)
	add := func(n *node) {
		if n != nil && n.kind == scalar {
			kinds[n.text] = true
		}
	}
	transport := func(n *node) {
		if n == nil || n.kind != mapping || n.get("kind") == nil {
			kinds[defaults["transport.kind"].text] = true
			return
		}
		add(n.get("kind"))
	}
	transport(root.at0("transport"))
	if s := root.at0("sweep"); s != nil {
		for i, k := range s.keys {
			names := pathsOf(k.name)
			for _, v := range s.items[i].items {
				values := []*node{v}
				if len(names) > 1 && len(v.items) == len(names) {
					values = v.items
				}
				for j := range values {
					switch names[j] {
					case "transport.kind":
						add(values[j])
					case "transport":
						transport(values[j])
					}
				}
			}
		}
	}
	for _, set := range sets {
		switch strings.Join(set.path, ".") {
		case "transport.kind":
			add(set.value)
		case "transport":
			transport(set.value)
		}
	}
	return kinds
}

// timeouts reads when a connection sends again and when it gives up.
func (c *section) timeouts() Timeouts {
	return Timeouts{
		RTOMin: unless(c.field("rto_min"), "auto", func(f field) (units.Time, bool) {
			return quantity(f, units.ParseTime, units.Microsecond, maxTimer)
		}),
		Tries: c.field("tries").integer(1, maxTries),
	}
}

// timer reads a time within lo and maxTimer.
func (f field) timer(lo units.Time) units.Time {
	t, _ := quantity(f, units.ParseTime, lo, maxTimer)
	return t
}

// unless reads f, or takes a word for 0.
func unless[T any](f field, word string, read func(field) (T, bool)) T {
	var v T
	if f.n != nil && f.n.kind == scalar && f.n.text == word {
		f.record(word)
		return v
	}
	v, _ = read(f)
	return v
}

// lineRate reads a rate: absolute, or for so much of the line.
func (f field) lineRate() (Rate, bool) {
	return read(f, "a rate such as 40Mbps or 5Mbps/25Gbps", func(text string) (Rate, error) {
		return parseRate(text, minRate, maxRate)
	}, Rate.String)
}

func parseRate(text string, lo, hi units.Bandwidth) (Rate, error) {
	first, second, per := strings.Cut(text, "/")
	var r Rate
	var err error
	if r.Rate, err = units.ParseBandwidth(first); err == nil && per {
		r.Per, err = parsePer(text, second)
	}
	switch {
	case err != nil && !per:
		return r, fmt.Errorf("%w, or for so much of the line such as 5Mbps/25Gbps", err)
	case err != nil:
		return r, err
	case r.Rate < lo || r.Rate > hi:
		return r, fmt.Errorf("%q is out of range; expected %v to %v", clip(text), lo, hi)
	case per && r.Rate > r.Per:
		return r, fmt.Errorf("%q is more than the line; expected at most as much as it is for", clip(text))
	}
	return r, nil
}

// parsePer reads the rate that a quantity is in proportion to.
func parsePer(text, per string) (units.Bandwidth, error) {
	r, err := units.ParseBandwidth(per)
	if err == nil && (r < minRate || r > maxRate) {
		err = fmt.Errorf("%q is out of range; expected it for %v to %v", clip(text), minRate, maxRate)
	}
	return r, err
}

// String writes r as it would be written in a lab file.
func (r Rate) String() string {
	if r.Per == 0 {
		return r.Rate.String()
	}
	return r.Rate.String() + "/" + r.Per.String()
}

// At is r on a line of a rate, at least 1 bit per second unless r is none.
func (r Rate) At(line units.Bandwidth) units.Bandwidth {
	if r.Per == 0 {
		return r.Rate
	}
	return max(units.Bandwidth(float64(r.Rate)*(float64(line)/float64(r.Per))), 1)
}
