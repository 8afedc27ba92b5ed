package table

import (
	"fmt"
	"io"
	"strings"
)

// Progress is a bar on one line of a terminal. The zero value and a nil pointer draw nothing, as
// for output that is not a terminal.
type Progress struct {
	w     io.Writer
	drawn string
}

// NewProgress returns a bar on w, which must be a terminal.
func NewProgress(w io.Writer) *Progress { return &Progress{w: w} }

// Set draws how much is done. It writes only if the line changes.
func (p *Progress) Set(label string, done, total int64) {
	if p == nil || p.w == nil || total <= 0 {
		return
	}
	const width = 30
	share := min(max(float64(done)/float64(total), 0), 1)
	full := int(share * width)
	line := fmt.Sprintf("%s [%s%s] %3.0f %%", label, strings.Repeat("#", full), strings.Repeat(".", width-full),
		100*share)
	if line == p.drawn {
		return
	}
	p.drawn = line
	fmt.Fprint(p.w, "\r\x1b[K"+line) // a closed terminal is no reason to end a run
}

// Clear removes the bar, so that other text can be written.
func (p *Progress) Clear() {
	if p == nil || p.drawn == "" {
		return
	}
	p.drawn = ""
	fmt.Fprint(p.w, "\r\x1b[K")
}
