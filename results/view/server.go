package view

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Limits of a server. Our own choices.
const (
	maxClients   = 16               // streams at a time
	readTimeout  = 10 * time.Second // for a request
	writeTimeout = 20 * time.Second // for one message to a client that does not read
)

// Server serves one page on loopback, to those who have its token.
type Server struct {
	listener net.Listener
	token    string
	http     *http.Server
	pages    map[string][]byte // by path behind the token; "" is the first
	clients  chan struct{}
	act      func(Action) error // nil: pages only show
	begin    func()             // of the act that is performed; nil: none is
	acting   sync.Mutex         // held while act runs

	mu      sync.Mutex
	version int
	models  []byte // JSON of the newest models; nil: none yet
	ended   string // why no more models come; empty: they do
	changed chan struct{}
}

// NewServer listens on a port of 127.0.0.1; 0 means any free one. It serves nothing before Serve.
func NewServer(port int) (*Server, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: l, token: rand.Text(), pages: map[string][]byte{}, clients: make(chan struct{}, maxClients),
		changed: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s, ReadTimeout: readTimeout, MaxHeaderBytes: 16 << 10}
	return s, nil
}

// URL returns the address of the page, with the token.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/%s/", s.listener.Addr(), s.token) }

// Show adds a page of finished runs under a name; the empty name is the first page. Pages are added
// before Serve.
func (s *Server) Show(name, title, about string, runs []*Model) (err error) {
	s.pages[name], err = Page(title, about, runs)
	return err
}

// Acts adds the pages of a show, and makes the first page a list of them. At most one act has a
// Begin.
func (s *Server) Acts(title string, acts []Act) (err error) {
	for i, a := range acts {
		d := document{Title: a.Text, About: a.Note, Nav: navOf(acts, i)}
		if a.Begin != nil {
			s.begin, d.Live = a.Begin, "stream"
			s.pages[a.Name], err = render(d)
		} else {
			s.pages[a.Name], err = finished(d, a.Runs)
		}
		if err != nil {
			return err
		}
	}
	s.pages[""], err = listPage(title, acts)
	return err
}

// Live makes the first page that of runs that go on: see Publish.
func (s *Server) Live(title, about string) (err error) {
	s.pages[""], err = livePage(title, about, "stream")
	return err
}

// Serve answers requests until the context ends. Show or Live comes first.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // the page needs no orderly end
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Publish sends models to all who watch. A watcher that is slow gets the newest only.
func (s *Server) Publish(runs []*Model) error {
	text, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = text
	s.announce()
	return nil
}

// Restart forgets what was published, for an act that is performed again.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models, s.ended = nil, ""
}

// End tells all who watch why no more models come.
func (s *Server) End(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = why
	s.announce()
}

// announce wakes the streams. s.mu is held.
func (s *Server) announce() {
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	page, ok := s.pages[rest]
	switch {
	// The name of another site may resolve to this address (DNS rebinding), so Host is compared.
	case r.Host != s.listener.Addr().String(), subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
		http.Error(w, "no such page; weft view prints its address", http.StatusNotFound)
	case s.act != nil && rest == "act" && r.Method == http.MethodPost:
		s.perform(w, r)
	case r.Method != http.MethodGet:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case ok:
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // a client that has left misses nothing
	case rest == "stream":
		s.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

// stream sends models as server-sent events until they end or the client leaves.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.clients <- struct{}{}:
		defer func() { <-s.clients }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	if s.begin != nil {
		s.begin()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	sent := 0
	for {
		s.mu.Lock()
		version, models, ended, changed := s.version, s.models, s.ended, s.changed
		s.mu.Unlock()
		if version > sent {
			sent = version
			if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return
			}
			if models != nil {
				if _, err := fmt.Fprintf(w, "event: runs\ndata: %s\n\n", models); err != nil {
					return
				}
			}
			if ended != "" {
				_, _ = fmt.Fprintf(w, "event: end\ndata: %s\n\n", strings.ReplaceAll(ended, "\n", " "))
				_ = out.Flush() // the last message
				return
			}
			if out.Flush() != nil {
				return
			}
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
