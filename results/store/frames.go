package store

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"weft/results/frames"
)

// Frames writes frames.parquet and frame_conns.parquet, in place of those of KeepFrames. ports has
// the name of each port.
func (r *Run) Frames(all []frames.Frame, ports []string) error {
	for _, name := range []string{FramesFile, FrameConnsFile} {
		if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r.fail(err)
		}
	}
	portRows, connRows := countRows(all)
	if portRows > 0 {
		if t := tableOf[frameRow](r, FramesFile); t != nil {
			t.rows = slices.Grow(t.rows, min(portRows, groupRows))
			r.err = addPorts(t, all, ports)
		}
	}
	if connRows > 0 {
		if t := tableOf[frameConnRow](r, FrameConnsFile); t != nil {
			t.rows = slices.Grow(t.rows, min(connRows, groupRows))
			r.err = addConns(t, all)
		}
	}
	return r.err
}

// KeepFrames writes the frames of a run in progress, so that they can be read if it is killed.
// Earlier frames change, so each call replaces the files.
func (r *Run) KeepFrames(all []frames.Frame, ports []string) error {
	portRows, connRows := countRows(all)
	if r.err != nil || portRows == 0 {
		return r.err
	}
	err := replaceTable(r.dir, FramesFile, func(t *table[frameRow]) error { return addPorts(t, all, ports) })
	if err == nil && connRows > 0 {
		err = replaceTable(r.dir, FrameConnsFile, func(t *table[frameConnRow]) error { return addConns(t, all) })
	}
	return r.fail(err)
}

// replaceTable writes a data file beside the one of that name, and renames it.
func replaceTable[T any](dir, name string, fill func(*table[T]) error) error {
	part := "." + name + "-part"
	t, err := createTable[T](dir, part, false)
	if err != nil {
		return err
	}
	err = fill(t)
	if err = cmp.Or(err, t.close()); err == nil {
		err = os.Rename(filepath.Join(dir, part), filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(filepath.Join(dir, part)) // the write error matters more
	}
	return err
}

// countRows returns the number of rows of ports and of connections.
func countRows(all []frames.Frame) (ports, conns int) {
	for i := range all {
		ports += len(all[i].Ports)
		conns += len(all[i].Conns)
	}
	return ports, conns
}

// addPorts appends the rows of ports.
func addPorts(t *table[frameRow], all []frames.Frame, ports []string) error {
	var rows []frameRow
	for i := range all {
		rows = rows[:0]
		for _, p := range all[i].Ports {
			rows = append(rows, frameRow{
				int64(all[i].At), ports[p.Port], int64(p.Queued), int64(p.Sent), p.Marks, p.Drops, p.Paused,
			})
		}
		if err := t.add(rows...); err != nil {
			return err
		}
	}
	return nil
}

// addConns appends the rows of connections, each with all that is known.
func addConns(t *table[frameConnRow], all []frames.Frame) error {
	var rows []frameConnRow
	var known []frames.Conn // by connection
	for i := range all {
		rows = rows[:0]
		for _, c := range all[i].Conns {
			if n := int(c.Conn) + 1; n > len(known) {
				known = append(known, make([]frames.Conn, n-len(known))...)
			}
			c = known[c.Conn].Then(c)
			known[c.Conn] = c
			rows = append(rows, frameConnRow{int64(all[i].At), int64(c.Conn), int64(c.Arrived), int64(c.Window)})
		}
		if err := t.add(rows...); err != nil {
			return err
		}
	}
	return nil
}
