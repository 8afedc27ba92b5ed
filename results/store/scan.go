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

// ErrNoTable is returned for a data file that the run never had, because it did not measure the
// data.
var ErrNoTable = errors.New("the run has no such data")

// IfPresent returns nil for the error that a run has no such table, and any other error as it is.
func IfPresent(err error) error {
	if errors.Is(err, ErrNoTable) {
		return nil
	}
	return err
}

// maxFooter limits the size of a footer, in bytes.
const maxFooter = 64 << 20

// dataFile is an open data file with a checked footer. parquet checks its groups before anything
// decodes them.
type dataFile struct {
	file   *os.File
	name   string
	size   int64 // up to and including the last footer
	tried  int   // footers that were tried
	footer format.FileMetaData
	groups []group
}

// openData opens a data file and finds its last intact footer.
func openData(dir, name string) (*dataFile, error) {
	f, err := regular.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), missingFileError(dir, name))
	}
	if err != nil {
		return nil, err
	}
	d := &dataFile{file: f, name: filepath.Join(dir, name)}
	if err := d.checkManifest(dir, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := d.findFooter(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, err), f.Close())
	}
	return d, nil
}

// errRemoved is returned for a file that the manifest lists and that is missing.
var errRemoved = fmt.Errorf("removed after the run: %s lists it", ManifestFile)

// errChanged is returned for a file whose size or checksum is not that of the manifest.
var errChanged = fmt.Errorf("changed or damaged after the run: size or checksum is not that of %s", ManifestFile)

// missingFileError returns the reason for a missing file: the run never had it (ErrNoTable), or it
// was removed.
func missingFileError(dir, name string) error {
	named := func(f record.File) bool { return f.Name == name }
	if m, err := ReadManifest(dir); err == nil && slices.ContainsFunc(m.Files, named) {
		return errRemoved
	}
	return ErrNoTable
}

// checkManifest compares the file with the manifest of its run: a known format and, once the run
// has ended, the recorded size and checksum. An intact file may still belong to another run, or to
// none: then there is no manifest beside it.
func (d *dataFile) checkManifest(dir, name string) error {
	m, err := ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: not part of a run: there is no %s beside it", d.name, ManifestFile)
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Files, func(f record.File) bool { return f.Name == name })
	switch {
	case i < 0 && unsealed(m):
		return nil // in progress, or killed
	case i < 0 && len(m.Files) == 0:
		return fmt.Errorf("%s: %w", d.name, errUnlisted)
	case i < 0:
		return fmt.Errorf("%s: not part of this run: %s does not list it", d.name, ManifestFile)
	}
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	// Do not read a sparse file of a terabyte to find that it differs.
	if info.Size() == m.Files[i].Bytes {
		if _, err := io.Copy(sum, d.file); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if info.Size() != m.Files[i].Bytes || sum.Sum32() != m.Files[i].Sum {
		return fmt.Errorf("%s: %w", d.name, errChanged)
	}
	return nil
}

// maxSeals is the number of footers with a wrong checksum after which a file is given up. Our
// choice.
const maxSeals = 64

// findFooter reads the last intact footer. In a file of a killed run a part of a group may follow
// it.
func (d *dataFile) findFooter() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size == 0 {
		return fmt.Errorf("empty, because the run was killed before it wrote any rows: %w", ErrNoTable)
	}
	const step = 1 << 20
	buf := make([]byte, min(size, step))
	for end := size; end >= int64(2*len(magic)); {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if _, err := d.file.ReadAt(part, from); err != nil {
			return err
		}
		lastMagic := func(n int) int { return bytes.LastIndex(part[:n], []byte(magic)) }
		for i := lastMagic(len(part)); i >= 0 && d.tried < maxSeals; i = lastMagic(i + len(magic) - 1) {
			at := from + int64(i+len(magic))
			text, err := d.footerEnding(at)
			if err != nil {
				return err
			}
			if text != nil {
				d.size = at
				return d.parseFooter(text)
			}
		}
		if from == 0 || d.tried >= maxSeals {
			break
		}
		end = from + int64(len(magic)) - 1
	}
	return errors.New("damaged, or not written by weft: no intact footer")
}

// footerEnding returns the footer that ends at an offset; nil without one or if its checksum is
// wrong.
func (d *dataFile) footerEnding(end int64) ([]byte, error) {
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
	d.tried++
	footer := make([]byte, n)
	if _, err := d.file.ReadAt(footer, at+int64(sealSize)); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(seal[len(sealMagic):]) != checksum(footer) {
		return nil, nil
	}
	return footer, nil
}

// parseFooter parses an intact footer.
func (d *dataFile) parseFooter(text []byte) error {
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), text, &d.footer); err != nil {
		return err
	}
	for _, kv := range d.footer.KeyValueMetadata {
		switch kv.Key {
		case formatKey:
			n, err := strconv.Atoi(kv.Value)
			if err != nil {
				return fmt.Errorf("damaged: format %q", kv.Value)
			}
			if n > Format {
				return newerFormat(n)
			}
		case groupsKey:
			if err := json.Unmarshal([]byte(kv.Value), &d.groups); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyGroups compares every group with its checksum.
func (d *dataFile) verifyGroups() error {
	for i, g := range d.groups {
		if g.At < 0 || g.Size < 0 || g.At+g.Size > d.size {
			return fmt.Errorf("%s: damaged: row group %d of %d is outside the file", d.name, i+1, len(d.groups))
		}
		b := make([]byte, g.Size)
		if _, err := d.file.ReadAt(b, g.At); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if checksum(b) != g.Sum {
			return fmt.Errorf("%s: damaged: row group %d of %d has a wrong checksum", d.name, i+1, len(d.groups))
		}
	}
	return nil
}

// parquet verifies the groups and opens the file as a Parquet file.
func (d *dataFile) parquet() (*parquet.File, error) {
	if err := d.verifyGroups(); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(io.NewSectionReader(d.file, 0, d.size), d.size,
		parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return f, nil
}

// withFile opens and checks a data file and calls use with its path and contents.
func withFile(dir, name string, use func(path string, f *parquet.File) error) (err error) {
	d, err := openData(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.file.Close()) }()
	defer func() {
		// The checksums match, so a panic is a bug of ours or of the library.
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: cannot be decoded: %v", d.name, p)
		}
	}()
	f, err := d.parquet()
	if err != nil {
		return err
	}
	return use(d.name, f)
}

// Scan calls yield with the rows of a data file, in slices that are valid only during the call. T
// is a struct with the wanted columns as `parquet` tags. A damaged file is an error before the
// first row. A killed run returns the rows that were written. Without the file the error is
// ErrNoTable.
func Scan[T any](dir, name string, yield func([]T) error) error {
	return withFile(dir, name, func(path string, f *parquet.File) (err error) {
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
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	})
}

// Numbers returns a numeric column of a data file in order, without nulls: the completion times of
// the finished flows, for example. It is much faster than Scan for tens of millions of rows.
// Without the file the error is ErrNoTable.
func Numbers(dir, name, column string) (out []float64, err error) {
	err = withFile(dir, name, func(path string, f *parquet.File) (err error) {
		leaf, ok := f.Schema().Lookup(column)
		if !ok {
			return fmt.Errorf("%s: no column %q", path, column)
		}
		out = make([]float64, 0, f.NumRows())
		for _, g := range f.RowGroups() {
			if out, err = appendNumbers(out, g.ColumnChunks()[leaf.ColumnIndex]); err != nil {
				return fmt.Errorf("%s: %s: %w", path, column, err)
			}
		}
		return nil
	})
	return out, err
}

// appendNumbers appends the numbers of one group of a column.
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
			return nil, errors.New("not a column of numbers")
		}
		parquet.Release(p)
	}
}
