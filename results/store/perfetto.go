package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Perfetto writes the timeline of a run in the Chrome trace event format, which ui.perfetto.dev
// opens. Each host is a process, with the collectives of its ranks and the messages that it
// sends, so that waits are the gaps between them; queues of ports are counters. Times are lab time.
func Perfetto(w io.Writer, dir string) error {
	if _, err := ReadManifest(dir); err != nil {
		return err
	}
	t := &timeline{out: bufio.NewWriterSize(w, 1<<16), hosts: map[string]int{}, names: map[int]string{}}
	s, err := ReadSummary(dir)
	if err != nil && !errors.Is(err, ErrNoSummary) { // a run that was killed has none
		return err
	}
	if err == nil {
		for i, name := range s.CollectiveNames() {
			t.call(name, s.Collectives[i].Items)
		}
	}
	t.out.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	err = errors.Join(t.parts(dir), t.flows(dir), t.queues(dir))
	t.out.WriteString("\n]}\n")
	return errors.Join(err, t.out.Flush())
}

// timeline writes trace events.
type timeline struct {
	out   *bufio.Writer
	hosts map[string]int // numbers of hosts as processes
	names map[int]string // of items, as the summary has them
	count int            // of events
	spans int            // of spans, which have numbers
}

// event is a trace event. Its time is a number of microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Cat   string         `json:"cat,omitempty"`
	ID    string         `json:"id,omitempty"`
	Host  int            `json:"pid"`
	At    json.Number    `json:"ts,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

func (t *timeline) put(e *event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if t.count++; t.count > 1 {
		t.out.WriteByte(',')
	}
	t.out.WriteByte('\n')
	_, err = t.out.Write(b)
	return err
}

// ports is the process of counters.
const ports = 1

// host returns the process of a host, and names it when it is first used.
func (t *timeline) host(name string) (int, error) {
	n, ok := t.hosts[name]
	if ok {
		return n, nil
	}
	n = len(t.hosts) + ports + 1
	t.hosts[name] = n
	return n, t.put(&event{Name: "process_name", Phase: "M", Host: n, Args: map[string]any{"name": name}})
}

// span writes a span of time on a host. Spans may overlap.
func (t *timeline) span(host, kind, name string, start, end int64, args map[string]any) error {
	n, err := t.host(host)
	if err != nil {
		return err
	}
	t.spans++
	e := event{Name: name, Phase: "b", Cat: kind, ID: strconv.Itoa(t.spans), Host: n, At: inMicros(start), Args: args}
	err = t.put(&e)
	e.Phase, e.At, e.Args = "e", inMicros(end), nil
	return errors.Join(err, t.put(&e))
}

// maxNamed is the number of items that get the names of the summary.
const maxNamed = 1 << 20

// call names items, which are given as record.Collective.Items has them.
func (t *timeline) call(name, items string) {
	for part := range strings.SplitSeq(items, ",") {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to-from > maxNamed {
			continue // not written by this program
		}
		for n := from; n <= to && len(t.names) < maxNamed; n++ {
			t.names[n] = name
		}
	}
}

// name returns the name of an item.
func (t *timeline) name(collective string, item int64) string {
	if name := t.names[int(item)]; name != "" {
		return name
	}
	return fmt.Sprintf("%s, item %d", collective, item)
}

func inMicros(ps int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%06d", ps/1_000_000, ps%1_000_000))
}

func (t *timeline) parts(dir string) error {
	return IfPresent(Scan(dir, CollectivesFile, func(rows []partRow) error {
		for i := range rows {
			r := &rows[i]
			name := t.name(r.Collective, int64(r.Item))
			err := t.span(r.Host, "collective", name, r.Start, r.End, map[string]any{"item": r.Item,
				"repeat":    r.Repeat,
				"algorithm": r.Algorithm, "rank": r.Rank, "wrong": r.Wrong})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func (t *timeline) flows(dir string) error {
	return IfPresent(Scan(dir, FlowsFile, func(rows []flowRow) error {
		for i := range rows {
			r := &rows[i]
			if r.FCT == 0 {
				continue // unfinished
			}
			err := t.span(r.Src, "message", "to "+r.Dst, r.Start, r.Start+r.FCT, map[string]any{"bytes": r.Bytes,
				"item": r.Item, "repeat": r.Repeat, "connection": r.Conn, "slowdown": r.Slowdown})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func (t *timeline) queues(dir string) error {
	named := false
	return IfPresent(Scan(dir, QueuesFile, func(rows []queueRow) error {
		for i := range rows {
			r := &rows[i]
			if !named {
				named = true
				err := t.put(&event{Name: "process_name", Phase: "M", Host: ports,
					Args: map[string]any{"name": "ports"}})
				if err != nil {
					return err
				}
			}
			err := t.put(&event{Name: r.Port, Phase: "C", Host: ports, At: inMicros(r.Time),
				Args: map[string]any{"queued bytes": r.Queued}})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}
