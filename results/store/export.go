package store

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Export writes a data file of a run as CSV with a header line, or as JSON lines. What a row does not have is an empty
// field, or null. Of a run whose manifest cannot be read, or is of a newer weft, nothing is written.
func Export(w io.Writer, dir, name, form string) (err error) {
	if !slices.ContainsFunc(Tables(), func(t Table) bool { return t.File == name }) {
		var names []string
		for _, t := range Tables() {
			names = append(names, t.File)
		}
		return fmt.Errorf("no data file is called %q; there are %s", name, strings.Join(names, ", "))
	}
	if _, err := ReadManifest(dir); err != nil {
		return err
	}
	d, err := openData(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.file.Close()) }()
	f, err := d.parquet()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var put func([]parquet.Value) error
	var columns []string
	for _, c := range f.Root().Columns() {
		columns = append(columns, c.Name())
	}
	switch form {
	case "csv":
		put, err = asCSV(out, columns)
	case "json":
		put = asJSON(out, columns)
	default:
		return fmt.Errorf("format %q; expected csv or json", form)
	}
	if err == nil {
		err = eachRow(f, put)
	}
	return errors.Join(err, out.Flush())
}

// eachRow calls put with the values of each row, in the order of the columns.
func eachRow(f *parquet.File, put func([]parquet.Value) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	buf := make([]parquet.Row, 512)
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		for {
			n, rerr := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				if err := put(row); err != nil {
					return errors.Join(err, rows.Close())
				}
			}
			if errors.Is(rerr, io.EOF) {
				break
			}
			if rerr != nil {
				return errors.Join(rerr, rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

func asCSV(out io.Writer, columns []string) (func([]parquet.Value) error, error) {
	w := csv.NewWriter(out)
	fields := make([]string, len(columns))
	err := w.Write(columns)
	return func(row []parquet.Value) error {
		for i, v := range row {
			fields[i] = ""
			if !v.IsNull() {
				fields[i] = text(v)
			}
		}
		if err := w.Write(fields); err != nil {
			return err
		}
		w.Flush()
		return w.Error()
	}, err
}

func asJSON(out io.Writer, columns []string) func([]parquet.Value) error {
	var b []byte
	return func(row []parquet.Value) error {
		b = append(b[:0], '{')
		for i, v := range row {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendQuote(b, columns[i]), ':')
			switch {
			case v.IsNull():
				b = append(b, "null"...)
			case v.Kind() == parquet.ByteArray:
				quoted, err := json.Marshal(text(v))
				if err != nil {
					return err
				}
				b = append(b, quoted...)
			default:
				b = append(b, text(v)...)
			}
		}
		_, err := out.Write(append(b, "}\n"...))
		return err
	}
}

// text writes a value exactly.
func text(v parquet.Value) string {
	switch v.Kind() {
	case parquet.ByteArray:
		return string(v.ByteArray())
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	default:
		return strconv.FormatInt(v.Int64(), 10)
	}
}
