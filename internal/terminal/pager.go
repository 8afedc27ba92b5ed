package terminal

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Page shows what write writes through $PAGER (less) on the terminal out. It writes to out directly
// if there is no such program, or if PAGER is empty or cat.
func Page(out *os.File, stderr io.Writer, write func(io.Writer) error) error {
	pager, set := os.LookupEnv("PAGER")
	if !set {
		pager = "less"
	}
	name, _, _ := strings.Cut(pager, " ")
	if pager == "" || pager == "cat" {
		return write(out)
	}
	if _, err := exec.LookPath(name); name != "" && err != nil {
		return write(out)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &text, out, stderr
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // quit if all fits on one page; show colours
	}
	_ = cmd.Run() // the reader may quit the pager early
	return nil
}
