package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// groupRows is the number of rows in a row group. A killed simulation loses fewer rows of each
// file. Our choice.
const groupRows = 1 << 17

// A Parquet file has its index at the end, so an ordinary writer's file is unreadable until it is
// closed. Here every row group is followed by a footer of all groups so far: whenever the run is
// killed, the file ends in a footer or has one close to its end. Older footers stay between the
// groups, where no reader looks. See docs/adr/0080.
//
//	PAR1 (group seal footer length PAR1)*   seal = "WFT1", CRC-32C of the footer, little endian
const (
	magic     = "PAR1"
	sealMagic = "WFT1"
	sealSize  = len(sealMagic) + 4
	tailSize  = 4 + len(magic) // length of the footer, and the magic at the end of a Parquet file

	groupsKey = "weft.groups" // key of the footer: the groups as JSON
	formatKey = "weft.format"
)

// A group is the position of a row group in its file, and the CRC-32C of its bytes.
type group struct {
	At   int64  `json:"at"`
	Size int64  `json:"size"`
	Sum  uint32 `json:"crc32c"`
}

// checksum returns the CRC-32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// A stream is a data file while it is written.
type stream interface {
	close() error
}

// A table is a Parquet file that is written group by group.
type table[T any] struct {
	file   *os.File
	live   bool // flush by time too, since an emulation takes real time
	opened time.Time
	wrote  time.Time // time of the last group

	rows   []T
	body   bytes.Buffer // a Parquet file of one group
	writer *parquet.GenericWriter[T]
	size   int64 // of the file, in bytes
	meta   format.FileMetaData
	groups []group
}

// codec compresses all files. It pools its encoders, each of which has 8 MB.
var codec = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}

// createTable creates a data file without rows.
func createTable[T any](dir, name string, live bool) (*table[T], error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	t := &table[T]{file: f, live: live, opened: time.Now()}
	t.wrote = t.opened
	t.writer = parquet.NewGenericWriter[T](&t.body,
		parquet.Compression(codec), parquet.CreatedBy("weft", "1", ""), parquet.DataPageStatistics(false))
	return t, nil
}

// add appends rows, and flushes full groups.
func (t *table[T]) add(rows ...T) error {
	for len(rows) > 0 {
		n := min(len(rows), groupRows-len(t.rows))
		t.rows, rows = append(t.rows, rows[:n]...), rows[n:]
		if len(t.rows) == groupRows || t.live && t.due() {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// due reports whether rows have been in memory for too long: a second or, in long runs, a sixteenth
// of the run so far, which limits the number of groups.
func (t *table[T]) due() bool {
	now := time.Now()
	return now.Sub(t.wrote) > max(time.Second, now.Sub(t.opened)/16)
}

// flush writes a row group and the footer of all groups so far in one system call.
func (t *table[T]) flush() error {
	t.wrote = time.Now()
	t.body.Reset()
	t.writer.Reset(&t.body)
	_, err := t.writer.Write(t.rows)
	t.rows = t.rows[:0]
	var out []byte
	if err = cmp.Or(err, t.writer.Close()); err == nil {
		out, err = t.splice(t.body.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.file.Name(), err)
	}
	n, err := t.file.Write(out)
	t.size += int64(n)
	return err
}

// splice converts a Parquet file of one group into the bytes to append to the table's file.
func (t *table[T]) splice(file []byte) ([]byte, error) {
	end := len(file) - tailSize
	begin := end - int(binary.LittleEndian.Uint32(file[end:]))
	var meta format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[begin:end], &meta); err != nil {
		return nil, err
	}
	var out []byte
	if t.size == 0 {
		out = append(out, magic...)
		t.meta = meta
		t.meta.NumRows, t.meta.RowGroups = 0, nil
	}
	body := file[len(magic):begin]
	at := t.size + int64(len(out))
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		shiftOffsets(g, at-int64(len(magic)))
		g.Ordinal = int16(len(t.groups))
		t.meta.RowGroups = append(t.meta.RowGroups, *g)
	}
	t.meta.NumRows += meta.NumRows
	out = append(out, body...)
	t.groups = append(t.groups, group{At: at, Size: int64(len(body)), Sum: checksum(body)})
	sums, err := json.Marshal(t.groups)
	if err != nil {
		return nil, err
	}
	t.meta.KeyValueMetadata = []format.KeyValue{
		{Key: formatKey, Value: fmt.Sprint(Format)}, {Key: groupsKey, Value: string(sums)},
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &t.meta)
	if err != nil {
		return nil, err
	}
	out = append(out, sealMagic...)
	out = binary.LittleEndian.AppendUint32(out, checksum(footer))
	out = append(out, footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, magic...), nil
}

// shiftOffsets shifts all offsets of a row group.
func shiftOffsets(g *format.RowGroup, by int64) {
	shift := func(at *int64) {
		if *at != 0 {
			*at += by
		}
	}
	shift(&g.FileOffset)
	for i := range g.Columns {
		c := &g.Columns[i]
		for _, at := range []*int64{
			&c.FileOffset, &c.OffsetIndexOffset, &c.ColumnIndexOffset,
			&c.MetaData.DataPageOffset, &c.MetaData.IndexPageOffset, &c.MetaData.DictionaryPageOffset,
			&c.MetaData.BloomFilterOffset,
		} {
			shift(at)
		}
	}
}

// close writes the remaining rows, syncs and closes the file, and returns the first error. A file
// without rows is a Parquet file without groups.
func (t *table[T]) close() error {
	var err error
	if len(t.rows) > 0 || t.size == 0 {
		err = t.flush()
	}
	return cmp.Or(err, syncAndClose(t.file))
}

// syncAndClose returns the first error of both.
func syncAndClose(f *os.File) error {
	err := f.Sync()
	return cmp.Or(err, f.Close())
}

// eventLog is events.jsonl. It is written line by line, since events are few and the last ones
// matter.
type eventLog struct{ file *os.File }

func (l *eventLog) close() error { return syncAndClose(l.file) }
