package collect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/internal/remote"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// Times of a task that asks a collector. Ours.
const (
	patience  = time.Hour // for a collector that is away
	firstWait = 100 * time.Millisecond
	maxWait   = 5 * time.Second
	maxKeys   = 64 << 10
)

// Remote is a shard.Backend that asks a collector. It is used by one goroutine; Over by any.
type Remote struct {
	addr, keys string // of the collector; name of the file with the task's keys
	http       *http.Client
	sub        *sweep.Submission
	work       string
	over       atomic.Bool
	say        func(line string)
}

// Dial connects to the collector at addr with the keys in a file, and asks for the submission. Runs
// are made in the folder work, which is emptied.
func Dial(ctx context.Context, addr, keys, work string, say func(line string)) (*Remote, error) {
	text, err := regular.Read(keys, maxKeys)
	if err != nil {
		return nil, err
	}
	secure, err := config(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keys, err)
	}
	dialer := &net.Dialer{Timeout: headerTime, Control: remote.EndLost(lostTime)}
	return dial(ctx, addr, keys, work, say, secure, dialer.DialContext)
}

// dial is Dial with the keys, and with what makes connections.
func dial(ctx context.Context, addr, keys, work string, say func(line string), secure *tls.Config,
	connect func(ctx context.Context, network, addr string) (net.Conn, error)) (*Remote, error) {
	r := &Remote{addr: addr, keys: keys, work: work, say: say, http: &http.Client{Timeout: patience,
		Transport: &http.Transport{TLSClientConfig: secure, TLSHandshakeTimeout: headerTime,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := connect(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return remote.NewProgress(c, lostTime), nil
			}}}}
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o700)); err != nil {
		return nil, err
	}
	var submission json.RawMessage
	if err := r.ask(ctx, http.MethodGet, "submission", nil, &submission); err != nil {
		return nil, err
	}
	var err error
	r.sub, err = sweep.Parse(submission)
	return r, err
}

// Close removes the folder of the runs.
func (r *Remote) Close() error {
	r.http.CloseIdleConnections()
	return os.RemoveAll(r.work)
}

// ask makes a request until it is answered, and reads the answer into v unless that is nil.
func (r *Remote) ask(ctx context.Context, method, path string, body []byte, v any) error {
	began, told := time.Now(), false
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := r.once(ctx, method, path, body, v)
		var refused refusal
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused) && refused.code == http.StatusGone:
			r.over.Store(true)
			return shard.ErrOver
		case errors.As(err, &refused) && refused.code < 500:
			return fmt.Errorf("the collector refuses it: %w", err)
		case time.Since(began) > patience:
			return fmt.Errorf("no answer of the collector at %s for %v: %w", r.addr, patience, err)
		}
		if !told && time.Since(began) > maxWait {
			r.say(fmt.Sprintf("waiting for the collector at %s: %v", r.addr, err))
			told = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// once makes a request.
func (r *Remote) once(ctx context.Context, method, path string, body []byte, v any) error {
	q, err := http.NewRequestWithContext(ctx, method, "https://"+r.addr+"/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := r.http.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, sweep.MaxText+1))
	switch {
	case err != nil:
		return err
	case answer.StatusCode/100 != 2:
		return refusal{answer.StatusCode, clip.Line(strings.TrimSpace(string(text)))}
	case v == nil || answer.StatusCode == http.StatusNoContent:
		return nil
	}
	return json.Unmarshal(text, v)
}

// tell makes a request with a value.
func (r *Remote) tell(ctx context.Context, path string, value, v any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return r.ask(ctx, http.MethodPost, path, text, v)
}

// Submission implements shard.Backend.
func (r *Remote) Submission() *sweep.Submission { return r.sub }

// Over implements shard.Backend. An engine ends the tasks of a sweep that is over; those that it
// does not reach learn it with their next request.
func (r *Remote) Over() bool { return r.over.Load() }

// Arguments implements shard.Backend.
func (r *Remote) Arguments() []string { return []string{"--collector", r.addr, "--keys", r.keys} }

// SettledIn implements shard.Backend.
func (r *Remote) SettledIn(ctx context.Context, k int) (n int, err error) {
	err = r.ask(ctx, http.MethodGet, fmt.Sprintf("shards/%d", k), nil, &n)
	return n, err
}

// Begin implements shard.Backend.
func (r *Remote) Begin(ctx context.Context, id string, t sweep.Try) (next sweep.Next, err error) {
	err = r.tell(ctx, "tries/"+id, t, &next)
	return next, err
}

// Work implements shard.Backend.
func (r *Remote) Work(id string) (string, error) {
	path := filepath.Join(r.work, id)
	return path, os.Mkdir(path, 0o700)
}

// Never implements shard.Backend.
func (r *Remote) Never(ctx context.Context, point int, why string) error {
	return r.tell(ctx, fmt.Sprintf("points/%d/never", point), why, nil)
}

// End implements shard.Backend.
func (r *Remote) End(ctx context.Context, id string, t sweep.Try) error {
	return errors.Join(os.RemoveAll(filepath.Join(r.work, id)), r.tell(ctx, "tries/"+id+"/end", t, nil))
}

// Place implements shard.Backend: it sends the files of a run, piece by piece.
func (r *Remote) Place(ctx context.Context, id string, _ sweep.Try, run string) error {
	files, err := sums(run, false)
	if err != nil {
		return err
	}
	for name := range files {
		if err := r.send(ctx, id, filepath.Join(run, filepath.FromSlash(name)), name); err != nil {
			return err
		}
	}
	return r.tell(ctx, "tries/"+id+"/place", files, nil)
}

// send sends a file. A collector whose machine was restarted may have lost the last pieces, and
// gets all of it again.
func (r *Remote) send(ctx context.Context, id, file, name string) error {
	f, err := regular.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	piece := make([]byte, maxPiece)
	for at, again := int64(0), 0; ; {
		n, err := f.ReadAt(piece, at)
		if err != nil && err != io.EOF {
			return err
		}
		where := url.URL{Path: "tries/" + id + "/files/" + name, RawQuery: fmt.Sprintf("at=%d", at)}
		sent := r.ask(ctx, http.MethodPut, where.String(), piece[:n], nil)
		var refused refusal
		switch {
		case errors.As(sent, &refused) && refused.code == http.StatusConflict && again < sweep.MaxTries:
			at, again = 0, again+1
			continue
		case sent != nil:
			return sent
		case err == io.EOF:
			return nil
		}
		at += int64(n)
	}
}
