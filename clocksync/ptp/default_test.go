package ptp

import (
	"weft/clocksync"
	"weft/params"
)

// Default returns the default configuration of a node with a number of backups.
func Default(s clocksync.Setup, backups int) Config {
	p := defaults()
	p.Backups = backups
	return p.Config(s)
}

func defaults() (p Params) {
	params.SetDefaults(&p)
	return p
}
