package cleanup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
)

func TestNothingFailed(t *testing.T) {
	var e Errors
	e.Add(nil)
	if err := e.Err(); err != nil {
		t.Errorf("got %v", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("got %v", err)
	}
}

// All errors are reported, one per line, and found by errors.Is, however they were collected.
func TestAllFailuresAreTold(t *testing.T) {
	err := Join(fmt.Errorf("close: %w", io.ErrClosedPipe), nil, Join(fs.ErrNotExist, errors.New("last")))
	if got, want := err.Error(), "close: io: read/write on closed pipe\nfile does not exist\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, want := range []error{io.ErrClosedPipe, fs.ErrNotExist} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not found in %v", want, err)
		}
	}
	if errors.Is(err, io.EOF) {
		t.Error("found what had not failed")
	}
}
