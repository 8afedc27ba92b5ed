package collect

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/fuzztest"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
	"weft/results/store"
)

const labText = "weft: 1\nname: many\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n" +
	"sweep: {seed: [1, 2, 3, 4]}\n"

// newDir submits a lab of four points in two shards, and starts a round.
func newDir(t testing.TB) *shard.Dir {
	t.Helper()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &sweep.Submission{Format: sweep.Format, ID: "sweep-20260101T000000-sim", Lab: "many", File: "many.yaml", Text: labText,
		Engine: lab.EngineOptions{Kind: "sim"}, Kind: "sim", Points: []string{"seed=1", "seed=2", "seed=3", "seed=4"}, Shards: 2,
		Began: began, Series: "S", Results: "runs", Program: store.Program()}
	path := filepath.Join(t.TempDir(), "many", s.ID)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := shard.Create(path, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddRound(sweep.Round{Number: 1, On: "swarm", Collect: Auto, Began: began}); err != nil {
		t.Fatal(err)
	}
	return d
}

// collector is a collector of a test, whose requests go through change.
type collector struct {
	d    *shard.Dir
	addr string
	keys string // file with the keys of tasks
	own  []byte
	said chan string // troubles
}

func newCollector(t *testing.T, change func(http.Handler) http.Handler) *collector {
	t.Helper()
	own, keys, err := makeKeys(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{d: newDir(t), keys: filepath.Join(t.TempDir(), "keys"), own: own, said: make(chan string, 1000)}
	if err := os.WriteFile(c.keys, keys, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(c.d, 1, func(why string) {
		if why != "" {
			c.said <- why
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	web := s.http()
	if web.TLSConfig, err = config(own); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		web.Handler = change(web.Handler)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.addr = l.Addr().String()
	done := make(chan error)
	go func() { done <- web.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		if err := errors.Join(web.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

// dial returns the backend of a task.
func (c *collector) dial(t *testing.T) *Remote {
	t.Helper()
	r, err := Dial(t.Context(), c.addr, c.keys, filepath.Join(t.TempDir(), "work"), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func runShard(t *testing.T, b shard.Backend, k int) error {
	return shard.Run(t.Context(), b, shard.Options{Shard: k, Round: 1, Host: "m1", Run: orchestrate.Run,
		Say: func(line string) { t.Log(line) }})
}

// wantSame fails the test unless a sweep has the runs of a shared directory and nothing else.
func wantSame(t *testing.T, d *shard.Dir) {
	t.Helper()
	shared := newDir(t)
	for k := range 2 {
		if err := runShard(t, shared, k); err != nil {
			t.Fatal(err)
		}
	}
	for i := range d.Sub.Points {
		a, placed := d.RunDir(i)
		b, _ := shared.RunDir(i)
		got, err := shard.PrintOf(a)
		if err != nil || !placed {
			t.Fatal(err, placed)
		}
		if want, err := shard.PrintOf(b); err != nil || !maps.Equal(got, want) || len(got) < 4 {
			t.Errorf("point %d: %v, want %v, %v", i, got, want, err)
		}
	}
	f := d.Scan()
	for _, folder := range []string{"tries", "work", "notes", "differs"} {
		if left := store.EntryNames(filepath.Join(d.Path, shard.Folder, folder)); len(left) > 0 {
			t.Errorf("%s has %v", folder, left)
		}
	}
	if names := store.EntryNames(filepath.Dir(d.Path)); len(f.Placed) != 4 || len(names) != 5 {
		t.Errorf("%+v, %v", f, names)
	}
}

// Tasks that share no directory leave what those leave that do.
func TestSameAsShared(t *testing.T) {
	c := newCollector(t, nil)
	for k := range 2 {
		r := c.dial(t)
		if err := runShard(t, r, k); err != nil {
			t.Fatal(err)
		}
		if n, err := r.SettledIn(t.Context(), k); n != 2 || err != nil {
			t.Errorf("%d settled, %v", n, err)
		}
		if left := store.EntryNames(r.work); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		if err := runShard(t, r, k); err != nil { // again: nothing is left to do
			t.Error(err)
		}
	}
	wantSame(t, c.d)
	if err := c.d.Cancel(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), c.addr, c.keys, t.TempDir(), nil); !errors.Is(err, shard.ErrOver) {
		t.Error(err)
	}
}

// A tenth of all requests are lost on their way, and a tenth of the answers. Two copies of each
// shard run at once. Each point is there once, with the same bytes.
func TestLostRequests(t *testing.T) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))) // any order must do
	draw := func() int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(10)
	}
	c := newCollector(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch draw() {
			case 0:
			case 1:
				h.ServeHTTP(httptest.NewRecorder(), r)
			default:
				h.ServeHTTP(w, r)
				return
			}
			panic(http.ErrAbortHandler)
		})
	})
	ended := make(chan error)
	for k := range 4 {
		r := c.dial(t)
		go func() { ended <- runShard(t, r, k/2) }()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	wantSame(t, c.d)
}

// A file that is larger than a request comes in pieces. What a collector has lost meanwhile comes
// again.
func TestPieces(t *testing.T) {
	pieces := 0
	var c *collector
	c = newCollector(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/files/") {
				if pieces++; pieces == 3 {
					all, err := filepath.Glob(filepath.Join(c.d.Path, shard.Folder, "work", "*", "big file"))
					if err != nil || len(all) != 1 || os.Truncate(all[0], 100) != nil {
						t.Error(all, err)
					}
				}
			}
			h.ServeHTTP(w, r)
		})
	})
	r := c.dial(t)
	id := beginTry(t, r, 0)
	want := bytes.Repeat([]byte("0123456789"), maxPiece/4)
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, "big file"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	err := r.Place(t.Context(), id, sweep.Try{}, run)
	if err == nil || !strings.Contains(err.Error(), "no run of point 0 of this sweep") {
		t.Error(err)
	}
	got, err := os.ReadFile(filepath.Join(c.d.Path, shard.Folder, "work", id, "big file"))
	if err != nil || !bytes.Equal(got, want) || pieces != 6 {
		t.Errorf("%d bytes in %d pieces, %v", len(got), pieces, err)
	}
}

// beginTry begins a try of a point.
func beginTry(t *testing.T, r *Remote, point int) string {
	t.Helper()
	id := fmt.Sprintf("%d-%s", point, strings.Repeat("A", 26))
	if next, err := r.Begin(t.Context(), id, sweep.Try{Point: point, Shard: point % 2, Round: 1, Host: "evil\x1b[31m"}); err != nil ||
		next != sweep.Run {
		t.Fatal(next, err)
	}
	return id
}

func rand26() string { return crand.Text()[:26] }

// codeOf returns the code of a refusal.
func codeOf(err error) int {
	var refused refusal
	if errors.As(err, &refused) {
		return refused.code
	}
	return 0
}

// Whoever has the keys of a task can leave nothing but runs of points, in their places.
func TestHostileTask(t *testing.T) {
	c := newCollector(t, nil)
	r := c.dial(t)
	id := beginTry(t, r, 0)
	long := bytes.Repeat([]byte("x"), maxPiece+1)
	other := fmt.Sprintf("1-%s", strings.Repeat("B", 26))
	for _, bad := range []struct {
		method, path string
		body         []byte
		code         int
	}{
		{"PUT", "tries/" + id + "/files/%2e%2e%2f%2e%2e%2fx?at=0", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/%2fetc%2fx?at=0", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/a%00b?at=0", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/" + strings.Repeat("x", 300) + "?at=0", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/x?at=-1", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/x?at=9223372036854775807", []byte("x"), 409},
		{"PUT", "tries/" + id + "/files/x?at=1", []byte("x"), 409},
		{"PUT", "tries/" + id + "/files/x", []byte("x"), 400},
		{"PUT", "tries/" + id + "/files/x?at=0", long, 413},
		{"PUT", "tries/" + id + "/files/x/y?at=0", []byte("x"), 400}, // x is a file
		{"PUT", "tries/" + other + "/files/x?at=0", []byte("x"), 404},
		{"PUT", "tries/../tries/files/x?at=0", []byte("x"), 404},
		{"PUT", "tries/1-..%2f" + strings.Repeat("A", 23) + "/files/x?at=0", []byte("x"), 400},
		{"POST", "tries/" + id + "/place", []byte("{}"), 422},
		{"POST", "tries/" + id + "/place", []byte(`{"x": "12"}`), 422},
		{"POST", "tries/" + id + "/place", []byte("garbage"), 400},
		{"POST", "tries/" + id + "/place", long, 413},
		{"POST", "tries/" + other + "/place", []byte("{}"), 404},
		{"POST", "tries/" + other, []byte(`{"point": 0, "shard": 0, "round": 1}`), 400},
		{"POST", "tries/" + other, []byte(`{"point": 1, "shard": 0, "round": 1}`), 400},
		{"POST", "tries/" + other, []byte(`{"point": 1, "shard": 1, "round": 2}`), 400},
		{"POST", "tries/4-" + strings.Repeat("B", 26), []byte(`{"point": 4, "shard": 0, "round": 1}`), 400},
		{"POST", "points/-1/never", []byte(`""`), 400},
		{"POST", "points/4/never", []byte(`""`), 400},
		{"GET", "shards/2", nil, 400},
		{"GET", "", nil, 404},
		{"DELETE", "submission", nil, 405},
	} {
		if err := r.once(t.Context(), bad.method, bad.path, bad.body, nil); codeOf(err) != bad.code {
			t.Errorf("%s %.80s: %v, want %d", bad.method, bad.path, err, bad.code)
		}
	}
	if f := c.d.Scan(); len(f.Notes) > 0 || f.Placed[0] || len(f.Tries) != 1 || strings.Contains(f.Tries[0].Host, "\x1b") {
		t.Errorf("%+v", f)
	}
	if names := store.EntryNames(filepath.Dir(c.d.Path)); len(names) != 1 {
		t.Errorf("%v", names)
	}
	work, err := c.d.Work(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles {
		if err := os.WriteFile(filepath.Join(work, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.once(t.Context(), "PUT", "tries/"+id+"/files/more?at=0", nil, nil); codeOf(err) != 413 {
		t.Error(err)
	}
	failed := sweep.Try{Point: 1, Shard: 1, Round: 1, Error: "no"} // counts as well
	for range maxTries {
		name := "1-" + rand26()
		if _, err := c.d.Begin(t.Context(), name, failed); err != nil {
			t.Fatal(err)
		}
		if err := c.d.End(t.Context(), name, failed); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.tell(t.Context(), "tries/1-"+rand26(), failed, nil); codeOf(err) != 403 {
		t.Error(err)
	}
	if n := len(c.d.Tries(1)); n != maxTries {
		t.Errorf("%d tries", n)
	}
	if len(c.said) > 0 {
		t.Errorf("%s", <-c.said)
	}
}

// A run of another sweep, of another point, or one that has not ended is no result, and one that
// was placed stays as it is.
func TestWrongRuns(t *testing.T) {
	c := newCollector(t, nil)
	r := c.dial(t)
	elsewhere := newDir(t)
	for k := range 2 {
		if err := runShard(t, elsewhere, k); err != nil {
			t.Fatal(err)
		}
	}
	run, _ := elsewhere.RunDir(0)
	manifest := filepath.Join(run, store.ManifestFile)
	right, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{`"id": "S"`, `"id": "T"`}, {`"number": 1`, `"number": 2`}, {`"lab": "many"`, `"lab": "x"`},
		{`"status": "ok"`, `"status": "running"`}, {"{", "["}} {
		wrong := strings.Replace(string(right), change[0], change[1], 1)
		if wrong == string(right) {
			t.Fatalf("no %s in %s", change[0], right)
		}
		if err := os.WriteFile(manifest, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		id := beginTry(t, r, 0)
		if err := r.Place(t.Context(), id, sweep.Try{}, run); codeOf(err) != 422 {
			t.Errorf("%v: %v", change, err)
		}
		if err := r.End(t.Context(), id, sweep.Try{}); err != nil || c.d.Scan().Placed[0] {
			t.Error(err)
		}
	}
	if err := os.WriteFile(manifest, right, 0o644); err != nil {
		t.Fatal(err)
	}
	id := beginTry(t, r, 0)
	for range 2 { // the answer to the first may be lost
		if err := r.Place(t.Context(), id, sweep.Try{}, run); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.once(t.Context(), "PUT", "tries/"+id+"/files/manifest.json?at=0", []byte("{}"), nil); err != nil {
		t.Error(err)
	}
	to, placed := c.d.RunDir(0)
	if got, err := os.ReadFile(filepath.Join(to, store.ManifestFile)); err != nil || !placed || !bytes.Equal(got, right) {
		t.Errorf("%s, %v", got, err)
	}
	if err := errors.Join(r.End(t.Context(), id, sweep.Try{}), r.End(t.Context(), id, sweep.Try{})); err != nil {
		t.Error(err)
	}
	if next, err := r.Begin(t.Context(), id, sweep.Try{Round: 1}); next != sweep.Skip || err != nil {
		t.Error(next, err)
	}
	if err := r.Never(t.Context(), 0, "no"); err != nil || len(c.d.Scan().Notes) > 0 {
		t.Error(err)
	}
}

// A collector without space says so and keeps what it has; tasks ask again.
func TestTrouble(t *testing.T) {
	c := newCollector(t, nil)
	r := c.dial(t)
	id := beginTry(t, r, 0)
	work := filepath.Join(c.d.Path, shard.Folder, "work")
	if err := os.Rename(work, work+"x"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := r.Begin(t.Context(), id, sweep.Try{Round: 1})
		ended <- err
	}()
	if err := os.WriteFile(work, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if why := <-c.said; why == "" {
		t.Error("no trouble")
	}
	if err := errors.Join(os.Remove(work), os.Rename(work+"x", work), <-ended); err != nil {
		t.Error(err)
	}
}

// A collector that no running task reaches is named, since a firewall may be between.
func TestNoneReached(t *testing.T) {
	d := newDir(t)
	_, end, err := process(d).Begin(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer end(nil)
	s := state{Round: 1, Addr: "10.0.0.1:7", Since: time.Now()}
	for _, c := range []struct {
		reached, running bool
		since            time.Duration
		told             bool
	}{{false, true, 2 * reachTime, true}, {false, false, 2 * reachTime, false}, {false, true, 0, false}, {true, true, 2 * reachTime, false}} {
		s.Reached, s.Since = c.reached, time.Now().Add(-c.since)
		if err := process(d).Write(s); err != nil {
			t.Fatal(err)
		}
		why, away := Look(d, &sweep.Round{Number: 1}, c.running)
		if away || strings.Contains(why, "10.0.0.1:7") != c.told {
			t.Errorf("%+v: %q, %v", c, why, away)
		}
	}
}

// A task whose clock is wrong is served; keys are too old by the clock of the collector.
func TestClockOfATask(t *testing.T) {
	for _, ahead := range []time.Duration{-100 * 24 * time.Hour, 100 * 24 * time.Hour} {
		now := time.Now().Add(ahead) // by the clock of the collector
		own, keys, err := makeKeys(now)
		if err != nil {
			t.Fatal(err)
		}
		for late, ok := range map[time.Duration]bool{0: true, -skew / 2: true, life / 2: true, life + time.Hour: false} {
			server, err := config(own)
			if err != nil {
				t.Fatal(err)
			}
			server.Time = func() time.Time { return now.Add(late) }
			task, err := config(keys)
			if err != nil {
				t.Fatal(err)
			}
			a, b := net.Pipe()
			answered := make(chan error, 1)
			go func() { answered <- tls.Server(a, server).Handshake() }()
			client := tls.Client(b, task)
			asked := client.HandshakeContext(t.Context())
			go io.Copy(io.Discard, client) //nolint:errcheck // takes the alert
			if err := cmp.Or(asked, <-answered); (err == nil) != ok {
				t.Errorf("%v ahead, %v later: %v", ahead, late, err)
			}
			_, _ = a.Close(), b.Close() // the handshake is over
		}
	}
}

// Strangers end at the handshake, also with keys for the other end or of another round, and however
// many there are, tasks are served.
func TestStrangers(t *testing.T) {
	asked := 0
	c := newCollector(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			h.ServeHTTP(w, r)
		})
	})
	_, another, err := makeKeys(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, late, err := makeKeys(time.Now().Add(-2 * life))
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string][]byte{"another round": another, "the collector": c.own, "expired": late, "none": nil} {
		secure := &tls.Config{}
		if keys != nil {
			if secure, err = config(keys); err != nil {
				t.Fatal(err)
			}
		}
		secure.InsecureSkipVerify = true // a stranger asks anybody
		web := http.Client{Transport: &http.Transport{TLSClientConfig: secure}}
		if answer, err := web.Get("https://" + c.addr + "/submission"); err == nil {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	task, err := os.ReadFile(c.keys)
	if err != nil {
		t.Fatal(err)
	}
	// A task cannot pass for the collector.
	fake := httptest.NewUnstartedServer(http.NotFoundHandler())
	fake.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	if fake.TLS, err = config(task); err != nil {
		t.Fatal(err)
	}
	fake.StartTLS()
	defer fake.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Dial(ctx, fake.Listener.Addr().String(), c.keys, t.TempDir(), func(string) {}); err == nil {
		t.Error("a task passes for the collector")
	}
	var all []net.Conn
	for i := range 2 * maxNew {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if all = append(all, conn); i%2 == 0 {
			if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err)
			}
		}
	}
	if asked != 0 {
		t.Errorf("%d requests of strangers", asked)
	}
	began := time.Now()
	r := c.dial(t)
	if err := runShard(t, r, 0); err != nil {
		t.Error(err)
	}
	t.Logf("two points beside %d strangers took %v", len(all), time.Since(began))
	_ = all[0].SetReadDeadline(time.Now().Add(headerTime))
	if _, err := io.ReadAll(all[0]); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first stranger is still there")
	}
}

// Whatever a request is, nothing outside of the sweep's tries changes, and no run appears.
func FuzzRequest(f *testing.F) {
	corpus := fuzztest.New(f)
	id := fmt.Sprintf("0-%s", strings.Repeat("A", 26))
	for _, seed := range [][2]string{
		{"PUT /tries/" + id + "/files/a/b?at=0", "text"}, {"PUT /tries/" + id + "/files/../../../../x?at=0", "text"},
		{"POST /tries/" + id, `{"point":0,"shard":0,"round":1,"host":"m1"}`}, {"POST /tries/" + id + "/place", `{"a":"1"}`},
		{"POST /tries/" + id + "/end", `{"error":"x"}`}, {"POST /points/1/never", `"why"`}, {"GET /shards/1", ""}, {"GET /submission", ""},
	} {
		corpus.Add(seed[0], []byte(seed[1]))
	}
	d := newDir(f)
	s, err := newServer(d, 1, func(string) {})
	if err != nil {
		f.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(d.Path))
	h := s.handler()
	points, err := os.ReadFile(filepath.Join(d.Path, store.SweepFile))
	if err != nil {
		f.Fatal(err)
	}
	corpus.Fuzz(func(t *testing.T, line string, body []byte) {
		method, target, _ := strings.Cut(line, " ")
		r, err := http.NewRequest(method, "http://c"+target, bytes.NewReader(body))
		if err != nil {
			return
		}
		if _, err := d.Begin(t.Context(), id, sweep.Try{Round: 1}); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s: %s", line, w.Body)
		}
		if w.Code == http.StatusOK && method == "GET" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s", line, w.Body)
		}
		_ = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(d.Path, name)
			switch {
			case err != nil || name == root || name == filepath.Dir(d.Path) || rel == "." || rel == shard.Folder:
			case strings.HasPrefix(rel, filepath.Join(shard.Folder, "work")):
				if strings.Count(rel, "/") == 2 {
					_ = os.RemoveAll(name)
					return filepath.SkipDir
				}
			case strings.HasPrefix(rel, filepath.Join(shard.Folder, "tries")), strings.HasPrefix(rel, filepath.Join(shard.Folder, "notes")):
				if !e.IsDir() {
					_ = os.Remove(name)
				}
			case rel == store.SweepFile:
				if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, points) {
					t.Errorf("%s: %s is another: %v", line, rel, err)
				}
			case rel == filepath.Join(shard.Folder, "submission.json"), strings.HasPrefix(rel, filepath.Join(shard.Folder, "rounds")):
			default:
				t.Errorf("%s: %s is new", line, rel)
			}
			return nil
		})
	})
}
