package deploy

import (
	"context"
	"os"

	"weft/orchestrator/together"
)

// ExecAll runs a program on several nodes at once: see together.Job. With labTime its clocks show
// lab time.
func (h *Handle) ExecAll(ctx context.Context, j *together.Job, labTime bool) (endings []together.Ending, first int) {
	return j.Run(ctx, func(ctx context.Context, p together.Program, stdin, stdout, stderr *os.File) (together.Exit,
		error) {
		exit, err := h.Exec(ctx, Exec{Node: j.Hosts[p.Rank], Args: p.Args, Env: p.Env, Shown: j.Args[0],
			LabTime: labTime, Whole: true}, stdin, stdout, stderr)
		return together.Exit{Code: exit.Code, Text: exit.Text, Ended: exit.Ended, Stood: exit.Stood}, err
	})
}
