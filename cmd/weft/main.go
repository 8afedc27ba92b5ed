// Command weft builds AI-cluster networks out of one YAML file, runs collectives over them with a chosen
// transport, in emulation or in simulation, and says how far the numbers can be trusted. This package is the
// command line and nothing else: it reads flags and files, calls the orchestrator, and shows what comes back.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"weft/internal/control"
	"weft/orchestrator/uml"
)

func main() {
	if code, played := uml.Role(os.Args); played {
		os.Exit(code)
	}
	if err := control.KeepDescriptors(); err != nil { // whoever started weft may have left some open
		fmt.Fprintf(os.Stderr, "weft: %v\n", err)
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A terminal that closes may say so twice, to the session and to whoever is in the foreground: setsid(2), termios(3).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the first signal tears down; a second Ctrl-C or SIGTERM ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
