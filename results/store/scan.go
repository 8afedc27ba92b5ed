package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"weft/internal/regular"
	"weft/results/record"
)

// ErrNoTable is that a run has no such data file: what it would hold was not measured.
var ErrNoTable = errors.New("the run has no such data")

// maxFooter is how large a footer is believed to be.
const maxFooter = 64 << 20

// data is an open data file whose footer was checked. Its groups are checked before they are read.
type data struct {
	file   *os.File
	name   string
	size   int64 // up to and with the last footer
	torn   bool  // something follows that: the run was killed
	seals  int   // footers that were looked at
	footer format.FileMetaData
	groups []group
}

// openData opens a data file and finds its last footer that is whole.
func openData(dir, name string) (*data, error) {
	f, err := regular.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), absent(dir, name))
	}
	if err != nil {
		return nil, err
	}
	d := &data{file: f, name: filepath.Join(dir, name)}
	if err := d.belongs(dir, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := d.find(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, err), f.Close())
	}
	return d, nil
}

// errRemoved is that a file is not there that a run left.
var errRemoved = fmt.Errorf("it was removed after the run: %s names it", ManifestFile)

// absent says why there is no such file: the run never had it, or it is gone.
func absent(dir, name string) error {
	if m, err := ReadManifest(dir); err == nil && slices.ContainsFunc(m.Files, func(f record.File) bool { return f.Name == name }) {
		return errRemoved
	}
	return ErrNoTable
}

// belongs holds the file against the manifest of its run: its format is known, and once the run has ended the file has the size and the
// sum that were written down. What is whole in itself may still be of another run, or of none: a file without a manifest beside it.
func (d *data) belongs(dir, name string) error {
	m, err := ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: it is not of a run: there is no %s beside it", d.name, ManifestFile)
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Files, func(f record.File) bool { return f.Name == name })
	switch {
	case i < 0 && len(m.Files) > 0:
		return fmt.Errorf("%s: it is not of this run: %s does not name it", d.name, ManifestFile)
	case i < 0:
		return nil // the run goes on, or was killed
	}
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if info.Size() == m.Files[i].Bytes { // a sparse file of a terabyte is not read to find out
		if _, err := io.Copy(sum, d.file); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if info.Size() != m.Files[i].Bytes || sum.Sum32() != m.Files[i].Sum {
		return fmt.Errorf("%s: it was changed or damaged after the run: it is not what %s says that was written", d.name, ManifestFile)
	}
	return nil
}

// maxSeals is how many footers that are not what their seals say are looked at before a file is given up. Ours.
const maxSeals = 64

// find reads the last whole footer. In a file of a run that was killed it may be followed by a part of a group.
func (d *data) find() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	switch {
	case size == 0:
		return fmt.Errorf("it is empty, since the run was killed before it wrote anything of it: %w", ErrNoTable)
	}
	const step = 1 << 20
	buf := make([]byte, min(size, step))
	for end := size; end >= int64(2*len(magic)); {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if _, err := d.file.ReadAt(part, from); err != nil {
			return err
		}
		for i := bytes.LastIndex(part, []byte(magic)); i >= 0 && d.seals < maxSeals; i = bytes.LastIndex(part[:i+len(magic)-1], []byte(magic)) {
			at := from + int64(i+len(magic))
			text, err := d.footerEnding(at)
			if err != nil {
				return err
			}
			if text != nil {
				d.size, d.torn = at, at < size
				return d.read(text)
			}
		}
		if from == 0 || d.seals >= maxSeals {
			break
		}
		end = from + int64(len(magic)) - 1
	}
	return errors.New("it is damaged, or was not written by weft: there is no footer that is whole")
}

// footerEnding returns the footer that ends at an offset, nil if there is none whose seal is right.
func (d *data) footerEnding(end int64) ([]byte, error) {
	var tail [tailSize]byte
	if end < int64(len(magic)+sealSize+tailSize) {
		return nil, nil
	}
	if _, err := d.file.ReadAt(tail[:], end-int64(tailSize)); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	at := end - int64(tailSize) - n - int64(sealSize)
	if n > maxFooter || at < int64(len(magic)) {
		return nil, nil
	}
	var seal [sealSize]byte
	if _, err := d.file.ReadAt(seal[:], at); err != nil {
		return nil, err
	}
	if string(seal[:len(sealMagic)]) != sealMagic {
		return nil, nil
	}
	d.seals++
	footer := make([]byte, n)
	if _, err := d.file.ReadAt(footer, at+int64(sealSize)); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(seal[len(sealMagic):]) != checksum(footer) {
		return nil, nil
	}
	return footer, nil
}

// read takes in a footer whose seal is right.
func (d *data) read(text []byte) error {
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), text, &d.footer); err != nil {
		return err
	}
	for _, kv := range d.footer.KeyValueMetadata {
		switch kv.Key {
		case formatKey:
			if n, err := strconv.Atoi(kv.Value); err != nil || n > Format {
				return fmt.Errorf("it has format %s; this weft reads up to %d: take a newer weft", kv.Value, Format)
			}
		case groupsKey:
			if err := json.Unmarshal([]byte(kv.Value), &d.groups); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify reads every group and compares its sum, before any of it is decoded.
func (d *data) verify() error {
	for i, g := range d.groups {
		if g.At < 0 || g.Size < 0 || g.At+g.Size > d.size {
			return fmt.Errorf("%s: it is damaged: group %d is outside of it", d.name, i)
		}
		b := make([]byte, g.Size)
		if _, err := d.file.ReadAt(b, g.At); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if checksum(b) != g.Sum {
			return fmt.Errorf("%s: it is damaged: row group %d of %d is not what was written", d.name, i+1, len(d.groups))
		}
	}
	return nil
}

// parquet opens what was found as a Parquet file.
func (d *data) parquet() (_ *parquet.File, err error) {
	defer func() {
		// The sums are right, so this is a mistake of ours or of the library; it is told as an error all the same.
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: cannot be decoded: %v", d.name, p)
		}
	}()
	if err := d.verify(); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(io.NewSectionReader(d.file, 0, d.size), d.size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return f, nil
}

// Scan calls yield with the rows of a data file, in pieces that are valid during the call. T is a struct with the columns
// that are wanted, as `parquet` tags. What is damaged is an error before anything is yielded; of a run that was killed come
// the rows that were written. Without the file the error is ErrNoTable.
func Scan[T any](dir, name string, yield func([]T) error) (err error) {
	d, err := openData(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.file.Close()) }()
	f, err := d.parquet()
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: cannot be decoded: %v", d.name, p)
		}
	}()
	r := parquet.NewGenericReader[T](f)
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]T, 4096)
	for {
		n, err := r.Read(rows)
		if n > 0 {
			if err := yield(rows[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
}

// Numbers returns a column of numbers of a data file, in order and without what is null: the completion times of the flows
// that finished, say. It is much faster than Scan, for tens of millions of rows. Without the file the error is ErrNoTable.
func Numbers(dir, name, column string) (out []float64, err error) {
	d, err := openData(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.file.Close()) }()
	f, err := d.parquet()
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: cannot be decoded: %v", d.name, p)
		}
	}()
	leaf, ok := f.Schema().Lookup(column)
	if !ok {
		return nil, fmt.Errorf("%s: it has no column %q", d.name, column)
	}
	out = make([]float64, 0, f.NumRows())
	for _, g := range f.RowGroups() {
		if out, err = appendNumbers(out, g.ColumnChunks()[leaf.ColumnIndex]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.name, column, err)
		}
	}
	return out, nil
}

// appendNumbers adds the numbers of one group of a column.
func appendNumbers(out []float64, c parquet.ColumnChunk) (_ []float64, err error) {
	pages := c.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch values := p.Data(); c.Type().Kind() {
		case parquet.Int64:
			for _, v := range values.Int64() {
				out = append(out, float64(v))
			}
		case parquet.Int32:
			for _, v := range values.Int32() {
				out = append(out, float64(v))
			}
		case parquet.Double:
			out = append(out, values.Double()...)
		default:
			return nil, errors.New("it is not of numbers")
		}
		parquet.Release(p)
	}
}
