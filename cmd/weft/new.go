package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"weft/orchestrator/starter"
)

func (a *app) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "write the source of a congestion control to start from",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("cannot make a %q; expected weft new cc NAME", args[0])
			}
			return usagef("expected weft new cc NAME")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "cc NAME",
		Short: "write a congestion control to start from, with a test and a lab",
		Long: `Write the folder NAME with a congestion control in Go, its test, a lab that compares it, and all that
go build needs, so that it needs no network. The program becomes a WebAssembly module, which runs in
both engines as transport.kind: wasm. It is additive increase and multiplicative decrease; make it
yours.`,
		Example: `  weft new cc mine
  cd mine
  GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -o mine.wasm .
  weft run lab.yaml --engine sim`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("expected one name, such as weft new cc mine")
			}
			return a.newCC(args[0])
		},
	})
	return cmd
}

// newCC writes the folder of a new congestion control. If anything fails, nothing stays.
func (a *app) newCC(name string) (err error) {
	if err := starter.CheckControllerName(name); err != nil {
		return usagef("%v", err)
	}
	if err := os.Mkdir(name, 0o755); errors.Is(err, fs.ErrExist) {
		return usagef("%s exists; expected a name that no file here has", name)
	} else if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(name) // made here; the first error says more
		}
	}()
	files, err := starter.Controller(name)
	if err != nil {
		return err
	}
	for file, text := range files {
		to := filepath.Join(name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, `%s has %s.go, %s_test.go and lab.yaml. Next:

  cd %s
  go test
  GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -o %s.wasm .
  weft run lab.yaml --engine sim
`, name, name, name, name, name)
	return err
}
