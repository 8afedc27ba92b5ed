package collect

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
)

// Auto is the address of a collector that its machine chooses.
const Auto = "auto"

const (
	overTime    = time.Second      // between two looks whether the sweep is over
	idleTime    = 10 * time.Minute // without a request, once every point has a result
	troubleTime = 15 * time.Second // for which trouble is shown; tasks ask again sooner
	reachTime   = 30 * time.Second // for the first task to come; ours
)

// state is collector.json, which only the submitter can read.
type state struct {
	Round   int       `json:"round"`
	Addr    string    `json:"addr"`
	Keys    string    `json:"keys"`
	Since   time.Time `json:"since,omitzero"`    // when it began to listen
	Reached bool      `json:"reached,omitempty"` // by a task
	Trouble string    `json:"trouble,omitempty"` // why tasks have to wait
	At      time.Time `json:"at,omitzero"`       // when they had to
}

func process(d *shard.Dir) *shard.Process {
	return &shard.Process{Dir: d, Name: "collector", Mode: 0o600}
}

// Start starts the collector of a round, at r.Collect or else at a port of host. It returns the
// keys of the round's tasks, and the address.
func Start(ctx context.Context, d *shard.Dir, r *sweep.Round, host string) (keys []byte, addr string, err error) {
	own, keys, err := makeKeys(time.Now())
	if err != nil {
		return nil, "", err
	}
	s := state{Round: r.Number, Addr: r.Collect, Keys: string(own)}
	if s.Addr == Auto {
		s.Addr = net.JoinHostPort(host, "0")
	}
	if err := process(d).Write(s); err != nil {
		return nil, "", err
	}
	if s, err = begin(ctx, d, r); err != nil {
		return nil, "", err
	}
	return keys, s.Addr, nil
}

// Ensure starts the collector of the last round again if it was killed.
func Ensure(ctx context.Context, d *shard.Dir, r *sweep.Round) error {
	_, err := begin(ctx, d, r)
	return err
}

// begin starts the process, and returns its state once it listens.
func begin(ctx context.Context, d *shard.Dir, r *sweep.Round) (s state, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return s, err
	}
	var before time.Time // of a collector that was killed
	listens := func() bool {
		runs, err := process(d).Look(&s)
		return err == nil && runs && s.Round == r.Number && !s.Since.Equal(before)
	}
	if listens() {
		return s, nil
	}
	before = s.Since
	err = process(d).Start(ctx, self, listens, "sweep", "collector", path, "--round", strconv.Itoa(r.Number))
	return s, err
}

// Look returns why the tasks of a round have to wait; "": they do not. away is true if its
// collector does not run. running says whether some of the tasks run.
func Look(d *shard.Dir, r *sweep.Round, running bool) (why string, away bool) {
	var s state
	runs, err := process(d).Look(&s)
	switch {
	case err != nil:
		return fmt.Sprintf("the collector's state cannot be read: %v", err), false
	case !runs:
		return "the collector at " + s.Addr + " does not run", true
	case time.Since(s.At) < troubleTime:
		return s.Trouble, false
	case running && !s.Reached && time.Since(s.Since) > reachTime:
		return fmt.Sprintf("none has reached the collector at %s, so a firewall or another network may be between: "+
			"weft sweep resume %s --collect=ADDRESS:PORT chooses where it listens", s.Addr, d.Name()), false
	}
	return "", false
}

// End waits until the collector of a sweep that is over has ended, and removes its keys.
func End(ctx context.Context, d *shard.Dir) error { return process(d).Remove(ctx) }

// Serve is the collector of a round, until the sweep is over or has another round. It is the
// process that Start starts.
func Serve(ctx context.Context, d *shard.Dir, round int) error {
	ctx, end, err := process(d).Begin(ctx, round)
	if err != nil {
		return err
	}
	defer end(nil)
	var st state
	if err := process(d).Read(&st); err != nil {
		return err
	}
	if st.Round != round {
		return fmt.Errorf("the keys of the collector are of round %d, not %d", st.Round, round)
	}
	var mu sync.Mutex
	server, err := newServer(d, round, func(why string) {
		mu.Lock()
		defer mu.Unlock()
		if why == "" {
			st.Reached = true
			_ = process(d).Write(st) // it is only for the status
			return
		}
		if now := time.Now(); why != st.Trouble || now.Sub(st.At) > troubleTime/3 {
			st.Trouble, st.At = why, now
			_ = process(d).Write(st) // the disk may be the trouble
		}
	})
	if err != nil {
		return err
	}
	secure, err := config([]byte(st.Keys))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", st.Addr)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // closed below, too
	st.Addr, st.Since = l.Addr().String(), time.Now()
	mu.Lock()
	err = process(d).Write(st)
	mu.Unlock()
	if err != nil {
		return err
	}
	go func() {
		for tick := time.Tick(overTime); ctx.Err() == nil; {
			_, err := os.Stat(d.Path)
			if d.Over() || os.IsNotExist(err) || server.idle(idleTime) && d.Settled() == len(d.Sub.Points) {
				end(shard.ErrOver)
			}
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
	}()
	web := server.http()
	web.TLSConfig = secure
	defer context.AfterFunc(ctx, func() { _ = web.Close() })() // tasks ask again
	if err := web.ServeTLS(l, "", ""); ctx.Err() == nil {
		return err
	}
	return nil
}

// http returns the server of the requests. What strangers send is not worth a line of a log each.
func (s *server) http() *http.Server {
	var one http.Protocols
	one.SetHTTP1(true)
	return &http.Server{Handler: s.handler(), Protocols: &one, ConnState: s.limit, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: headerTime, ReadTimeout: lostTime, WriteTimeout: lostTime, IdleTimeout: silenceTime,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
}
