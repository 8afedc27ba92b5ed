package ptp

import (
	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/params"
)

// Default returns the default configuration of a node with a number of backups, whose gains follow
// from the expected jitter.
func Default(s clocksync.Setup, backups int) Config {
	p := defaults()
	p.Backups, p.Gains = backups, servo.Gains{}
	return p.Config(s)
}

func defaults() (p Params) {
	params.SetDefaults(&p)
	return p
}
