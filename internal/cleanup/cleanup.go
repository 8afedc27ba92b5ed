// Package cleanup collects the errors of a tear-down. Every step runs whatever the earlier ones
// returned, and the caller gets all errors.
package cleanup

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// Errors holds the errors so far. The zero value is ready to use. Not safe for concurrent use.
type Errors struct{ all *multierror.Error }

// Add adds an error; it ignores nil.
func (e *Errors) Add(err error) {
	if err != nil {
		e.all = multierror.Append(e.all, err)
	}
}

// Err returns nil without an error. Otherwise the text has one line per error, and errors.Is and
// errors.As find each of them.
func (e *Errors) Err() error {
	if e.all == nil {
		return nil
	}
	e.all.ErrorFormat = lines
	return e.all
}

// Join combines the errors that are not nil into one, or returns nil.
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
