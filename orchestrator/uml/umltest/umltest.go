// Package umltest runs tests under User Mode Linux: a kernel of their own, which has every queueing
// discipline and device that Weft uses. Tests are root there, whoever runs them and whatever the
// machine's kernel lacks.
//
//	func TestMain(m *testing.M) { umltest.Main(m) }
//
//	func TestUMLMarks(t *testing.T) {
//		if umltest.Outside(t) {
//			return
//		}
//		// this runs under User Mode Linux
//	}
//
// The first test that calls Outside boots the kernel once for the whole package and runs all tests
// there whose names begin with TestUML (or, under go test -run, that match the pattern). Each test
// then passes, fails or is skipped as it did there, with the same output. Without User Mode Linux
// the tests are skipped.
package umltest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/orchestrator/uml"
)

// bootTime is subtracted from the time limit of the tests inside, for booting.
const bootTime = 30 * time.Second

// done has the results of this process's tests under User Mode Linux.
var done struct {
	sync.Once
	results map[string]*result
	rest    string // output that belongs to no test
	err     error
	told    bool   // err has been reported
	skip    string // why nothing was run
}

// Main runs the tests, and then after; TestMain calls it. It also runs as the first process of the
// new kernel.
func Main(m *testing.M, after ...func()) {
	if code, played := uml.Role(os.Args); played {
		os.Exit(code)
	}
	os.Exit(testenv.Main(func() int {
		defer func() {
			for _, f := range after {
				f()
			}
		}()
		return m.Run()
	}))
}

// Inside reports whether this process runs under User Mode Linux.
func Inside() bool { return uml.Inside() != "" }

// Outside reports whether this process runs on the machine's own kernel. In that case the test has
// been run under User Mode Linux, t has its result, and the caller returns.
//
// `make test` runs a third of these tests per commit, and boots nothing for a package without any.
func Outside(t *testing.T) bool {
	t.Helper()
	if quiettest.Race {
		t.Skip("the race detector maps more memory than User Mode Linux has")
	}
	sample.Rotate(t, 3)
	if Inside() {
		return false
	}
	if strings.Contains(t.Name(), "/") {
		t.Fatal("umltest.Outside is for tests, not for parts of tests")
	}
	done.Do(func() { runAll(t) })
	if done.skip != "" {
		t.Skip(done.skip)
	}
	r := done.results[t.Name()]
	switch {
	case r == nil && done.err != nil && done.told:
		t.Fatal("as the test before")
	case r == nil && done.err != nil:
		done.told = true
		t.Fatal(done.err)
	case r == nil:
		t.Fatalf("the test was not run under User Mode Linux; its name has to begin with TestUML. Said there:\n%s",
			done.rest)
	}
	if out := strings.TrimRight(r.out.String(), "\n"); out != "" {
		t.Logf("under User Mode Linux:\n%s", out)
	}
	switch r.how {
	case "PASS":
	case "SKIP":
		t.SkipNow()
	case "FAIL":
		t.FailNow()
	default:
		t.Fatalf("the test did not come to its end: %v\n%s", done.err, done.rest)
	}
	return true
}

// others matches the names that do not begin with TestUML: of tests that are for the machine's own
// kernel, though a pattern chooses them together with those for User Mode Linux.
const others = "^[^T]|^Test($|[^U]|U($|[^M])|UM($|[^L]))"

// runAll runs this program again under User Mode Linux.
func runAll(t *testing.T) {
	ctx := t.Context()
	kernel, err := uml.Find(ctx)
	if err != nil {
		done.skip = err.Error()
		return
	}
	args := []string{os.Args[0], "-test.v=test2json"}
	if d, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.Add(-time.Second))
		defer cancel()
		args = append(args, "-test.timeout="+max(time.Until(d)-bootTime, time.Second).String())
	}
	pattern, skip := "^TestUML", others
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "test.run":
			pattern = f.Value.String()
		case "test.skip":
			skip += "|" + f.Value.String()
		case "test.v", "test.timeout", "test.paniconexit0", "test.testlogfile", "test.coverprofile", "test.gocoverdir",
			"test.cpuprofile", "test.memprofile", "test.trace", "test.outputdir", "test.fuzz", "test.bench",
			"test.parallel":
		default:
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	args = append(args, "-test.run="+pattern, "-test.skip="+skip)
	self, err := os.Executable()
	if err != nil {
		done.err = err
		return
	}
	env, stop, err := quiettest.Tell(filepath.Join(t.TempDir(), "disturbed"))
	if err != nil {
		done.err = err
		return
	}
	defer stop()
	var stdout, stderr bytes.Buffer
	code, err := uml.Run(ctx, uml.Command{
		Kernel: kernel, Path: self, Args: args, Env: append(os.Environ(), env), Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil {
		done.err = err
	} else if code != 0 {
		done.err = fmt.Errorf("tests under User Mode Linux ended with %d", code)
	}
	done.results, done.rest = parse(stdout.String())
	done.rest += stderr.String()
}

// result is the result of a test.
type result struct {
	how string // PASS, FAIL, SKIP; empty if it did not finish
	out strings.Builder
}

// mark precedes the lines that package testing writes itself, under -test.v=test2json.
const mark = "\x16"

// parse splits the output by test. The output of subtests belongs to their tests.
func parse(text string) (results map[string]*result, rest string) {
	results = map[string]*result{}
	var loose strings.Builder
	now := ""
	for line := range strings.Lines(text) {
		before, framing, marked := strings.Cut(line, mark)
		if !marked {
			before, framing = line, ""
		}
		if r := results[now]; r != nil {
			r.out.WriteString(before)
		} else {
			loose.WriteString(before)
		}
		verb, name, ok := strings.Cut(strings.TrimSpace(framing), ": ") // --- PASS: name (0.00s)
		if how, ended := strings.CutPrefix(verb, "--- "); ok && ended {
			name, _, _ = strings.Cut(name, " ")
			if r := results[name]; r != nil {
				r.how = how
			}
			now, _, _ = strings.Cut(name, "/")
			continue
		}
		f := strings.Fields(framing)
		if len(f) < 3 || f[0] != "===" {
			continue
		}
		now, _, _ = strings.Cut(f[2], "/")
		if f[1] == "RUN" && results[now] == nil {
			results[now] = &result{}
		}
	}
	return results, loose.String()
}
