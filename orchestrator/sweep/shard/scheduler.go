package shard

import (
	"context"

	"weft/orchestrator/sweep"
)

// A Scheduler is an engine that runs a task for each shard, on this machine or on many.
type Scheduler interface {
	// Name is the value of --on.
	Name() string
	// Check returns an error if the scheduler cannot run this kind of run, or is not there.
	Check(ctx context.Context, kind string) error
	// Slots returns how many shards it runs at a time.
	Slots(ctx context.Context, kind string) (int, error)
	// Start starts a task for each shard, and sets the round's Handle. After an error nothing runs.
	Start(ctx context.Context, d *Dir, r *sweep.Round) error
	// Tasks returns the state of the tasks; none if they are gone.
	Tasks(ctx context.Context, d *Dir, r sweep.Round) ([]sweep.Task, error)
	// End ends all tasks and removes what the scheduler keeps of them. It succeeds twice.
	End(ctx context.Context, d *Dir, r sweep.Round) error
}
