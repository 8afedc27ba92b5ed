package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/lab"
	"weft/results/record"
)

// simulated returns the summaries of the runs of a lab, in their order. args follow weft run.
func simulated(t *testing.T, args ...string) (runs []record.Summary) {
	t.Helper()
	_, stdout, told := weft(t, orchestrated{}, slices.Concat([]string{"run"}, args,
		[]string{"--engine", "sim", "--json", "-q", "--out", t.TempDir()})...)
	for line := range strings.Lines(stdout) {
		var s record.Summary
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	if len(runs) == 0 {
		t.Fatalf("weft run %v: no run: %s", args, told)
	}
	return runs
}

// of returns a number of each of the runs of a transport, all if it is empty, each in a format.
func of(runs []record.Summary, transport, format string, number func(*record.Summary) float64) (all []any) {
	for i := range runs {
		if transport == "" || runs[i].Transport == transport {
			all = append(all, fmt.Sprintf(format, number(&runs[i])))
		}
	}
	return all
}

func meanRTT(s *record.Summary) float64     { return s.RTT.Mean }
func p99RTT(s *record.Summary) float64      { return s.RTT.P99 }
func medianSlow(s *record.Summary) float64  { return s.Flows.Slowdown.P50 }
func p99Slow(s *record.Summary) float64     { return s.Flows.Slowdown.P99 }
func maxSlow(s *record.Summary) float64     { return s.Flows.Slowdown.Max }
func p99FCT(s *record.Summary) float64      { return s.Flows.FCT.P99 }
func drops(s *record.Summary) float64       { return float64(s.Network.Drops) }
func trims(s *record.Summary) float64       { return float64(s.Network.Trims) }
func timeouts(s *record.Summary) float64    { return float64(s.Network.Timeouts) }
func dataPackets(s *record.Summary) float64 { return float64(s.Network.DataPackets) }
func busBW(s *record.Summary) float64       { return s.Collectives[0].BusBWGbps }

// bounds returns the smallest and the largest of the runs' numbers.
func bounds(runs []record.Summary, transport, format string, number func(*record.Summary) float64) []any {
	var all []float64
	for i := range runs {
		if runs[i].Transport == transport {
			all = append(all, number(&runs[i]))
		}
	}
	return []any{fmt.Sprintf(format, slices.Min(all)), fmt.Sprintf(format, slices.Max(all))}
}

// mean returns the mean of the runs' numbers.
func mean(runs []record.Summary, transport string, number func(*record.Summary) float64) (sum float64) {
	n := 0
	for i := range runs {
		if runs[i].Transport == transport {
			sum += number(&runs[i])
			n++
		}
	}
	return sum / float64(n)
}

// incastAnswers returns the sentences of session 1 that have numbers of its runs.
func incastAnswers(t *testing.T) []string {
	const name = "labs/teaching/1-incast.yaml"
	runs := simulated(t, name)
	of16 := func(runs []record.Summary, transport, format string, number func(*record.Summary) float64) any {
		all := of(runs, transport, format, number)
		if len(all) != 4 {
			t.Fatalf("%d numbers of senders of %s, want 4", len(all), transport)
		}
		return all[3]
	}
	slow := func(transport string) []any {
		return []any{of16(runs, transport, "%.1f", medianSlow), of16(runs, transport, "%.1f", p99Slow)}
	}
	lossy := simulated(t, name, "--set", "queues.pfc=off", "--set", "transport.kind=roce")
	alone := simulated(t, name, "--set", "transport.pc4.base_rate=off", "--set", "transport.pc4.initial=line")
	longer := simulated(t, name, "--set", "transport.pc4.target_qtime=10us", "--set", "transport.kind=pc4")
	says(t, "README.md", fmt.Sprintf("grows to %.0f us", 10*math.Floor(runs[3].RTT.Mean/10)),
		fmt.Sprintf("stays at %.1f us", mean(runs, "pc4", meanRTT)),
		fmt.Sprintf("Without, it has with 16 [%s us](docs/teaching.md", of16(alone, "pc4", "%.1f", meanRTT)),
		fmt.Sprintf("and a p99 of %s, not %s", of16(alone, "pc4", "%.1f", p99RTT), of16(runs, "pc4", "%.1f", p99RTT)))
	return []string{
		fmt.Sprintf("PC4: %s (p50) and %s (p99). UEC: %s and %s, without knowing N. DCQCN: %s and %s, less fair.",
			slices.Concat(slow("pc4"), slow("uec"), slow("roce"))...),
		fmt.Sprintf("DCQCN %s, %s, %s and %s us", of(runs, "roce", "%.1f", meanRTT)...),
		fmt.Sprintf("PC4 %s to %s us for every N", bounds(runs, "pc4", "%.1f", meanRTT)...),
		fmt.Sprintf("%.1f us of base round trip", runs[0].BaseRTTUS),
		fmt.Sprintf("UEC %s to %s us", bounds(runs, "uec", "%.1f", meanRTT)...),
		fmt.Sprintf("Without PFC %s packets are dropped, and the slowdown is %s",
			of16(lossy, "roce", "%.0f", drops), of16(lossy, "roce", "%.1f", p99Slow)),
		fmt.Sprintf("%s packets instead of %s, and there are %s timeouts",
			thousands(of16(lossy, "roce", "%.0f", dataPackets)), thousands(of16(runs, "roce", "%.0f", dataPackets)),
			of16(lossy, "roce", "%.0f", timeouts)),
		fmt.Sprintf("with 16 senders %s packets are trimmed", of16(runs, "uec", "%.0f", trims)),
		fmt.Sprintf("%s us instead of %.1f", of16(longer, "pc4", "%.1f", meanRTT), longer[0].BaseRTTUS+10),
		fmt.Sprintf("before two senders reach it (%s us)", of(longer, "pc4", "%.1f", meanRTT)[0]),
		fmt.Sprintf("The slowdown stays %s:", of16(longer, "pc4", "%.1f", p99Slow)),
	}
}

// thousands returns a number of five digits with a comma, as tables have it.
func thousands(number any) string {
	text := number.(string)
	return text[:len(text)-3] + "," + text[len(text)-3:]
}

// collectiveAnswers returns those of session 2. Its table has a row for each algorithm.
func collectiveAnswers(t *testing.T) (answers []string) {
	const name = "labs/teaching/2-collectives.yaml"
	runs := simulated(t, name)
	far := of(simulated(t, name, "--set", "topology.link.delay=10us"), "", "%.1f", busBW)
	if len(runs) != 15 || len(far) != 15 {
		t.Fatalf("%d and %d runs, want 15", len(runs), len(far))
	}
	for i, algorithm := range []string{"ring", "halving and doubling", "two trees"} {
		answers = append(answers, fmt.Sprintf("| "+algorithm+" | %s | %s | %s | %s | %s |",
			of(runs[5*i:5*i+5], "", "%.1f", busBW)...))
	}
	if busBW(&runs[2]) > busBW(&runs[7]) || busBW(&runs[3]) < busBW(&runs[8]) {
		t.Error("ring and halving are not equal between 1 and 4 MB")
	}
	time := runs[0].Collectives[0].TimeUS
	return append(answers,
		fmt.Sprintf("%.1f us (2 x 15/16 x 64 kB / %s Gb/s), %.1f us a step", time, of(runs, "", "%.1f", busBW)[0], time/30),
		fmt.Sprintf("Just above 4 MB (%s against %s; at 16 MB %s against %s)", far[3], far[8], far[4], far[9]),
		fmt.Sprintf("the trees are best (%s against %s and %s)", far[10], far[5], far[0]))
}

// pathAnswers returns those of session 3.
func pathAnswers(t *testing.T) []string {
	const name = "labs/teaching/3-paths.yaml"
	runs := simulated(t, name)
	median := func(transport string) any { return of(runs, transport, "%.2f", medianSlow)[1] }
	var both []string // the directories that the worksheet compares
	for _, transport := range []string{"pc4", "strack"} {
		dir := t.TempDir()
		if code, _, told := weft(t, orchestrated{}, "run", name, "--engine", "sim", "-q", "--set",
			"transport.kind="+transport, "--out", dir); code != exitOK {
			t.Fatalf("exit code %d: %s", code, told)
		}
		both = append(both, dir+"/teaching-paths")
	}
	_, stdout, _ := weft(t, orchestrated{}, "results", "compare", "--json", both[0], both[1])
	var compared struct {
		Differences []struct {
			Metric, Verdict string
			Change          float64
			P               float64 `json:"p_adjusted"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &compared); err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{}
	for _, d := range compared.Differences {
		changes[d.Metric] = fmt.Sprintf("%+.1f %%, p = %.3f, %s", 100*d.Change, d.P, d.Verdict)
	}
	says(t, "docs/uec.md", fmt.Sprintf("Slowdown: PC4 %.1f, from %s to %s; STrack %.1f; UEC %.2f", slices.Concat(
		[]any{mean(runs, "pc4", maxSlow)}, bounds(runs, "pc4", "%.1f", maxSlow),
		[]any{mean(runs, "strack", maxSlow), mean(runs, "uec", maxSlow)})...))
	return []string{
		fmt.Sprintf("PC4: %s, %s, %s, %s, %s: two to four", of(runs, "pc4", "%.2f", maxSlow)...),
		fmt.Sprintf("STrack: %s, %s, %s, %s, %s. ", of(runs, "strack", "%.2f", maxSlow)...),
		fmt.Sprintf("UEC: %s, %s, %s, %s, %s. ", of(runs, "uec", "%.2f", maxSlow)...),
		fmt.Sprintf("PC4 %s, STrack %s.", median("pc4"), median("strack")),
		"Flow completion, p99: " + changes["flow completion, p99"], "Round trip, mean: " + changes["round trip, mean"],
		fmt.Sprintf("the p99 of flow completion is %s to %s us instead of %s to %s,",
			slices.Concat(bounds(runs, "uec", "%.0f", p99FCT), bounds(runs, "strack", "%.0f", p99FCT))...),
		fmt.Sprintf("the mean round trip is %.1f us instead of %.1f", mean(runs, "uec", meanRTT), mean(runs, "strack", meanRTT)),
	}
}

// showAnswers returns those of the show, whose page and notes for the speaker say the same.
func showAnswers(t *testing.T) []string {
	const name, fault = "labs/show/1-queues.yaml", "labs/show/2-failure.yaml"
	dcqcn := []string{name, "--set", "transport.kind=roce", "--set"}
	var others []string
	for _, preset := range lab.Values("transport.roce.preset") {
		if preset != lab.Default("transport.roce.preset") {
			others = append(others, preset)
		}
	}
	presets := simulated(t, append(dcqcn, "sweep.transport.roce.preset=["+strings.Join(others, ",")+"]")...)
	alone := simulated(t, name, "--set", "transport.kind=pc4", "--set", "transport.pc4.base_rate=off",
		"--set", "transport.pc4.initial=line")
	pausing := simulated(t, append(dcqcn, "queues.pfc.xoff=500KB")...)
	cut := simulated(t, fault)
	after := mean(cut, "strack", p99FCT) - mean(simulated(t, fault, "--set", "faults=[]"), "strack", p99FCT)
	if slow := cut[0].Tail; cut[0].Transport != "pc4" || slow == nil || slow.Messages != 1 || slow.WaitedUS != 1000 {
		t.Errorf("%s waits for timeouts: %+v; want one flow of PC4, for a millisecond", cut[0].Transport, slow)
	}
	queues := simulated(t, name)
	if late := mean(queues, "roce", p99FCT)/mean(queues, "pc4", p99FCT) - 1; late < 0.17 || late > 0.23 {
		t.Errorf("DCQCN's flows end %.2f later, the page says a fifth", late)
	}
	ends := fmt.Sprintf("ends %.0f us later than without the cut", after)
	if !strings.Contains(acts[1].Note, ends) {
		t.Errorf("the speaker's note does not say %q: %s", ends, acts[1].Note)
	}
	return []string{
		ends, fmt.Sprintf("PC4's mean round trip is %.1f us and its p99 %.1f", mean(alone, "pc4", meanRTT), mean(alone, "pc4", p99RTT)),
		fmt.Sprintf("instead of %.1f and %.1f", mean(queues, "pc4", meanRTT), mean(queues, "pc4", p99RTT)),
		fmt.Sprintf("have %s to %s us", bounds(presets, "roce", "%.0f", meanRTT)...),
		fmt.Sprintf("at 500 KB it is %.0f us", mean(pausing, "roce", meanRTT)),
	}
}

// says requires that a page has all of some texts, however its lines end.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(strings.Fields(string(b)), " ")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s does not say %q", page, text)
		}
	}
}

// The answers of the simulated sessions and of the show are those of their runs. What is left on
// the page has no number that a run could give.
func TestTeachingAnswers(t *testing.T) {
	page, err := os.ReadFile("docs/teaching.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Join(strings.Fields(string(page)), " ")
	rest, _, _ = strings.Cut(rest, "## Session 4")
	_, rest, _ = strings.Cut(rest, "## A show")
	for _, answers := range [][]string{showAnswers(t), incastAnswers(t), collectiveAnswers(t), pathAnswers(t)} {
		for _, answer := range answers {
			if !strings.Contains(rest, answer) {
				t.Errorf("the page does not say %q", answer)
			}
			rest = strings.Replace(rest, answer, "", 1)
		}
	}
	known := strings.Fields("300 500 20 16 3.5 64 256 30 91 252 0.008") // of labs, by arithmetic, or defaults
	for _, number := range regexp.MustCompile(`[0-9][0-9.,]*[0-9]`).FindAllString(rest, -1) {
		if !slices.Contains(known, number) {
			t.Errorf("no run is compared with the number %s of the page", number)
		}
	}
}
