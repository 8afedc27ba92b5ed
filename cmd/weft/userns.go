package main

import (
	"fmt"

	"weft/orchestrator/runtime/namespace"
)

// exitCode ends a command line that another process executed. That process has said everything.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// elevate executes the whole command line in a user namespace where this user is root, if that is what it takes
// to emulate here with the given runtime (auto, namespace, docker), and returns how that came out. It returns nil where
// the command can go on in this process. Containers cannot be reached from a user namespace.
func (a *app) elevate(runtime string) error {
	if a.enter == nil || runtime == "docker" || !namespace.NeedsUserNS() || namespace.Available() != nil {
		return nil
	}
	code, err := a.enter(a.args)
	if err != nil {
		return err
	}
	return exitCode(code)
}
