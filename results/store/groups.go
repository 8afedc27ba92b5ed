package store

import (
	"bytes"
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

// groupRows is how many rows make a row group. What a killed simulation loses of a file is less than that. Ours.
const groupRows = 1 << 17

// A Parquet file says what is in it at its end, so an ordinary writer's file is worth nothing until it is closed. Here
// every row group is followed by a footer of all groups so far: whenever the run is killed, the file ends in a footer or
// holds one close to its end. Older footers stay between the groups, where no reader looks. docs/adr/0080.
//
//	PAR1 (group seal footer length PAR1)*        seal = "WFT1" and the CRC-32C of the footer, little endian
const (
	magic     = "PAR1"
	sealMagic = "WFT1"
	sealSize  = len(sealMagic) + 4
	tailSize  = 4 + len(magic) // length of the footer, and the magic that ends a Parquet file

	groupsKey = "weft.groups" // key of the footer: where groups are, and their sums
	formatKey = "weft.format"
)

// group is where a row group lies in its file, and the CRC-32C of its bytes.
type group struct {
	At   int64  `json:"at"`
	Size int64  `json:"size"`
	Sum  uint32 `json:"crc32c"`
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// stream is a data file while it is written.
type stream interface {
	close() error
}

// table is a Parquet file that is written group by group.
type table[T any] struct {
	file   *os.File
	live   bool // flush by the clock too: what is emulated takes as long as it takes
	opened time.Time
	wrote  time.Time // the last group

	rows   []T
	body   bytes.Buffer // a Parquet file of one group
	writer *parquet.GenericWriter[T]
	size   int64 // of the file
	meta   format.FileMetaData
	groups []group
}

func createTable[T any](dir, name string, live bool) (*table[T], error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	t := &table[T]{file: f, live: live, opened: time.Now()}
	t.wrote = t.opened
	t.writer = parquet.NewGenericWriter[T](&t.body,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}), parquet.CreatedBy("weft", "1", ""),
		parquet.DataPageStatistics(false))
	return t, nil
}

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

// due says whether what is in memory has been there for long: a second, or in long runs a sixteenth of them, so that
// there are never many groups.
func (t *table[T]) due() bool {
	now := time.Now()
	return now.Sub(t.wrote) > max(time.Second, now.Sub(t.opened)/16)
}

// flush writes a row group and the footer of all groups so far, in one call of the system.
func (t *table[T]) flush() error {
	t.wrote = time.Now()
	t.body.Reset()
	t.writer.Reset(&t.body)
	if _, err := t.writer.Write(t.rows); err != nil {
		return fmt.Errorf("%s: %w", t.file.Name(), err)
	}
	t.rows = t.rows[:0]
	if err := t.writer.Close(); err != nil {
		return fmt.Errorf("%s: %w", t.file.Name(), err)
	}
	out, err := t.splice(t.body.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", t.file.Name(), err)
	}
	n, err := t.file.Write(out)
	t.size += int64(n)
	return err
}

// splice turns a Parquet file of one group into what is appended to the file.
func (t *table[T]) splice(one []byte) ([]byte, error) {
	end := len(one) - tailSize
	begin := end - int(binary.LittleEndian.Uint32(one[end:]))
	var meta format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), one[begin:end], &meta); err != nil {
		return nil, err
	}
	var out []byte
	if t.size == 0 {
		out = append(out, magic...)
		t.meta = meta
		t.meta.NumRows, t.meta.RowGroups = 0, nil
	}
	body := one[len(magic):begin]
	at := t.size + int64(len(out))
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		move(g, at-int64(len(magic)))
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
	t.meta.KeyValueMetadata = []format.KeyValue{{Key: formatKey, Value: fmt.Sprint(Format)}, {Key: groupsKey, Value: string(sums)}}
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

// move shifts everything that a row group says of where it lies.
func move(g *format.RowGroup, by int64) {
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
			&c.MetaData.DataPageOffset, &c.MetaData.IndexPageOffset, &c.MetaData.DictionaryPageOffset, &c.MetaData.BloomFilterOffset,
		} {
			shift(at)
		}
	}
}

// close writes what is left, synchronises and closes the file, and returns the first error of the three. A file without
// rows is a Parquet file without groups.
func (t *table[T]) close() error {
	var err error
	if len(t.rows) > 0 || t.size == 0 {
		err = t.flush()
	}
	if serr := t.file.Sync(); err == nil {
		err = serr
	}
	if cerr := t.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// lines is events.jsonl: written line by line, since events are few and the last ones matter.
type lines struct{ file *os.File }

func (l *lines) close() error {
	err := l.file.Sync()
	if cerr := l.file.Close(); err == nil {
		err = cerr
	}
	return err
}
