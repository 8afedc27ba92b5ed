package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"weft/units"
)

// maxEvents is the number of events that a lab keeps. Of older events only the count remains.
const maxEvents = 10_000

// events records what happens to a lab: in memory for clients, and in a file for later.
type events struct {
	lab string
	now func() units.Time // nil until lab time begins

	mu    sync.Mutex // guards what follows
	file  *os.File
	all   []Event
	lost  int           // number of events dropped from all
	fresh chan struct{} // closed when the next event is added
}

func newEvents(dir *os.Root, lab string) (*events, error) {
	f, err := dir.OpenFile(eventsFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &events{lab: lab, file: f, fresh: make(chan struct{})}, nil
}

// add records an event. An error of the file is ignored: a full disk must not end the lab.
func (l *events) add(e Event) {
	e.Time, e.Lab = time.Now().UTC(), l.lab
	if l.now != nil {
		e.AtUS = l.now().Microseconds()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == maxEvents {
		l.all = append(l.all[:0], l.all[1:]...)
		l.lost++
	}
	l.all = append(l.all, e)
	if line, err := json.Marshal(e); err == nil {
		fmt.Fprintf(l.file, "%s\n", line)
	}
	close(l.fresh)
	l.fresh = make(chan struct{})
}

// since returns the events from number n on, the number of the next event, and a channel that is
// closed when that event is added.
func (l *events) since(n int) (some []Event, next int, fresh <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := min(max(0, n-l.lost), len(l.all))
	return append([]Event(nil), l.all[from:]...), l.lost + len(l.all), l.fresh
}
