package report

import (
	"errors"
	"fmt"
	"strings"

	"weft/results/plot"
	"weft/results/store"
)

var errAllNamed = errors.New("every connection has its name")

// nameConnections replaces the numbers of connections by the names of their hosts, from the flows.
// Connections of a chart between the same hosts keep their number behind it.
func (r *Run) nameConnections(series []plot.Series) error {
	type row struct {
		Conn int64  `parquet:"conn"`
		Src  string `parquet:"src"`
		Dst  string `parquet:"dst"`
	}
	wanted := map[string]int{}
	for i := range series {
		wanted[series[i].Name] = i
	}
	names, count := map[int]string{}, map[string]int{}
	err := store.Scan(r.Dir, store.FlowsFile, func(rows []row) error {
		for _, f := range rows {
			i, ok := wanted[connection(f.Conn)]
			if !ok || names[i] != "" {
				continue
			}
			names[i] = strings.Clone(f.Src) + " to " + strings.Clone(f.Dst) // rows are reused
			count[names[i]]++
			if len(names) == len(series) {
				return errAllNamed
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errAllNamed) && !errors.Is(err, store.ErrNoTable) {
		return err
	}
	for i, name := range names {
		if count[name] > 1 {
			name = fmt.Sprintf("%s (%s)", name, series[i].Name)
		}
		series[i].Name = name
	}
	return nil
}
