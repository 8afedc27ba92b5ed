package realtime

import (
	"weft/units"
)

// behind records when the process was behind: from the instant at which something was due until it
// was handled. It was behind when it delivers a frame late, when it reads a frame late whose
// departure it knows, and while it is busy for long. The kernel does not say when it got the frames
// of an interface. So a process with interfaces sleeps for short times only, and if it finds frames
// after a sleep that took longer than that, it was behind since the sleep should have ended.
type behind struct {
	Stalls
	least  int64      // Log.Least in real ns
	naps   int64      // longest sleep, in real ns; 0: any
	woke   int64      // when the last wait ended, CLOCK_MONOTONIC in ns; 0: none has
	until  int64      // when it should have ended at the latest
	pushed units.Time // departure of the frame that is being read, as its agent says; 0: unknown
}

// minNap is the least that behind.naps is, in nanoseconds: waking a thousand times a second takes a
// hundredth of a processor.
const minNap = 1_000_000

func newBehind(cfg *Config) behind {
	b := behind{}
	b.Least, b.Late.Least = cfg.Stall, cfg.Stall
	return b
}

// begin sets up the record at the start of lab time, from which on this process has work.
func (b *behind) begin(l *loop) {
	b.least = l.scale.RealSpan(l.cfg.Stall)
	if l.cfg.Stall > 0 && (l.cfg.NICs == nil || l.cfg.Programs) {
		b.naps = max(minNap, b.least)
	}
	b.Record(0, l.labNow())
}

// nap returns until when the process may sleep, at the longest.
func (b *behind) nap(now, until int64) int64 {
	if b.naps > 0 {
		until = min(until, now+b.naps)
	}
	return max(until, now)
}

// awake notes the end of a wait.
func (b *behind) awake(l *loop) {
	b.woke = l.clock.Now()
	if b.woke-b.until <= b.least || b.until == 0 || b.naps == 0 {
		return
	}
	for _, token := range l.poll.Ready {
		if token >= 0 { // a host's
			b.Record(l.scale.Lab(b.until), l.scale.Lab(b.woke))
			return
		}
	}
}

// worked records that the process has been busy since the last wait until now: what came meanwhile
// waited.
func (b *behind) worked(l *loop, now int64) {
	if b.woke != 0 && now-b.woke > b.least {
		b.Record(l.scale.Lab(b.woke), l.scale.Lab(now))
	}
}
