package store

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weft/results/record"
)

// A name stands for a run, a sweep, or the newest runs of a lab, as a path or below the root.
func TestFind(t *testing.T) {
	root := t.TempDir()
	put := func(name string, v any) {
		t.Helper()
		text, err := json.Marshal(v)
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(name, began, series string, number int, retry *record.Retry) {
		t.Helper()
		put(name+"/"+ManifestFile, record.Manifest{
			Format: Format, Lab: "a", Started: began, Status: record.OK, Retry: retry, Series: &record.Series{ID: series, Number: number},
		})
	}
	run("a/20260101T000000-1", "2026-01-01T00:00:00Z", "x", 1, nil)
	run("a/20260102T000000-2", "2026-01-02T00:00:00Z", "y", 2, nil)
	run("a/20260102T000000-10", "2026-01-02T00:00:00Z", "y", 10, nil)
	run("a/20260102T000000-3", "2026-01-02T00:00:00Z", "y", 3, nil)
	run("a/20260102T000000-4", "2026-01-02T00:00:00Z", "y", 3, &record.Retry{Of: filepath.Join(root, "a/20260102T000000-3"), Counts: true})
	put("a/sweep-1/"+SweepFile, record.Sweep{Lab: "a", Points: []record.SweepPoint{{Run: "elsewhere/20260101T000000-1"}, {Run: "20260102T000000-2"}, {Run: "gone"}}})
	for name, want := range map[string][]string{
		"a":                                      {"20260102T000000-2", "20260102T000000-4", "20260102T000000-10"},
		"a/20260101T000000-1":                    {"20260101T000000-1"},
		filepath.Join(root, "a/sweep-1"):         {"20260101T000000-1", "20260102T000000-2"},
		"b":                                      nil,
		filepath.Join(root, "a/20260101T000000"): nil,
	} {
		var got []string
		found, err := Find(root, name)
		for _, dir := range found.Runs {
			got = append(got, filepath.Base(dir))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Find(%s) = %q, %v, want %q", name, got, err, want)
		}
	}
	if all, err := Newest(root); len(all.Runs) != 3 || err != nil {
		t.Errorf("newest runs: %q, %v", all.Runs, err)
	}
	if found, _ := Find(root, filepath.Join(root, "a/sweep-1")); len(found.Lacking) != 1 || found.Lacking[0].Error != "its directory gone is gone" {
		t.Errorf("the sweep lacks %+v", found.Lacking)
	}
	// A sweep whose sweep.json cannot be read may have reused runs, which nothing else names.
	put("c/20260103T000000-1/"+ManifestFile, record.Manifest{
		Format: Format, Lab: "c", Started: "2026-01-03T00:00:00Z", Status: record.OK,
		Series: &record.Series{ID: "z", Number: 1, Sweep: "sweep-20260103T000000"},
	})
	put("c/sweep-20260103T000000/"+SweepFile, record.Sweep{Points: []record.SweepPoint{{Run: "20260103T000000-1"}}})
	for _, text := range []string{"", "{", "{}", "[]", "null", `{"points": []}`, `{"points": 3}`, `{"points": {}}`} {
		if err := os.WriteFile(filepath.Join(root, "c/sweep-20260103T000000", SweepFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"c", "c/sweep-20260103T000000"} {
			if found, err := Find(root, name); err == nil || len(found.Runs) > 0 {
				t.Errorf("%s with sweep.json %q: %+v, %v", name, text, found, err)
			}
		}
		if _, err := Newest(root); err == nil {
			t.Errorf("all labs with sweep.json %q: no error", text)
		}
	}
}

// A file that was removed, shortened, replaced or emptied after the run is named.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	m := &record.Manifest{}
	if err := os.Mkdir(filepath.Join(dir, "job"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "job/f", "job/g"} {
		m.Files = append(m.Files, record.File{Name: name, Bytes: 3})
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := Damage(dir, m); got != "" {
		t.Errorf("intact: %q", got)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Remove(in("a")), os.Truncate(in("b"), 2), os.Truncate(in("c"), 0), os.Remove(in("d")),
		os.Mkdir(in("d"), 0o755), os.Remove(in("job/f"))); err != nil {
		t.Fatal(err)
	}
	m.Files = append(m.Files, record.File{Name: "../outside"})
	if got, want := Damage(dir, m), "removed after the run: a, job/f; changed or damaged after the run: b, c, d, ../outside"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A sweep is its sweep.json, by whatever name: also if it took all or some of its runs from earlier
// command lines, was interrupted, goes on, or was killed.
func TestFindSweeps(t *testing.T) {
	const early, late = "20260101T000000", "20260102T000000"
	type run struct {
		name, series, sweep string
		point               float64
	}
	earlier := []run{{early + "-1", "x", "sweep-" + early + "-sim", 1}, {early + "-2", "x", "sweep-" + early + "-sim", 2}}
	resumed := "sweep-" + late + "-sim"
	for _, c := range []struct {
		name  string
		later []run
		// points of the later sweep: the name of the run of each, or its status
		points  []string
		want    []string
		lacking []string // status of each
	}{
		{"all runs are reused", nil, []string{early + "-1", early + "-2"}, []string{early + "-1", early + "-2"}, nil},
		{"one is new", []run{{late + "-3", "y", resumed, 3}}, []string{early + "-1", early + "-2", late + "-3"},
			[]string{early + "-1", early + "-2", late + "-3"}, nil},
		{"interrupted", []run{{late + "-3", "y", resumed, 3}},
			[]string{early + "-1", early + "-2", late + "-3", record.Interrupted},
			[]string{early + "-1", early + "-2", late + "-3"}, []string{record.Interrupted}},
		{"killed, or in progress", []run{{late + "-3", "y", resumed, 3}},
			[]string{early + "-1", early + "-2", record.Running, record.Running},
			[]string{early + "-1", early + "-2", late + "-3"}, []string{record.Interrupted}},
		{"a run was removed", nil, []string{early + "-1", late + "-9"}, []string{early + "-1"}, []string{record.Failed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			put := func(name, file string, v any) {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(root, "a", name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := writeJSON(filepath.Join(root, "a", name, file), v); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range append(earlier, c.later...) {
				began := "2026-01-01T00:00:00Z"
				if r.series == "y" {
					began = "2026-01-02T00:00:00Z"
				}
				put(r.name, ManifestFile, record.Manifest{Format: Format, Lab: "a", Started: began, Status: record.OK,
					Point:  map[string]any{"x": r.point},
					Series: &record.Series{ID: r.series, Number: int(r.point), Sweep: r.sweep}})
			}
			put(earlier[0].sweep, SweepFile, record.Sweep{Series: "x", Started: "2026-01-01T00:00:00Z",
				Points: []record.SweepPoint{{Run: earlier[0].name}, {Run: earlier[1].name}, {Status: record.Interrupted}}})
			s := record.Sweep{Lab: "a", Engine: "sim", Series: "y", Started: "2026-01-02T00:00:00Z"}
			for i, run := range c.points {
				p := record.SweepPoint{Point: map[string]any{"x": float64(i + 1)}, Status: record.OK}
				if run == record.Running || run == record.Interrupted {
					p.Status = run
				} else {
					p.Run = filepath.Join("runs/a", run)
				}
				s.Points = append(s.Points, p)
			}
			put(resumed, SweepFile, s)
			for name, find := range map[string]func() (Found, error){
				"lab":      func() (Found, error) { return Find(root, "a") },
				"path":     func() (Found, error) { return Find("", filepath.Join(root, "a")) },
				"sweep":    func() (Found, error) { return Find(root, "a/"+resumed) },
				"all labs": func() (Found, error) { return Newest(root) },
			} {
				found, err := find()
				var got, lacking []string
				for i, dir := range found.Runs {
					got = append(got, filepath.Base(dir))
					if found.Points[dir]["x"] != float64(i+1) {
						t.Errorf("by %s, %s is point %v", name, dir, found.Points[dir])
					}
				}
				for _, s := range found.Lacking {
					lacking = append(lacking, s.Status)
				}
				if err != nil || !slices.Equal(got, c.want) || !slices.Equal(lacking, c.lacking) {
					t.Errorf("by %s: %q, lacking %q, %v; want %q, lacking %q", name, got, lacking, err, c.want, c.lacking)
				}
			}
		})
	}
}
