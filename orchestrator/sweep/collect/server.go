package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/internal/remote"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
	"weft/results/record"
	"weft/results/store"
)

// Limits of what tasks send. Ours.
const (
	maxPiece    = 4 << 20  // bytes of a request
	maxRun      = 16 << 30 // bytes of a run
	maxFiles    = 1000     // of a run
	maxTries    = 100      // of a point in a round
	minFree     = 1 << 30  // bytes of the file system that are left to others
	maxWhy      = 16 << 10 // bytes of why a point could not be built
	maxNew      = 256      // connections whose other end has not proved yet who it is
	headerTime  = 10 * time.Second
	lostTime    = 20 * time.Second // without a byte of a request or an answer
	beatTime    = lostTime / 4     // between two words that a request is in work
	requestTime = time.Hour        // for a request that makes progress to come
	silenceTime = 2 * time.Minute  // between two requests of a connection
)

// server answers the tasks of a round.
type server struct {
	d          *shard.Dir
	round      int
	submission json.RawMessage
	trouble    func(why string) // receives why tasks have to wait, and "" with the first request
	busy       sync.Map         // tries with a request in work, by ID
	placing    chan struct{}    // runs that are checked at once

	strangers remote.Strangers

	first sync.Once
	mu    sync.Mutex
	asked time.Time // last request
}

func newServer(d *shard.Dir, round int, trouble func(string)) (*server, error) {
	text, err := d.Sub.Encode()
	return &server{d: d, round: round, submission: text, trouble: trouble, asked: time.Now(),
		placing: make(chan struct{}, runtime.GOMAXPROCS(0)), strangers: remote.Strangers{Most: maxNew}}, err
}

// A refusal is an answer that does not change if the request is repeated, unless its code is 500 or
// more.
type refusal struct {
	code int
	text string
}

func (e refusal) Error() string { return e.text }

func refuse(code int, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// errSettled ends a request about a try whose point has a result: nothing is left to do.
var errSettled = errors.New("the point has a result")

// handler returns what answers requests.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(*http.Request) (any, error){
		"GET /submission":                 func(*http.Request) (any, error) { return s.submission, nil },
		"GET /shards/{shard}":             s.settled,
		"POST /tries/{id}":                s.begin,
		"PUT /tries/{id}/files/{name...}": s.put,
		"POST /tries/{id}/place":          s.place,
		"POST /tries/{id}/end":            s.end,
		"POST /points/{point}/never":      s.never,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	return mux
}

// answer answers a request with what f returns.
func (s *server) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) {
	s.mu.Lock()
	s.asked = time.Now()
	s.mu.Unlock()
	s.first.Do(func() { s.trouble("") })
	c := http.NewResponseController(w)
	r.Body = http.MaxBytesReader(nil, &steady{r.Body, c, time.Now().Add(requestTime)}, maxPiece)
	stop := inWork(w, c)
	var v any
	err := refuse(http.StatusGone, "%v", shard.ErrOver)
	if !s.d.Over() {
		v, err = f(r)
	}
	stop()
	var refused refusal
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // who does not get the answer asks again
	case errors.Is(err, errSettled):
		w.WriteHeader(http.StatusNoContent)
	case errors.As(err, &refused):
		http.Error(w, refused.text, refused.code)
	default:
		s.trouble(err.Error())
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// steady is the body of a request, which may be slow, but not silent. Deadlines that cannot be set
// are those of a test's recorder.
type steady struct {
	io.ReadCloser
	c    *http.ResponseController
	over time.Time
}

func (s *steady) Read(b []byte) (int, error) {
	next := time.Now().Add(lostTime)
	if next.After(s.over) {
		next = s.over
	}
	_ = s.c.SetReadDeadline(next)
	n, err := s.ReadCloser.Read(b)
	if err == io.EOF {
		_ = s.c.SetReadDeadline(time.Time{}) // nothing has to come until the answer
	}
	return n, err
}

// inWork tells the other end that a request is in work, until stop is called. Checking a large run
// takes minutes, in which nothing else shows that this machine is not lost.
func inWork(w http.ResponseWriter, c *http.ResponseController) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(beatTime)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				_ = c.SetWriteDeadline(time.Now().Add(lostTime))
				w.WriteHeader(http.StatusProcessing)
			}
		}
	}()
	return func() {
		close(ended)
		<-done
		_ = c.SetWriteDeadline(time.Now().Add(lostTime))
	}
}

// decode reads the body of a request.
func decode(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return broken(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return refuse(http.StatusBadRequest, "the request is damaged: %v", err)
	}
	return nil
}

// broken returns the answer to a request that did not come in time, or not completely. It may be
// repeated, unless it was too long.
func broken(err error) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return refuse(http.StatusRequestEntityTooLarge, "a request of more than %d bytes", maxPiece)
	}
	return refuse(http.StatusServiceUnavailable, "the request broke off: %v", err)
}

func (s *server) settled(r *http.Request) (any, error) {
	k, err := strconv.Atoi(r.PathValue("shard"))
	if err != nil || k < 0 || k >= s.d.Sub.Shards {
		return nil, refuse(http.StatusBadRequest, "the sweep has no such shard")
	}
	return s.d.SettledIn(r.Context(), k)
}

// tryID is the form of the ID of a try: its point, and something that nobody guesses.
var tryID = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})-[A-Z2-7]{26}$`)

// hold returns the ID of a request's try and its point. No other request about the try is answered
// until done is called.
func (s *server) hold(r *http.Request) (id string, point int, done func(), err error) {
	id = r.PathValue("id")
	m := tryID.FindStringSubmatch(id)
	if m == nil {
		return "", 0, nil, refuse(http.StatusBadRequest, "the try has no proper ID")
	}
	if point, err = strconv.Atoi(m[1]); err != nil || point >= len(s.d.Sub.Points) {
		return "", 0, nil, refuse(http.StatusBadRequest, "the sweep has no such point")
	}
	if _, taken := s.busy.LoadOrStore(id, true); taken {
		return "", 0, nil, refuse(http.StatusServiceUnavailable, "another request about this try is in work")
	}
	return id, point, func() { s.busy.Delete(id) }, nil
}

func (s *server) begin(r *http.Request) (any, error) {
	id, point, done, err := s.hold(r)
	if err != nil {
		return nil, err
	}
	defer done()
	var t sweep.Try
	if err := decode(r, &t); err != nil {
		return nil, err
	}
	if t.Point != point || t.Shard != s.d.Sub.ShardOf(point) || t.Round != s.round {
		return nil, refuse(http.StatusBadRequest, "point %d is not in round %d of shard %d", t.Point, t.Round, t.Shard)
	}
	tries := 0
	for _, before := range s.d.Tries(point) {
		if before.Round == s.round {
			tries++
		}
	}
	if tries >= maxTries {
		return nil, refuse(http.StatusForbidden, "this point was tried %d times", tries)
	}
	t.Host, t.Began, t.Error = clip.Text(t.Host), time.Now().UTC(), ""
	return s.d.Begin(r.Context(), id, t)
}

// open returns a try that has not ended and its directory. The error is errSettled if its run is in
// its place, or was not needed.
func (s *server) open(id string, point int) (t sweep.Try, work string, err error) {
	t, err = s.d.Try(id)
	if err == nil {
		if work, err = s.d.Work(id); err == nil {
			_, err = os.Stat(work)
		}
	}
	switch {
	case err == nil && t.Error == "":
		return t, work, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return t, "", err
	case s.d.SettledPoint(point):
		return t, "", errSettled
	}
	return t, "", refuse(http.StatusNotFound, "the try has ended")
}

// put writes a piece of a file. What is written before its offset stays.
func (s *server) put(r *http.Request) (any, error) {
	id, point, done, err := s.hold(r)
	if err != nil {
		return nil, err
	}
	defer done()
	name := r.PathValue("name")
	at, err := strconv.ParseInt(r.URL.Query().Get("at"), 10, 64)
	if err != nil || at < 0 || !fs.ValidPath(name) || name == "." {
		return nil, refuse(http.StatusBadRequest, "%s: no name of a file with an offset", clip.Text(name))
	}
	_, work, err := s.open(id, point)
	if err != nil {
		return nil, err
	}
	if err := room(work); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only opened
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, named(err)
	}
	f, err := regular.OpenIn(root, name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, named(err)
	}
	return nil, errors.Join(write(f, at, r.Body), f.Close())
}

// named returns an error that the name of a file is to blame for as a refusal.
func named(err error) error {
	for _, bad := range []error{unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG, unix.EINVAL,
		regular.ErrNotRegular} {
		if errors.Is(err, bad) {
			return refuse(http.StatusBadRequest, "%s", clip.Line(err.Error()))
		}
	}
	return err
}

// write writes the rest of a request to a file that ends at an offset or behind it.
func write(f *os.File, at int64, body io.Reader) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < at {
		return refuse(http.StatusConflict, "the file has %d bytes", info.Size())
	}
	_, err = io.Copy(io.NewOffsetWriter(f, at), body)
	var file *fs.PathError
	if err != nil && !errors.As(err, &file) {
		return broken(err)
	}
	return err
}

// room returns an error if no further piece may be written to the directory of a try.
func room(work string) error {
	files, total := 0, int64(maxPiece)
	err := filepath.WalkDir(work, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				files, total = files+1, total+info.Size() // folders count as well
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if files > maxFiles || total > maxRun {
		return refuse(http.StatusRequestEntityTooLarge, "a run with more than %d files or %d GiB", maxFiles, maxRun>>30)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(work, &disk); err != nil {
		return err
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < minFree {
		return fmt.Errorf("%w: the collector has %d MiB left at %s, and leaves %d to others", unix.ENOSPC, free>>20,
			filepath.Dir(work), minFree>>20)
	}
	return nil
}

// sums returns the hash of each file below a directory, by its name. All are regular files, and on
// the disk if sync is set.
func sums(dir string, sync bool) (map[string]string, error) {
	out := map[string]string{}
	return out, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := regular.Open(name)
		if err != nil {
			return err
		}
		h := sha256.New()
		if _, err = io.Copy(h, f); err == nil && sync {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		name, err = filepath.Rel(dir, name)
		out[filepath.ToSlash(name)] = hex.EncodeToString(h.Sum(nil))
		return err
	})
}

func (s *server) place(r *http.Request) (any, error) {
	id, point, done, err := s.hold(r)
	if err != nil {
		return nil, err
	}
	defer done()
	var told map[string]string
	if err := decode(r, &told); err != nil {
		return nil, err
	}
	t, work, err := s.open(id, point)
	if err != nil {
		return nil, err
	}
	s.placing <- struct{}{}
	defer func() { <-s.placing }()
	files, err := sums(work, true) // once it is renamed, nobody sends it again
	if err != nil {
		return nil, err
	}
	if !maps.Equal(files, told) {
		return nil, refuse(http.StatusUnprocessableEntity, "what came is not what was sent")
	}
	if err := s.check(work, t.Point); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "no run of point %d of this sweep: %s", t.Point,
			clip.Line(err.Error()))
	}
	return nil, s.d.Place(r.Context(), id, t, work)
}

// check returns an error unless a directory has an ended run of a point.
func (s *server) check(work string, point int) error {
	m, err := store.ReadManifest(work)
	if err != nil {
		return err
	}
	if m.Series == nil || m.Series.ID != s.d.Sub.Series || m.Series.Number != point+1 || m.Lab != s.d.Sub.Lab ||
		m.Status == record.Running {
		return errors.New("its manifest is of another run, or of one that has not ended")
	}
	_, err = store.ReadSummary(work)
	return err
}

func (s *server) end(r *http.Request) (any, error) {
	id, _, done, err := s.hold(r)
	if err != nil {
		return nil, err
	}
	defer done()
	var said sweep.Try
	if err := decode(r, &said); err != nil {
		return nil, err
	}
	t, err := s.d.Try(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was asked for before
	}
	if err != nil {
		return nil, err
	}
	t.Error = clip.Line(said.Error)
	return nil, s.d.End(r.Context(), id, t)
}

func (s *server) never(r *http.Request) (any, error) {
	point, err := strconv.Atoi(r.PathValue("point"))
	if err != nil || point < 0 || point >= len(s.d.Sub.Points) {
		return nil, refuse(http.StatusBadRequest, "the sweep has no such point")
	}
	var why string
	if err := decode(r, &why); err != nil || s.d.SettledPoint(point) {
		return nil, err
	}
	return nil, s.d.Never(r.Context(), point, why[:min(len(why), maxWhy)])
}

// limit limits the connections that have asked nothing yet.
func (s *server) limit(c net.Conn, state http.ConnState) {
	s.strangers.Remove(c)
	if state == http.StateNew {
		s.strangers.Add(c)
	}
}

// idle reports whether no task has asked anything for a time.
func (s *server) idle(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.asked) > d
}
