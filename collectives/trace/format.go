package trace

import (
	"encoding/csv"
	"strconv"
	"strings"

	"weft/collectives/schedule"
	"weft/units"
)

// Format formats items as a trace that Parse reads back as the same items. Columns that no item
// needs are left out.
func Format(items []Item) string {
	rows := make([][]string, 0, 1+len(items))
	rows = append(rows, columns[:])
	for i := range items {
		rows = append(rows, items[i].fields())
	}
	var used []int
	for c := range columns {
		for i, row := range rows[1:] {
			if row[c] != "" || c < 2 && i == 0 {
				used = append(used, c)
				break
			}
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	for _, row := range rows {
		short := make([]string, len(used))
		for i, c := range used {
			short[i] = row[c]
		}
		_ = w.Write(short) // writing to a Builder does not fail
	}
	w.Flush()
	return b.String()
}

// fields returns the columns of an item. Defaults are empty.
func (it *Item) fields() []string {
	number := func(n, otherwise int) string {
		if n == otherwise {
			return ""
		}
		return strconv.Itoa(n)
	}
	time := func(t units.Time) string {
		if t == 0 {
			return ""
		}
		return t.String()
	}
	f := make(map[string]string, len(columns))
	f["collective"], f["algorithm"], f["size"], f["name"] = it.Collective, it.Algorithm, it.Size.String(), it.Name
	f["compute"], f["jitter"] = time(it.Compute), time(it.Jitter)
	if !it.Previous {
		f["start"] = it.Start.String()
	}
	if it.Type != schedule.Float32 {
		f["type"] = string(it.Type)
	}
	if it.Op != schedule.Sum {
		f["op"] = string(it.Op)
	}
	switch it.Chunk {
	case schedule.DefaultChunk(it.Collective, it.Algorithm):
	case 0:
		f["chunk"] = "off"
	default:
		f["chunk"] = it.Chunk.String()
	}
	f["repeat"], f["group"], f["stride"] = number(it.Repeat, 1), number(it.Group, 0), number(it.Stride, 1)
	f["root"], f["parallel"], f["local"] = number(it.Root, 0), number(it.Parallel, 0), number(it.Local, 0)
	f["shift"] = number(it.Shift, 0)
	row := make([]string, len(columns))
	for i, name := range columns {
		row[i] = f[name]
	}
	return row
}
