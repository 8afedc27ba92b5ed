package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/results/record"
)

// soundSummary is a run that sent messages.
func soundSummary() *record.Summary {
	return &record.Summary{
		Format: Format, Status: record.OK, Verified: true, Engine: "emu",
		Fidelity:    &record.Fidelity{Verdict: record.OK, Events: 9},
		Flows:       record.Flows{Count: 8, Bytes: 8000},
		Collectives: []record.Collective{{Name: "all-reduce"}, {Name: "incast"}},
		Network:     record.Network{Packets: 8, Delivered: 8},
		Expect:      []record.Expect{{That: "drops == 0", OK: true}},
	}
}

// edited is a summary as a tree of JSON.
type edited map[string]any

// set sets the field at a path, of the first entry of lists; nil removes it.
func (e edited) set(path string, value any) {
	names := strings.Split(path, ".")
	in := map[string]any(e)
	for _, name := range names[:len(names)-1] {
		next := in[name]
		if all, ok := next.([]any); ok {
			next = all[0]
		}
		in = next.(map[string]any)
	}
	if last := names[len(names)-1]; value == nil {
		delete(in, last)
	} else {
		in[last] = value
	}
}

// writeEdited writes a run whose summary and manifest have fields that are set (null is the word,
// nil removes a field), with right checksums.
func writeEdited(t *testing.T, s *record.Summary, summary, manifest map[string]any) (dir string) {
	t.Helper()
	dir = t.TempDir()
	save := func(name string, v any, edits map[string]any) {
		text, err := json.Marshal(v)
		var e edited
		if err = errors.Join(err, json.Unmarshal(text, &e)); err != nil {
			t.Fatal(err)
		}
		for _, path := range slices.Sorted(maps.Keys(edits)) {
			e.set(path, edits[path])
		}
		if text, err = json.Marshal(e); err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	save(SummaryFile, s, summary)
	f, err := fileSum(filepath.Join(dir, SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	save(ManifestFile, record.Manifest{Format: Format, Status: s.Status, Engine: s.Engine, Fidelity: s.Fidelity, Ended: "now",
		Files: []record.File{f}}, manifest)
	return dir
}

var null = json.RawMessage("null")

// A summary that contradicts itself or the manifest is a damaged run, which every reader names with
// the file and the field.
func TestContradictions(t *testing.T) {
	type edits = map[string]any
	for _, c := range []struct {
		summary, manifest edits
		want              string // the field; "": nothing is wrong
	}{
		{nil, nil, ""},
		{edits{"verified": false}, nil, "verified is false, and status is ok"},
		{edits{"verified": false, "collectives": null}, nil, "verified is false, and status is ok"},
		{edits{"verified": null}, nil, "verified is false, and status is ok"},
		{edits{"verified": null, "unmeasured": edits{"verified": "no data"}}, nil, ""},
		{edits{"collectives.wrong": 3}, nil, "collectives.0.wrong is 3, and verified is true"},
		{edits{"collectives.wrong": 3, "verified": false}, nil, "collectives.0.wrong is 3, and status is ok"},
		{edits{"collectives.wrong": 3, "verified": false, "status": "unverified"}, edits{"status": "unverified"}, ""},
		{edits{"collectives.wrong": 3, "status": "unverified"}, edits{"status": "unverified"}, "collectives.0.wrong is 3"},
		{edits{"flows.unfinished": 2}, nil, "flows.unfinished is 2, and status is ok"},
		{edits{"flows.unfinished": 2, "status": "unfinished"}, edits{"status": "unfinished"}, ""},
		{edits{"flows.unfinished": 9, "status": "unfinished"}, edits{"status": "unfinished"}, "flows.unfinished is 9, and flows.count is 8"},
		{nil, edits{"status": "failed"}, `status is "ok", and "failed" in manifest.json`},
		{nil, edits{"status": "failed", "error": "no space"}, `status is "ok", and "failed" in manifest.json (no space)`},
		{edits{"status": "unverified"}, nil, `status is "unverified", and "ok" in manifest.json`},
		{nil, edits{"status": "running"}, `status is "ok", and "`},
		{edits{"fidelity.verdict": "ok"}, edits{"fidelity.verdict": "invalid"}, `fidelity.verdict is "ok", and "invalid" in manifest.json`},
		{edits{"lab": "a"}, edits{"lab": "b"}, `lab is "a", and "b" in manifest.json`},
		{edits{"engine": "sim"}, nil, `engine is "sim", and "emu" in manifest.json`},
		{edits{"seed": 7}, edits{"seed": 8}, `seed is "7", and "8" in manifest.json`},
		{edits{"dilation": 2.5}, edits{"dilation": 1}, `dilation is "2.5", and "1" in manifest.json`},
		{edits{"transport": "pc4"}, edits{"transport": "strack"}, `transport is "pc4", and "strack" in manifest.json`},
		{edits{"transport": "pc4"}, nil, ""}, // an older run
		{edits{"datapath": "fabric"}, edits{"datapath": "kernel"}, `datapath is "fabric"`},
		{edits{"runtime": "docker"}, edits{"runtime": "namespace"}, `runtime is "docker", and "namespace" in manifest.json`},
		{edits{"point": edits{"seed": 1}}, edits{"point": edits{"seed": 2}}, "point is "},
		{nil, edits{"error": "no space"}, `error is "", and "no space" in manifest.json`},
		{edits{"fidelity": nil}, nil, `fidelity.verdict is "", and "ok" in manifest.json`},
		{nil, edits{"fidelity": nil}, ""}, // an older run
		{edits{"network": null}, nil, "network.packets is missing"},
		{edits{"network": nil}, nil, "network.packets is missing"},
		{edits{"flows": null}, nil, "flows.count is missing"},
		{edits{"flows.unfinished": nil}, nil, "flows.unfinished is missing"},
		{edits{"network.drops": nil}, nil, "network.drops is missing"},
		{edits{"network.drops": null}, nil, "network.drops is missing"},
		{edits{"network.drops": null, "unmeasured": edits{"network.drops": "no report"}}, nil, ""},
		{edits{"network": null, "unmeasured": edits{"network": "no report"}}, nil, ""},
		{edits{"network.retransmits": nil}, nil, "network.retransmits is missing"},
		{edits{"network.max_queue_bytes": nil, "rto_min_us": nil, "base_rtt_us": nil, "clocks": nil}, nil, ""},
		{edits{"expect.unmeasured": true}, nil, "expect.0.ok is true, and expect.0.unmeasured, too"},
		{edits{"network": nil, "status": "failed", "error": "x"}, edits{"status": "failed", "error": "x"}, ""},
	} {
		dir := writeEdited(t, soundSummary(), c.summary, c.manifest)
		for how, read := range map[string]func() error{
			"ReadSummary": func() error { _, err := ReadSummary(dir); return err },
			"Perfetto":    func() error { return Perfetto(new(bytes.Buffer), dir) },
			"Export":      func() error { return IfPresent(Export(new(bytes.Buffer), dir, FlowsFile, "csv")) },
		} {
			err := read()
			named := err != nil && errors.Is(err, ErrContradicts) && strings.Contains(err.Error(), c.want) &&
				strings.HasPrefix(err.Error(), filepath.Join(dir, SummaryFile)+": damaged: ")
			if c.want == "" && err != nil || c.want != "" && !named {
				t.Errorf("%s: %v, %v: %v; want %q", how, c.summary, c.manifest, err, c.want)
			}
		}
	}
}

// A field that is missing from summary.json is read as unmeasured, not as 0.
func TestAbsentFieldsHaveNoValue(t *testing.T) {
	dir := writeEdited(t, soundSummary(), map[string]any{
		"rtt_us": nil, "lab_time_us": null, "network.max_queue_bytes": nil, "flows.fct_us.p99": nil, "collectives.time_us": nil,
	}, nil)
	s, err := ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(s.Unmeasured))
	want := []string{"collectives.0.time_us", "flows.fct_us.p99", "lab_time_us", "network.max_queue_bytes", "rtt_us"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s, err = ReadSummary(writeEdited(t, soundSummary(), nil, nil)); err != nil || s.Unmeasured != nil {
		t.Errorf("a whole summary lacks %v, %v", s.Unmeasured, err)
	}
}

// A sweep does not show the numbers of one point under another: directories that were exchanged, or
// one that stands for several points.
func TestExchangedRunsOfASweep(t *testing.T) {
	lab := filepath.Join(t.TempDir(), "x")
	dir := filepath.Join(lab, "sweep-20260101T000000-sim")
	save := func(name string, v any) {
		text, err := json.Marshal(v)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o700)); err == nil {
			err = os.WriteFile(name, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	runs := []string{"20260101T000000-1", "20260101T000000-2", "20260101T000000-3"}
	points := []map[string]any{{"seed": 1, "transport.kind": "pc4"}, {"seed": 1, "transport.kind": "roce"}, {"seed": 2}}
	for i, run := range runs {
		seed := uint64(points[i]["seed"].(int))
		save(filepath.Join(lab, run, ManifestFile), record.Manifest{Format: Format, Lab: "x", Seed: seed, Point: points[i]})
	}
	for _, c := range []struct {
		order []int // run of each point
		found int
	}{
		{[]int{0, 1, 2}, 3}, {[]int{1, 0, 2}, 1}, {[]int{0, 0, 0}, 1}, {[]int{0, 2, 1}, 1},
	} {
		sweep := record.Sweep{Lab: "x", Engine: "sim"}
		for i, run := range c.order {
			sweep.Points = append(sweep.Points, record.SweepPoint{Point: points[i], Seed: uint64(points[i]["seed"].(int)),
				Run: runs[run], Status: record.OK})
		}
		save(filepath.Join(dir, SweepFile), sweep)
		found, err := sweepRuns(dir)
		if err != nil || len(found.Runs) != c.found || len(found.Lacking) != len(points)-c.found {
			t.Errorf("%v: %v, lacking %v, %v", c.order, found.Runs, found.Lacking, err)
		}
	}
}
