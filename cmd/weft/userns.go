package main

import (
	"context"
	"fmt"

	"weft/internal/privilege"
)

// exitCode is the error of a command line that another process executed, which has printed all.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// elevate executes the whole command line in a user namespace, where this user is root, if
// emulation on the given runtime (auto, namespace or docker) needs that here. It returns the
// outcome as an exitCode, or nil if the command can continue in this process. It never does so for
// docker: containers cannot be reached from a user namespace.
func (a *app) elevate(ctx context.Context, runtime string) error {
	if a.enter == nil || runtime == "docker" || !privilege.NeedsUserNS() || privilege.CheckNamespaces() != nil {
		return nil
	}
	entered.Store(true)
	defer entered.Store(false)
	code, err := a.enter(ctx, a.args)
	if err != nil {
		return err
	}
	return exitCode(code)
}
