package series

import (
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/results/record"
)

func (r *Runner) sayf(format string, args ...any) { r.Watcher.Say(fmt.Sprintf(format, args...)) }

// runOne runs a job, and again where Twice or Retry asks for it.
func (r *Runner) runOne(ctx context.Context, j *Job) Outcome {
	first := r.try(ctx, j)
	s := first.Summary
	switch {
	case len(first.Errs) > 0 || ctx.Err() != nil:
		return first
	case r.Twice && s.Complete() && s.Engine != "sim":
		return r.twice(ctx, j, first)
	case r.Retry && s.Fidelity != nil && s.Fidelity.Verdict != record.OK && s.Unjudged() == "":
		return r.retry(ctx, j, first)
	}
	return first
}

// retry repeats an emulation whose fidelity is not ok, slower, if that may help. It returns the
// better outcome.
func (r *Runner) retry(ctx context.Context, j *Job, first Outcome) Outcome {
	s := first.Summary
	if s.Fidelity.Verdict == record.Degraded && !emulate.Helps(s.Fidelity) {
		r.sayf("%s: fidelity %s at dilation %.15g, and a higher dilation does not help; not repeated",
			s.Run, s.Fidelity.Verdict, s.Dilation)
		return first
	}
	d, factor, why := emulate.Slower(s.Fidelity, s.Dilation)
	r.sayf("%s: fidelity %s at dilation %.15g; repeating at %.15g, %.3g times as slow: %s",
		s.Run, s.Fidelity.Verdict, s.Dilation, d, factor, why)
	again := *j
	again.Retry = &record.Retry{Of: s.Run, Verdict: s.Fidelity.Verdict, Dilation: s.Dilation, Factor: factor, Why: why}
	var err error
	again.Lab, err = j.slower(d)
	second := Outcome{Summary: s, Errs: []error{err}}
	if err == nil {
		second = r.try(ctx, &again)
	}
	switch t := second.Summary; {
	case ctx.Err() != nil:
		return second
	case len(second.Errs) > 0:
		r.sayf("%s counts, with fidelity %s: the second run failed: %v", s.Run, s.Fidelity.Verdict, second.Errs[0])
		return first
	case t.Retry == nil || !t.Retry.Counts:
		r.sayf("%s counts, with fidelity %s: the second run, %s, is no better", s.Run, s.Fidelity.Verdict, t.Run)
		s.Fidelity.Advice = emulate.Advice(s.Fidelity, t.Dilation, true) // suggests another dilation
		return first
	default:
		r.sayf("%s counts, with fidelity %s; %s is kept too", t.Run, t.Fidelity.Verdict, s.Run)
		return second
	}
}

// twiceBy is the factor between the dilations of Twice. Our own choice: what the machine adds then
// shrinks to a quarter.
const twiceBy = 4

// twice repeats a run at a higher dilation. Both count.
func (r *Runner) twice(ctx context.Context, j *Job, first Outcome) Outcome {
	slower := *j
	d := twiceBy * first.Summary.Dilation
	r.sayf("%s: again at dilation %.15g", first.Summary.Run, d)
	var err error
	if slower.Lab, err = j.slower(d); err != nil {
		first.Errs = []error{err}
		return first
	}
	second := r.try(ctx, &slower)
	first.Again, first.Errs = second.Summary, second.Errs
	return first
}
