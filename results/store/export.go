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

// Export writes a data file of a run as CSV with a header line (form csv), or as JSON lines (form
// json). A null is an empty field, or null. It writes nothing if the manifest is unreadable or of a
// newer version, or if the summary contradicts itself.
func Export(w io.Writer, dir, name, form string) error {
	if !slices.ContainsFunc(Tables(), func(t Table) bool { return t.File == name }) {
		var names []string
		for _, t := range Tables() {
			names = append(names, t.File)
		}
		return fmt.Errorf("unknown data file %q; expected one of %s", name, strings.Join(names, ", "))
	}
	if _, err := ReadManifest(dir); err != nil {
		return err
	}
	if err := Consistent(dir); err != nil {
		return err
	}
	return withFile(dir, name, func(_ string, f *parquet.File) (err error) {
		out := bufio.NewWriterSize(w, 1<<16)
		var put func([]parquet.Value) error
		var columns []string
		for _, c := range f.Root().Columns() {
			columns = append(columns, cleanText(c.Name(), false))
		}
		switch form {
		case "csv":
			put, err = csvRows(out, columns)
		case "json":
			put = jsonRows(out, columns)
		default:
			return fmt.Errorf("unknown format %q; expected csv or json", form)
		}
		if err == nil {
			err = eachRow(f, put)
		}
		return errors.Join(err, out.Flush())
	})
}

// eachRow calls put with the values of each row, in the order of the columns.
func eachRow(f *parquet.File, put func([]parquet.Value) error) error {
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

// csvRows writes the header line and returns a function that writes a row.
func csvRows(out io.Writer, columns []string) (func([]parquet.Value) error, error) {
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

// jsonRows returns a function that writes a row as a JSON object.
func jsonRows(out io.Writer, columns []string) func([]parquet.Value) error {
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

// text formats a value exactly.
func text(v parquet.Value) string {
	switch v.Kind() {
	case parquet.ByteArray:
		return cleanText(string(v.ByteArray()), false)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	default:
		return strconv.FormatInt(v.Int64(), 10)
	}
}
