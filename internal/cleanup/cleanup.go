// Package cleanup collects what goes wrong while something is taken down: each step is taken whatever became of those
// before it, and whoever asked is told of all that failed.
package cleanup

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// Errors are the failures so far. The zero value is ready to use. Not safe for concurrent use.
type Errors struct{ all *multierror.Error }

// Add adds a failure; nil is none.
func (e *Errors) Add(err error) {
	if err != nil {
		e.all = multierror.Append(e.all, err)
	}
}

// Err returns nil without a failure. Otherwise its text has a line for each, and errors.Is and errors.As find all of them.
func (e *Errors) Err() error {
	if e.all == nil {
		return nil
	}
	e.all.ErrorFormat = lines
	return e.all
}

// Join returns those of errs that are not nil as one error, or nil.
func Join(errs ...error) error {
	var e Errors
	for _, err := range errs {
		e.Add(err)
	}
	return e.Err()
}

func lines(errs []error) string {
	var text strings.Builder
	for i, err := range errs {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(err.Error())
	}
	return text.String()
}
