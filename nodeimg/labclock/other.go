//go:build !amd64

package labclock

import (
	"fmt"
	"runtime"

	"weft/internal/control"
)

// Available returns why programs on this machine cannot be given lab time.
func Available() error {
	return fmt.Errorf("lab time for programs is there on amd64 only; this machine is %s", runtime.GOARCH)
}

// Install returns the error of Available.
func Install(int) error { return Available() }

func keep(*control.Conn) error { return Available() }
