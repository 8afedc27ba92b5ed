package view

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Limits of an action. Our own choices.
const (
	maxAction = 4 << 10 // bytes
	maxArgs   = 4
)

// TokenHeader is the header in which a page repeats the token of its address when it asks for an
// action. A page of elsewhere can neither know the token nor set the header without being asked
// first (CORS), which this server never allows.
const TokenHeader = "X-Weft-Token"

// Action is a page's request: a verb of the command line with its arguments, without the lab.
type Action struct {
	Verb string   `json:"verb"` // link, node
	Args []string `json:"args"` // h0-switch0 down
}

// ParseAction decodes an action.
func ParseAction(body []byte) (Action, error) {
	var a Action
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("an action is JSON with a verb and its arguments: %w", err)
	}
	if a.Verb == "" || len(a.Args) == 0 || len(a.Args) > maxArgs {
		return a, fmt.Errorf("an action has a verb and 1 to %d arguments", maxArgs)
	}
	return a, nil
}

// Control makes the first page that of a deployed lab: it follows what is published, and its
// buttons call do, one at a time.
func (s *Server) Control(title, about string, do func(Action) error) (err error) {
	s.act = do
	s.pages[""], err = render(document{Title: title, About: about, Live: "stream", Act: "act"})
	return err
}

// perform answers a request for an action.
func (s *Server) perform(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(TokenHeader)), []byte(s.token)) != 1 ||
		origin != "" && origin != "http://"+s.listener.Addr().String() {
		http.Error(w, "only the page itself asks for actions", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "the action is too long", http.StatusRequestEntityTooLarge)
		return
	}
	if err == nil {
		var a Action
		if a, err = ParseAction(body); err == nil {
			s.acting.Lock()
			defer s.acting.Unlock()
			err = s.act(a)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
