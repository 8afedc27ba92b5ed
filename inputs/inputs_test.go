package inputs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"weft/collectives/graph"
	"weft/inputs/chakra"
	"weft/internal/natural"
)

const job = `num_ranks 3
rank 0 {
l1: calc 5000
l2: send 4097b to 1 tag 3
l3: send 70000b to 2 tag 4
l2 requires l1
}
rank 1 {
l1: recv 4097b from 0 tag 3
l2: calc 2000 cpu 2
l2 requires l1
}
rank 2 {
l1: recv 70000b from 0 tag 4
}
`

// memory is a folder that is written to.
type memory struct {
	fstest.MapFS
}

type file struct {
	bytes.Buffer
	done func([]byte)
}

func (f *file) Close() error { f.done(f.Bytes()); return nil }

func (m memory) create(name string) (io.WriteCloser, error) {
	return &file{done: func(b []byte) { m.MapFS[name] = &fstest.MapFile{Data: slices.Clone(b)} }}, nil
}

// A job that is written as GOAL and as Chakra is executed as the same programs.
func TestSameJobInTwoFormats(t *testing.T) {
	files := memory{fstest.MapFS{"job.goal": {Data: []byte(job)}}}
	compiled := func(name, want string) any {
		g, format, err := Read(files, name, Options{})
		if err != nil || format != want {
			t.Fatal(name, format, err)
		}
		given, _, err := graph.Compile(g)
		if err != nil {
			t.Fatal(err)
		}
		return given
	}
	g, _, err := Read(files, "job.goal", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for format, to := range map[string]string{Chakra: "et/", GOAL: "again.goal"} {
		if FormatOf(to) != format {
			t.Error(to)
		}
		err := Write(g, format, func(name string) (io.WriteCloser, error) { return files.create(to + name) })
		if err != nil {
			t.Fatal(err)
		}
	}
	want := compiled("job.goal", GOAL)
	if !reflect.DeepEqual(compiled("et", Chakra), want) || !reflect.DeepEqual(compiled("again.goal", GOAL), want) {
		t.Error("the programs differ")
	}
}

// lazy is a file system with one file that is made while it is read.
type lazy func() io.Reader

func (l lazy) Open(name string) (fs.File, error) {
	if name != "x" {
		return nil, fs.ErrNotExist
	}
	return &lazyFile{l()}, nil
}

type lazyFile struct{ io.Reader }

func (f *lazyFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *lazyFile) Close() error               { return nil }
func (f *lazyFile) Name() string               { return "x" }
func (f *lazyFile) Size() int64                { return 0 }
func (f *lazyFile) Mode() fs.FileMode          { return 0 }
func (f *lazyFile) ModTime() time.Time         { return time.Time{} }
func (f *lazyFile) IsDir() bool                { return false }
func (f *lazyFile) Sys() any                   { return nil }

// A schedule of a gigabyte is read in memory that grows with its operations and not with its bytes:
// WEFT_GIGABYTE=1 go test ./inputs -run Gigabyte -v.
func TestGigabyte(t *testing.T) {
	if os.Getenv("WEFT_GIGABYTE") == "" {
		t.Skip("a minute; make stream runs it")
	}
	const size = 1 << 30
	const ops = 1_000_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	most := uint64(0)
	r := &schedule{ops: ops, comment: size / ops, look: func() {
		runtime.ReadMemStats(&after)
		most = max(most, after.HeapInuse)
	}}
	g, _, err := Read(lazy(func() io.Reader { return r }), "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g.Ops() != ops || r.bytes < size {
		t.Errorf("%d operations in %d bytes", g.Ops(), r.bytes)
	}
	t.Logf("%d bytes, %d operations, at most %d MB", r.bytes, ops, (most-before.HeapInuse)>>20)
	if most-before.HeapInuse > 400<<20 {
		t.Errorf("%d MB of memory", (most-before.HeapInuse)>>20)
	}
}

// schedule is a file of one rank that computes, with a comment behind each operation.
type schedule struct {
	ops, comment int
	look         func() // called now and then

	at    int
	rest  []byte
	bytes int64
}

func (s *schedule) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		switch s.at++; {
		case s.at == 1:
			s.rest = []byte("num_ranks 1\nrank 0 {\n")
		case s.at <= s.ops+1:
			s.rest = fmt.Appendf(s.rest[:0], "l%d: calc 1000 //%*s\n", s.at-1, s.comment, "")
		case s.at == s.ops+2:
			s.rest = []byte("}\n")
		default:
			return 0, io.EOF
		}
		if s.at%(1<<16) == 0 {
			s.look()
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	s.bytes += int64(n)
	return n, nil
}

// A large file is a stream: it takes no memory. A bomb is refused.
func TestLargeFiles(t *testing.T) {
	const size = 80 << 20
	blank := func() io.Reader {
		return io.MultiReader(strings.NewReader("num_ranks 2\n"), &lines{n: size / 1024}, strings.NewReader("oops\n"))
	}
	allocated := testing.AllocsPerRun(1, func() {
		_, _, err := Read(lazy(blank), "x", Options{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("x:%d: \"oops\" is not understood", size/1024+2)) {
			t.Error(err)
		}
	})
	if allocated > 1000 {
		t.Errorf("%v allocations", allocated)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := io.Copy(z, io.MultiReader(strings.NewReader("num_ranks 2\n"), &lines{n: size / 1024}))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	_, _, err = Read(lazy(func() io.Reader { return &bomb }), "x", Options{})
	if err == nil || !strings.Contains(err.Error(), ": compressed more than") {
		t.Error(err)
	}
	blanks := func() io.Reader {
		return io.MultiReader(strings.NewReader(`{"traceEvents":[`), &lines{n: size / 1024})
	}
	_, _, err = Read(lazy(blanks), "x", Options{})
	if err == nil || !strings.Contains(err.Error(), "of white space") {
		t.Error(err)
	}
}

// lines is a file of lines of 1023 blanks.
type lines struct{ n int64 }

func (l *lines) Read(b []byte) (int, error) {
	if l.n <= 0 {
		return 0, io.EOF
	}
	if len(b) < 1024 {
		return 0, io.ErrShortBuffer
	}
	for i := range b[:1024] {
		b[i] = ' '
	}
	b[1023] = '\n'
	l.n--
	return 1024, nil
}

// A folder has a file for each rank, in the order of the numbers in their names.
func TestFolders(t *testing.T) {
	names := []string{"r/x.10.et", "r/x.2.et", "r/" + chakra.GroupsFile, "r/x.0.et"}
	slices.SortFunc(names, natural.Compare)
	if got := strings.Join(names, " "); got != "r/groups.json r/x.0.et r/x.2.et r/x.10.et" {
		t.Error(got)
	}
	files := fstest.MapFS{"a/1.goal": {Data: []byte(job)}, "a/2.goal": {Data: []byte(job)}, "b/job": {Data: []byte(job)},
		"c": {Data: []byte("?")}, "f": {}, "e.csv": {Data: []byte("# of a layer\nname,collective,size\n")}}
	for name, want := range map[string]string{"a": "of which each is a job", "c": "c:1: no known format of jobs begins so", "f": "f:1: an empty file", "d": "does not exist",
		"e.csv": "e.csv:1: no job, but collectives one after another; workload: [{trace: e.csv}] runs them"} {
		if _, _, err := Read(files, name, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	if format, err := Detect(files, "b/"); format != GOAL || err != nil {
		t.Error(format, err)
	}
	if format, err := Detect(files, "c"); format != "" || err != nil {
		t.Error(format, err)
	}
}

// A byte order mark is skipped, UTF-16 is refused by its name, and errors of reading have a place.
func TestEncodings(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(append([]byte("num_ranks 2\n"), bytes.Repeat([]byte("// a comment\n"), 10000)...))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"a/bom.goal":  {Data: []byte("\xef\xbb\xbf" + job)},
		"a/16.goal":   {Data: []byte("\xff\xfen\x00u\x00m\x00")},
		"a/cut.gz":    {Data: z.Bytes()[:z.Len()-20]},
		"a/head.gz":   {Data: z.Bytes()[:5]},
		"a/long.goal": {Data: []byte("num_ranks 2\n" + strings.Repeat("/", 50<<20))},
	}
	for name, want := range map[string]string{
		"a/bom.goal":  "<nil>",
		"a/16.goal":   "/x/a/16.goal:1: text in UTF-16; expected UTF-8, as iconv -f UTF-16 -t UTF-8 writes it",
		"a/cut.gz":    "/x/a/cut.gz: byte 126960: a damaged gzip file: it ends early; copy or compress it again",
		"a/head.gz":   "/x/a/head.gz: byte 0: a damaged gzip file: it ends early; copy or compress it again",
		"a/long.goal": "/x/a/long.goal:2: a line of more than 65536 bytes; expected shorter ones",
	} {
		if _, _, err := Read(files, name, Options{Folder: "/x/"}); fmt.Sprint(err) != want {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}

// onceFS is a file system with files that can be closed once, as those of the operating system.
type onceFS struct{ fstest.MapFS }

func (f onceFS) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	return &onceFile{File: file}, err
}

type onceFile struct {
	fs.File
	closed bool
}

func (f *onceFile) Close() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return f.File.Close()
}

// A file of a format that has a file for each rank is a job of one rank.
func TestOneFileOfMany(t *testing.T) {
	for _, name := range []string{"profile/rank0.json", "job/rank.0.et"} {
		data, err := os.ReadFile("../labs/inputs/files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := Read(onceFS{fstest.MapFS{"one": {Data: bytes.Replace(data, []byte("world_size"), []byte("world"), 1)}}}, "one", Options{})
		if err != nil || len(g.Ranks) != 1 {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
}
