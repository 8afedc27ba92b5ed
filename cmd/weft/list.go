package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// listed is a line of `weft results ls --json`.
type listed struct {
	Run       string         `json:"run"`
	Lab       string         `json:"lab,omitempty"`
	Point     map[string]any `json:"point,omitempty"`
	Set       []string       `json:"set,omitempty"` // by the command line: path=value
	Engine    string         `json:"engine,omitempty"`
	Transport string         `json:"transport,omitempty"`
	Seed      uint64         `json:"seed"`
	Started   string         `json:"started,omitempty"`
	Status    string         `json:"status"`
	Missed    int            `json:"missed"` // expectations
	Flows     int64          `json:"flows"`
	Done      int64          `json:"flows_done"`
	Slowdown  float64        `json:"slowdown_p99,omitempty"`
	BusBW     float64        `json:"busbw_gbps,omitempty"` // of the first collective
	Error     string         `json:"error,omitempty"`

	slowdown, busbw, outcome string
}

// listFlags are the flags of weft results ls.
type listFlags struct {
	last   int
	failed bool
	since  string
	json   bool
}

func (a *app) resultsList(root *string) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use: "ls [LAB]", Short: "list the runs, of one lab or of all",
		Long: "List the runs: labs in the order of their names (s2 before s10), and of each the newest run last. settings are the values of\n" +
			"the sweep and those of --set; slowdown is the 99th percentile, or the error of clocks where there is no workload; busbw is of\n" +
			"the first collective. On a terminal the list goes through $PAGER (less), as git's do; PAGER=cat does without.",
		Example: "  weft results ls\n  weft results ls pc4-incast --json\n  weft results ls --last 10\n  weft results ls --failed --since 2h",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lab := ""
			if len(args) == 1 {
				lab = filepath.Base(args[0])
			}
			since, err := sinceOf(flags.since, time.Now())
			if err != nil {
				return err
			}
			if flags.last < 0 {
				return usagef("--last %d; expected how many runs", flags.last)
			}
			out := list(*root, lab, since, flags)
			if word := moved(*root); word != "" {
				fmt.Fprintln(a.stderr, word)
			}
			if flags.json {
				return writeJSON(a.stdout, out)
			}
			if len(out) == 0 {
				fmt.Fprintf(a.stderr, "no run to list in %s%s\n", *root, elsewhereListed(*root, args))
			}
			return a.paged(func(w io.Writer) error { return writeList(w, out, style(a.stdout)) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&flags.last, "last", "n", 0, "only so many runs, the newest (default all)")
	f.BoolVar(&flags.failed, "failed", false, "only runs that are not ok, or missed an expectation")
	f.StringVar(&flags.since, "since", "", "only runs that began since then: a time ago such as 2h or 3d, or a date such as 2026-01-31 or 2026-01-31T15:04")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return cmd
}

// elsewhereListed says how to list the runs in a directory that was named where a lab belongs; "": the argument is of a lab of root, or
// no directory.
func elsewhereListed(root string, args []string) string {
	if len(args) == 0 || len(runDirs(root, filepath.Base(args[0]))) > 0 {
		return ""
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return ""
	}
	return fmt.Sprintf(" of a lab %s; weft results ls --out %s lists the runs in that directory", filepath.Base(args[0]), args[0])
}

// list returns the runs that the flags select, in display order.
func list(root, lab string, since time.Time, flags listFlags) []listed {
	out := []listed{}
	for _, dir := range runDirs(root, lab) {
		l := describeRun(dir)
		began, err := time.Parse(time.RFC3339, l.Started)
		if err == nil && began.Before(since) || flags.failed && (l.Status == record.OK || l.Status == record.Running) && l.Missed == 0 {
			continue
		}
		out = append(out, l)
	}
	if n := flags.last; n > 0 && n < len(out) {
		slices.SortFunc(out, func(x, y listed) int { return cmp.Or(strings.Compare(x.Started, y.Started), natural(x.Run, y.Run)) })
		out = out[len(out)-n:]
	}
	slices.SortFunc(out, func(x, y listed) int {
		return cmp.Or(natural(filepath.Base(filepath.Dir(x.Run)), filepath.Base(filepath.Dir(y.Run))), natural(filepath.Base(x.Run), filepath.Base(y.Run)))
	})
	return out
}

// describeRun reads a run's line of the list.
func describeRun(dir string) listed {
	l := listed{Run: dir, slowdown: "–", busbw: "–"}
	m, err := store.ReadManifest(dir)
	if err != nil {
		l.Status, l.outcome, l.Error = "damaged", "damaged", err.Error()
		return l
	}
	l.Lab, l.Point, l.Engine, l.Seed, l.Started, l.Status, l.Error = m.Lab, m.Point, m.Engine, m.Seed, m.Started, m.Status, m.Error
	l.outcome = l.Status
	for _, s := range m.Settings {
		if _, is := m.Point[s.Path]; !is && (strings.HasPrefix(s.From, "command line: --set") || strings.HasPrefix(s.From, "command line: --retry-dilation")) {
			l.Set = append(l.Set, s.Path+"="+s.Value)
		}
		if s.Path == "transport.kind" {
			l.Transport = s.Value
		}
	}
	s, err := store.ReadSummary(dir)
	if err != nil {
		return l
	}
	l.Transport, l.Missed, l.outcome = s.Transport, table.Missed(s), table.Outcome(s)
	l.slowdown, l.busbw = table.Main(s)
	l.Flows, l.Done, l.BusBW = s.Flows.Count, s.Flows.Count-s.Flows.Unfinished, table.BusBW(s)
	if s.Complete() && s.Flows.Unfinished == 0 { // of the flows that happened to end it says nothing
		l.Slowdown = s.Flows.Slowdown.P99
	}
	return l
}

// mostText is the most characters of settings and of a reason that a list shows, on any output.
const mostText = 80

func writeList(w io.Writer, all []listed, st table.Style) error {
	of := func(name string, drop int, get func(l *listed) string) table.Column {
		c := table.Column{Name: name, Drop: drop}
		for i := range all {
			c.Cells = append(c.Cells, get(&all[i]))
		}
		return c
	}
	slowdown, busbw := of("slowdown", 1, func(l *listed) string { return l.slowdown }), of("busbw", 2, func(l *listed) string { return l.busbw })
	slowdown.Right, busbw.Right = true, true
	settings := of("settings", 0, func(l *listed) string {
		return strings.TrimSpace(table.Point(l.Point) + " " + strings.Join(l.Set, " "))
	})
	why := of("why", 4, func(l *listed) string { first, _, _ := strings.Cut(l.Error, "\n"); return first })
	settings.Most, why.Most = mostText, mostText
	return table.Columns(w, []table.Column{
		of("run", 0, func(l *listed) string { return l.Run }),
		of("started", 6, func(l *listed) string { return l.Started }),
		of("engine", 5, func(l *listed) string { return l.Engine }),
		of("transport", 3, func(l *listed) string { return l.Transport }),
		settings,
		slowdown, busbw,
		of("status", 0, func(l *listed) string { return l.outcome }),
		why,
	}, "--json has all", st)
}

// sinceOf parses a duration before now, or a date. Empty text is the zero instant.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e5 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--since %q; expected a time ago such as 2h or 3d, or a date such as 2026-01-31", text)
}

// paged writes through $PAGER if standard output is a terminal and the pager exists, else directly.
func (a *app) paged(write func(io.Writer) error) error {
	out, ok := a.stdout.(*os.File)
	pager, set := os.LookupEnv("PAGER")
	if !set {
		pager = "less"
	}
	if !ok || !terminal(out) || pager == "" || pager == "cat" {
		return write(a.stdout)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text.Bytes()), out, a.stderr
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // ends where all is on one page, and shows colours
	}
	if name, _, _ := strings.Cut(pager, " "); name != "" {
		if _, err := exec.LookPath(name); err != nil {
			_, err := out.Write(text.Bytes())
			return err
		}
	}
	_ = cmd.Run() // whoever reads may stop when they have seen enough
	return nil
}
