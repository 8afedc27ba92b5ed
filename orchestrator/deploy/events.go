package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"weft/units"
)

// maxEvents is how many events a lab remembers; of older ones only their number is known.
const maxEvents = 10_000

// events is what became of a lab, kept in memory for whoever asks and in a file for afterwards.
type events struct {
	lab string
	now func() units.Time // nil: lab time has not begun

	mu    sync.Mutex // guards what follows
	file  *os.File
	all   []Event
	lost  int           // that are no longer remembered
	fresh chan struct{} // closed when there is one more
}

func newEvents(dir *os.Root, lab string) (*events, error) {
	f, err := dir.OpenFile(eventsFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &events{lab: lab, file: f, fresh: make(chan struct{})}, nil
}

// add notes an event. The file is for people to look at: a full disk must not end the lab.
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

// since returns the events from number n on, the number of the next, and what is closed when there is one more.
func (l *events) since(n int) (some []Event, next int, fresh <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := min(max(0, n-l.lost), len(l.all))
	return append([]Event(nil), l.all[from:]...), l.lost + len(l.all), l.fresh
}
