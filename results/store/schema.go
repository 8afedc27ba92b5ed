package store

import (
	"reflect"
	"slices"
	"strings"
)

// Format is the version of the run directory that this program writes, and the newest that it
// reads. It changes if a column changes its meaning; a new column or file does not change it.
const Format = 1

// The rows of the data files as stored. Instants and durations are picoseconds of lab time; column
// names end in their unit. docs/results.md explains the columns, and TestColumnsAreDocumented
// compares it with these types.
type (
	flowRow struct {
		Item     int32   `parquet:"item"`
		Repeat   int32   `parquet:"repeat"`
		Src      string  `parquet:"src,dict"`
		Dst      string  `parquet:"dst,dict"`
		Conn     int64   `parquet:"conn"`
		Message  int64   `parquet:"message"`
		Bytes    int64   `parquet:"bytes"`
		Start    int64   `parquet:"start_ps"`
		FCT      int64   `parquet:"fct_ps,optional"` // null: unfinished
		Ideal    int64   `parquet:"ideal_ps"`
		Slowdown float64 `parquet:"slowdown,optional"`
	}
	partRow struct {
		Item       int32  `parquet:"item"`
		Repeat     int32  `parquet:"repeat"`
		Collective string `parquet:"collective,dict"`
		Algorithm  string `parquet:"algorithm,dict"`
		Rank       int32  `parquet:"rank"`
		Host       string `parquet:"host,dict"`
		Start      int64  `parquet:"start_ps"`
		End        int64  `parquet:"end_ps"`
		Checked    int64  `parquet:"checked"`
		Wrong      int64  `parquet:"wrong"`
	}
	queueRow struct {
		Time   int64  `parquet:"time_ps,delta"`
		Port   string `parquet:"port,dict"`
		Queued int64  `parquet:"queued_bytes"`
		Marks  int64  `parquet:"ce_marks,delta"`
		Drops  int64  `parquet:"drops,delta"`
	}
	windowRow struct {
		Time   int64  `parquet:"time_ps,delta"`
		Conn   int64  `parquet:"conn"`
		Window int64  `parquet:"cwnd_bytes,optional"` // null: none
		Rate   int64  `parquet:"rate_bps"`
		Credit *int64 `parquet:"credit_bytes,optional"` // null: none is needed
	}
	ackRow struct {
		Time   int64 `parquet:"time_ps,delta"`
		Conn   int64 `parquet:"conn"`
		RTT    int64 `parquet:"rtt_ps"`
		Marked bool  `parquet:"ce"`
	}
	rateRow struct {
		Time  int64 `parquet:"time_ps,delta"`
		Conn  int64 `parquet:"conn"`
		Bytes int64 `parquet:"bytes"`
		Rate  int64 `parquet:"rate_bps"`
	}
	clockRow struct {
		Time  int64  `parquet:"time_ps,delta"`
		Host  string `parquet:"host,dict"`
		Error int64  `parquet:"error_ps"`
		Bound int64  `parquet:"bound_ps,optional"` // null: none reported
		State string `parquet:"state,dict"`
	}
	portRow struct {
		Port        string `parquet:"port"`
		Packets     int64  `parquet:"packets"`
		Bytes       int64  `parquet:"bytes"`
		Drops       int64  `parquet:"drops"`
		Marks       int64  `parquet:"ce_marks"`
		MaxQueue    int64  `parquet:"max_queue_bytes"`
		Lost        int64  `parquet:"lost"`
		Cut         int64  `parquet:"cut"`
		Pauses      int64  `parquet:"pauses"`
		Paused      int64  `parquet:"paused_ps"`
		MaxHeadroom int64  `parquet:"max_headroom_bytes"`
		Rate        int64  `parquet:"rate_bps"`
	}
	// trimRow is a row of the ports of a run whose switches trimmed packets.
	trimRow struct {
		portRow
		Trims int64 `parquet:"trims"`
	}
	frameRow struct {
		Time   int64  `parquet:"time_ps,delta"`
		Port   string `parquet:"port,dict"`
		Queued int64  `parquet:"queued_bytes,delta"`
		Sent   int64  `parquet:"sent_bytes,delta"`
		Marks  int64  `parquet:"ce_marks,delta"`
		Drops  int64  `parquet:"drops,delta"`
		Paused bool   `parquet:"paused"`
	}
	frameConnRow struct {
		Time    int64 `parquet:"time_ps,delta"`
		Conn    int64 `parquet:"conn,delta"`
		Arrived int64 `parquet:"arrived_bytes,delta"`
		Window  int64 `parquet:"cwnd_bytes,optional,delta"` // null: none, or not known
	}
	metricRow struct {
		Item  int32   `parquet:"item"`
		Host  string  `parquet:"host,dict"`
		Line  int64   `parquet:"line"`
		Time  int64   `parquet:"time_ps"`
		Name  string  `parquet:"name,dict"`
		Text  string  `parquet:"text"`
		Value float64 `parquet:"value,optional"` // null: no number
	}
	// barRow is a bin of a distribution. Its name is in the files: another one changes their bytes.
	barRow struct {
		From  int64 `parquet:"from_ps"`
		To    int64 `parquet:"to_ps"`
		Count int64 `parquet:"count"`
	}
)

// A Table is a data file of a run directory.
type Table struct {
	File    string
	Columns []string
}

// Tables lists all data files that a run may leave.
func Tables() []Table {
	var out []Table
	for file, row := range map[string]any{
		FlowsFile: flowRow{}, CollectivesFile: partRow{}, QueuesFile: queueRow{}, WindowsFile: windowRow{},
		AcksFile: ackRow{}, RatesFile: rateRow{}, ClocksFile: clockRow{}, PortsFile: trimRow{},
		RTTFile: barRow{}, QueueDelayFile: barRow{}, FramesFile: frameRow{}, FrameConnsFile: frameConnRow{},
		MetricsFile: metricRow{},
	} {
		t := Table{File: file}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(row)) {
			if name, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); name != "" {
				t.Columns = append(t.Columns, name)
			}
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Table) int { return strings.Compare(a.File, b.File) })
	return out
}
