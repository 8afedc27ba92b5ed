package store

import (
	"os"
	"path/filepath"
	"testing"

	"weft/results/frames"
	"weft/results/record"
	"weft/units"
)

// manyFrames returns n frames of two ports and a connection.
func manyFrames(n int) []frames.Frame {
	var all []frames.Frame
	for i := range n {
		all = append(all, frames.Frame{
			At:    units.Time(i+1) * units.Microsecond,
			Ports: []frames.Port{{Port: 0, Sent: units.Bytes(i)}, {Port: 1, Queued: units.Bytes(i)}},
			Conns: []frames.Conn{{Conn: 3, Arrived: units.Bytes(i)}},
		})
	}
	return all
}

// What a run kept of its frames can be read while it runs, as it is after it was killed, and the
// file of a run that ends is the same as without.
func TestFramesOfARunThatGoesOn(t *testing.T) {
	ports := []string{"a->b", "b->a"}
	rowsOf := func(dir string) (rows int, last int64) {
		t.Helper()
		type row struct {
			Time int64 `parquet:"time_ps"`
		}
		if err := Scan(dir, FramesFile, func(all []row) error {
			rows, last = rows+len(all), all[len(all)-1].Time
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return rows, last
	}
	var files [2][]byte
	for i, keep := range []bool{true, false} {
		r, err := Open(Options{Root: t.TempDir(), Manifest: record.Manifest{Lab: "x", Engine: "sim"}})
		if err != nil {
			t.Fatal(err)
		}
		for n := 10; keep && n <= 40; n *= 2 {
			if err := r.KeepFrames(manyFrames(n), ports); err != nil {
				t.Fatal(err)
			}
			if rows, last := rowsOf(r.Dir()); rows != 2*n || last != int64(n)*1e6 {
				t.Errorf("of %d frames there are %d rows, the last at %d ps", n, rows, last)
			}
		}
		if err := r.Frames(manyFrames(50), ports); err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(newYear, &record.Summary{Lab: "x", Status: record.OK}); err != nil {
			t.Fatal(err)
		}
		if rows, _ := rowsOf(r.Dir()); rows != 100 {
			t.Errorf("at the end there are %d rows", rows)
		}
		if files[i], err = os.ReadFile(filepath.Join(r.Dir(), FramesFile)); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(r.Dir(), ".*part")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if string(files[0]) != string(files[1]) {
		t.Error("frames that were kept before change the file")
	}
}
