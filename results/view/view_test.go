package view

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/fuzztest"
	"weft/internal/testenv"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

const us = units.Microsecond

// star returns the map of a switch with hosts.
func star(hosts int) *record.NetworkMap {
	m := &record.NetworkMap{Title: "star", Width: 100, Height: 100}
	for h := range hosts {
		name := "h" + string(rune('0'+h))
		m.Nodes = append(m.Nodes, record.MapNode{Name: name, Tier: "host", Host: true, X: float64(20 * h), Y: 90})
	}
	m.Nodes = append(m.Nodes, record.MapNode{Name: "switch0", Tier: "switch", X: 50, Y: 10})
	for h := range hosts {
		host := m.Nodes[h].Name
		m.Ports = append(m.Ports,
			record.MapPort{Name: host + "->switch0", From: h, To: hosts, RateBPS: 100e9},
			record.MapPort{Name: "switch0->" + host, From: hosts, To: h, RateBPS: 100e9, KminBytes: 10e3, KmaxBytes: 40e3})
	}
	return m
}

// writeRun leaves a run directory whose queue at switch0->h1 grows by 1,000 bytes a frame.
func writeRun(t *testing.T, n int, faults ...record.Fault) string {
	t.Helper()
	r, err := store.Open(store.Options{
		Root: t.TempDir(), Now: time.Unix(1e9, 0), Manifest: record.Manifest{Lab: "small", Engine: "sim", Faults: faults},
	})
	if err != nil {
		t.Fatal(err)
	}
	network := star(3)
	ports := make([]string, len(network.Ports))
	for i := range ports {
		ports[i] = network.Ports[i].Name
	}
	var all []frames.Frame
	for i := range n {
		all = append(all, frames.Frame{
			At: units.Time(i+1) * us,
			Ports: []frames.Port{
				{Port: 0, Sent: units.Bytes(12500 * (i + 1))},
				{Port: 3, Sent: units.Bytes(6250 * (i + 1)), Queued: units.Bytes(1000 * i), Marks: int64(i), Drops: int64(i / 10)},
			},
			Conns: []frames.Conn{{Conn: 0, Arrived: units.Bytes(6250 * (i + 1)), Window: 20e3}},
		})
	}
	flow := record.Flow{Src: "h0", Dst: "h1", Size: 1e6, Finished: true, FCT: 80 * us, Ideal: 80 * us}
	part := record.Part{Collective: "incast", Host: "h0", End: 80 * us}
	for _, err := range []error{
		r.Network(network), r.Frames(all, ports), r.Flows([]record.Flow{flow}), r.Parts([]record.Part{part}),
		r.Finish(time.Unix(1e9+1, 0), &record.Summary{Lab: "small", Status: record.OK, LabTimeUS: float64(n), Transport: "pc4"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r.Dir()
}

func mustLoad(t *testing.T, dir string) *Model {
	t.Helper()
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A run of programs is named after them, and an invalid one is not ok.
func TestModelOfInvalidPrograms(t *testing.T) {
	n := star(2)
	manifest := &record.Manifest{Lab: "mine", Engine: "emu", Status: record.OK,
		Settings: []record.Setting{{Path: "transport.kind", Value: "pc4"}, {Path: "workload.0.program.0", Value: "ping"}}}
	s := &record.Summary{Status: record.OK, Transport: record.Programs, Fidelity: &record.Fidelity{Verdict: "invalid"}}
	m, err := Make(t.TempDir(), manifest, s, Source{Network: n, Frames: []frames.Frame{{At: us}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Title != "mine emu, programs" || m.Color != 0 || m.Status != "fidelity invalid" || len(m.Facts) > 0 {
		t.Errorf("got %q, colour %d, %q, %q", m.Title, m.Color, m.Status, m.Facts)
	}
}

// data returns the models inside a page.
func data(t *testing.T, page []byte) (models []Model) {
	t.Helper()
	found := regexp.MustCompile(`id="data">([A-Za-z0-9+/=]+)[A-Za-z0-9+/=.]*</script>`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no data")
	}
	raw, err := base64.StdEncoding.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&models); err != nil {
		t.Fatal(err)
	}
	return models
}

// What a run stored is in the page.
func TestPageHasTheRun(t *testing.T) {
	page, err := Page("small", "", []*Model{mustLoad(t, writeRun(t, 50))})
	if err != nil {
		t.Fatal(err)
	}
	m := data(t, page)[0]
	if m.Title != "small sim" || m.Frames.Count != 50 || len(m.Conns) != 1 || m.Conns[0].Dst != "h1" ||
		len(m.Parts) != 1 || m.Status != record.OK || m.BeginUS != 0 {
		t.Errorf("the page has %+v", m)
	}
}

// Names in a run cannot become markup, and the policy allows nothing but the page's own script.
func TestPageIsClosed(t *testing.T) {
	m := mustLoad(t, writeRun(t, 2))
	m.Title = `</script><script>alert(1)</script>`
	m.Network.Nodes[0].Name = `<img src=x onerror=alert(1)>`
	page, err := Page(`<b>"'`, `<i>&`, []*Model{m})
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if strings.Count(text, "<script") != 2 || strings.Contains(text, "alert(1)") || strings.Contains(text, "<b>") {
		t.Error("text of a run is markup in the page")
	}
	if !strings.Contains(html.UnescapeString(text), `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-`) {
		t.Error("the page has another content policy")
	}
	if left := regexp.MustCompile(`(?m)^(import|export) .*`).FindString(script()); left != "" {
		t.Errorf("the script still has %q", left)
	}
	if names := regexp.MustCompile(`(?m)^(?:const|let|function|async function|class) (\w+)`).FindAllStringSubmatch(script(), -1); len(names) < 40 {
		t.Errorf("%d names in the script", len(names))
	} else {
		seen := map[string]bool{}
		for _, n := range names {
			if seen[n[1]] {
				t.Errorf("two modules declare %s, and the page is one script", n[1])
			}
			seen[n[1]] = true
		}
	}
}

// A directory without frames, or with a damaged map of the network, is refused with its name.
func TestLoadRefuses(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty directory is a run")
	}
	for name, damage := range map[string]func(*record.NetworkMap){
		"to 7 of 4": func(n *record.NetworkMap) { n.Ports[0].To = 7 },
		"node -1":   func(n *record.NetworkMap) { n.Ports[0].From = -1 },
		"not in":    func(n *record.NetworkMap) { n.Ports[0].Name = "other" },
		"no frames": nil,
	} {
		r, err := store.Open(store.Options{
			Root: t.TempDir(), Now: time.Unix(1e9, 0), Manifest: record.Manifest{Lab: "small", Engine: "sim"},
		})
		if err != nil {
			t.Fatal(err)
		}
		n := star(3)
		ports := []string{n.Ports[0].Name}
		if damage != nil {
			damage(n)
			err = r.Frames([]frames.Frame{{At: us, Ports: []frames.Port{{Sent: 1}}}}, ports)
		}
		if err != nil || r.Network(n) != nil {
			t.Fatal(err)
		}
		if err := r.Finish(time.Unix(1e9+1, 0), &record.Summary{Lab: "small", Status: record.OK}); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(r.Dir()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; expected %q", err, name)
		}
	}
}

// serve starts a server, and returns it with a function that gets a path from it.
func serve(t *testing.T, prepare func(*Server) error) (*Server, func(path, host string) (int, string)) {
	t.Helper()
	s, err := NewServer(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(s); err != nil {
		t.Fatal(err)
	}
	testenv.Background(t, s.Serve)
	return s, func(path, host string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			q.Host = host
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
}

// Only who has the token gets the page, and not under another name of this machine.
func TestStrangersGetNothing(t *testing.T) {
	s, get := serve(t, func(s *Server) error { return s.Show("", "small", "", []*Model{mustLoad(t, writeRun(t, 2))}) })
	if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
		t.Errorf("the page is at %s", s.URL())
	}
	if code, text := get("/"+s.token+"/", ""); code != http.StatusOK || !strings.Contains(text, "<title>Weft: small<") {
		t.Errorf("with the token: %d", code)
	}
	for _, c := range []struct{ path, host string }{
		{"/", ""}, {"/stream", ""}, {"/x/", ""}, {"/" + s.token[1:] + "/", ""}, {"/" + s.token + "/../", ""},
		{"/" + s.token + "/", "evil.example"}, {"/" + s.token + "/data", ""},
	} {
		if code, text := get(c.path, c.host); code != http.StatusNotFound || strings.Contains(text, "small") {
			t.Errorf("%s of %q: %d", c.path, c.host, code)
		}
	}
}

// A page of a run that goes on gets the newest models and the end.
func TestLiveStream(t *testing.T) {
	m := mustLoad(t, writeRun(t, 5))
	s, get := serve(t, func(s *Server) error { return s.Live("small", "") })
	if code, text := get("/"+s.token+"/", ""); code != http.StatusOK || !strings.Contains(text, `<meta name="weft-live" content="stream">`) ||
		!strings.Contains(text, "connect-src &#39;self&#39;") {
		t.Errorf("the page: %d\n%.800s", code, text)
	}
	if err := s.Publish([]*Model{m}); err != nil {
		t.Fatal(err)
	}
	s.End("done\nevent: forged")
	_, text := get("/"+s.token+"/stream", "")
	if !strings.HasPrefix(text, "event: runs\ndata: [{") || !strings.HasSuffix(text, "event: end\ndata: done event: forged\n\n") {
		t.Errorf("the stream has %.200s", text)
	}
	if strings.Count(text, "\n") != 6 {
		t.Errorf("the stream has %d lines", strings.Count(text, "\n"))
	}
}

// Only the page itself, which knows the token and comes from this address, has actions done.
func TestActions(t *testing.T) {
	var done []string
	s, get := serve(t, func(s *Server) error {
		return s.Control("small", "", func(a Action) error {
			if a.Args[0] == "h9" {
				return errors.New("no node is called h9")
			}
			done = append(done, a.Verb+" "+strings.Join(a.Args, " "))
			return nil
		})
	})
	if _, text := get("/"+s.token+"/", ""); !strings.Contains(text, `<meta name="weft-act" content="act">`) {
		t.Error("the page does not know where to ask for actions")
	}
	own := "http://" + s.listener.Addr().String()
	const kill = `{"verb":"node","args":["h3","kill"]}`
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		code                     int
	}{
		{"the page", http.MethodPost, "act", kill, map[string]string{TokenHeader: s.token, "Origin": own}, http.StatusNoContent},
		{"a program with the token", http.MethodPost, "act", kill, map[string]string{TokenHeader: s.token}, http.StatusNoContent},
		{"no token in the header", http.MethodPost, "act", kill, nil, http.StatusForbidden},
		{"another token", http.MethodPost, "act", kill, map[string]string{TokenHeader: s.token + "x"}, http.StatusForbidden},
		{"another page", http.MethodPost, "act", kill, map[string]string{TokenHeader: s.token, "Origin": "http://evil.example"}, http.StatusForbidden},
		{"GET", http.MethodGet, "act", "", map[string]string{TokenHeader: s.token}, http.StatusNotFound},
		{"POST to the page", http.MethodPost, "", kill, map[string]string{TokenHeader: s.token}, http.StatusMethodNotAllowed},
		{"no JSON", http.MethodPost, "act", "kill h3", map[string]string{TokenHeader: s.token}, http.StatusBadRequest},
		{"no verb", http.MethodPost, "act", `{"args":["h3"]}`, map[string]string{TokenHeader: s.token}, http.StatusBadRequest},
		{"unknown node", http.MethodPost, "act", `{"verb":"node","args":["h9","kill"]}`, map[string]string{TokenHeader: s.token}, http.StatusBadRequest},
		{"too long", http.MethodPost, "act", kill + strings.Repeat(" ", maxAction), map[string]string{TokenHeader: s.token}, http.StatusRequestEntityTooLarge},
	} {
		q, err := http.NewRequestWithContext(t.Context(), c.method, s.URL()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range c.header {
			q.Header.Set(k, v)
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if _ = a.Body.Close(); a.StatusCode != c.code || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %s, want %d", c.name, a.Status, c.code)
		}
	}
	if got := strings.Join(done, "; "); got != "node h3 kill; node h3 kill" {
		t.Errorf("done: %s", got)
	}
}

// A page that only shows has no actions.
func TestShownRunsHaveNoActions(t *testing.T) {
	s, _ := serve(t, func(s *Server) error { return s.Show("", "small", "", []*Model{mustLoad(t, writeRun(t, 2))}) })
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"act", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(TokenHeader, s.token)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if _ = a.Body.Close(); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST to a page of runs: %s", a.Status)
	}
}

func FuzzParseAction(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, text := range []string{`{"verb":"link","args":["h0-switch0","set","delay=5us"]}`, `{"verb":"node","args":["h3","kill"]}`, `[]`, `{`} {
		corpus.Add([]byte(text))
	}
	corpus.Fuzz(func(t *testing.T, body []byte) {
		if a, err := ParseAction(body); err == nil && (a.Verb == "" || len(a.Args) == 0 || len(a.Args) > maxArgs) {
			t.Errorf("%q is %+v", body, a)
		}
	})
}
