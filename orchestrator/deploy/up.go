package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/orchestrator/topology"
)

// Options configure Up, Down, Clean and Supervise. The zero value is what weft itself uses.
type Options struct {
	Node string            // program of nodes; empty: this one
	Step func(step string) // called before and after every operation, for tests; may be nil
	Undo map[string]undoer // further undoers, by kind of operation
	Say  func(line string) // called with progress messages; may be nil

	// Machines returns the other machines that a request names, or nil; nil: it names none. say
	// receives what happens until they are there, and ahead is called before an engine starts
	// agents; both may be nil.
	Machines func(q *Request, say func(line string), ahead runtime.Ahead) (Machines, error)
}

// Machines are other machines that a lab is on.
type Machines interface {
	orchestrate.Machines
	// Close ends the agents that an engine has placed for the lab.
	Close(context.Context) error
}

// machines returns the other machines of a request; nil: its lab is on this one.
func (o *Options) machines(q *Request, say func(line string), ahead runtime.Ahead) (Machines, error) {
	if o.Machines == nil || q.On == "" {
		return nil, nil
	}
	return o.Machines(q, say, ahead)
}

func (o *Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

// Change describes what Up does, or would do.
type Change struct {
	Lab         string       `json:"lab"`
	Action      string       `json:"action"` // deploy, replace, none, repair
	Why         string       `json:"why"`
	Differences []Difference `json:"differences,omitempty"`
	Took        float64      `json:"took_s,omitempty"`
	Deployment  *Deployment  `json:"deployment,omitempty"`

	// Programs of hosts (run:) that failed at their start and, if the lab was up, what has failed
	// since: programs, hosts that ended, hosts without their interface; a line for each.
	Failed []string `json:"failed,omitempty"`
	// What weft node and weft link changed in a lab that is up, and is not as its file says; a line
	// for each.
	Changed []string `json:"changed,omitempty"`
}

// Text returns what the change would do, as lines for a person.
func (c *Change) Text() string {
	text := map[string]string{
		ActionDeploy: "would be deployed", ActionReplace: "would be taken down and deployed again",
		ActionRepair: "would be cleaned up and deployed again", ActionNone: "would be left as it is",
	}[c.Action]
	text = fmt.Sprintf("%s %s: %s\n", c.Lab, text, c.Why)
	for _, d := range c.Differences {
		text += fmt.Sprintf("  %s\n", d)
	}
	for _, line := range slices.Concat(c.Changed, c.Failed) {
		text += fmt.Sprintf("  %s\n", line)
	}
	return text
}

// Actions of a Change.
const (
	ActionDeploy  = "deploy"  // nothing is there
	ActionReplace = "replace" // another version of the lab is up
	ActionRepair  = "repair"  // what is there has crashed, or is broken
	ActionNone    = "none"    // the same is up
)

// DryRun returns what Up would do, without doing it, or the error with which Up refuses the lab or
// this machine.
func DryRun(ctx context.Context, path string, q *Request, o Options) (*Change, error) {
	l, _, err := prepare(ctx, path, q, o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); missing(err) { // nothing was ever deployed
		return fresh(l), nil
	}
	r, err := OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.plan(l, q)
}

func fresh(l *lab.Lab) *Change {
	return &Change{Lab: l.Name, Action: ActionDeploy, Why: "it is not up"}
}

// prepare returns the lab of a request and its network, or the error with which a deployment is
// refused before anything is made: the lab, the state directory or the machine cannot work. The
// network is empty if an engine places the lab: its machines are measured once they are there.
func prepare(ctx context.Context, path string, q *Request, o Options) (*lab.Lab, *orchestrate.Deployment, error) {
	l, err := q.parse()
	if err != nil {
		return nil, nil, err
	}
	if err := checkRoot(path); err != nil && !missing(err) { // early, since PrepareDeployment takes seconds
		return nil, nil, err
	}
	machines, err := o.machines(q, o.Say, nil)
	if err != nil {
		return nil, nil, err
	}
	if q.placed() { // the supervisor has the agents placed, and measures their machines
		return l, new(orchestrate.Deployment), orchestrate.CheckDeployable(l, machines)
	}
	spec, err := orchestrate.PrepareDeployment(ctx, l, orchestrate.Options{Self: o.Node, Machines: machines})
	return l, spec, err
}

// plan returns what Up would do with the lab of a request.
func (r *Root) plan(l *lab.Lab, q *Request) (*Change, error) {
	c := fresh(l)
	dir, err := r.folder(l.Name)
	if missing(err) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c.Action = ActionRepair
	state, err := stateOf(r, l.Name)
	if said := new(control.RemoteError); errors.As(err, &said) { // its network does not answer
		c.Why = "it is broken: " + said.Text
		return c, nil
	}
	if err != nil {
		c.Why = "an earlier deployment has crashed or does not answer"
		return c, nil
	}
	if state.Broken != "" {
		c.Why = "it is broken: " + state.Broken
		return c, nil
	}
	d, err := readDeployment(dir)
	if err != nil {
		c.Why = "its files cannot be read: " + err.Error()
		return c, nil
	}
	was, err := d.parse()
	if err != nil {
		c.Action, c.Why = ActionReplace, "another version of Weft deployed it"
		return c, nil
	}
	c.Deployment = d
	switch {
	case d.On != q.On:
		c.Action, c.Why = ActionReplace, "it is on "+cmp.Or(d.On, "this machine")
		return c, nil
	case d.Image != q.Image:
		c.Action, c.Why = ActionReplace, "its agents have "+cmp.Or(d.Image, "the image of weft")
		return c, nil
	}
	if c.Differences = differences(was, l); len(c.Differences) > 0 {
		c.Action, c.Why = ActionReplace, "the network differs"
		return c, nil
	}
	c.Action, c.Why, c.Failed, c.Changed = ActionNone, "the same network is up", state.failed(), state.changed()
	return c, nil
}

// Up makes sure that a lab is deployed: it deploys a lab that is not up, leaves one alone that is
// up unchanged, and replaces one that differs. If it fails or ctx ends, it removes everything that
// it made.
func Up(ctx context.Context, path string, q *Request, o Options) (*Change, error) {
	l, spec, err := prepare(ctx, path, q, o)
	if err != nil {
		return nil, err
	}
	r, lock, err := begin(path, l.Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer r.Remove() // if it is empty
	defer lock.Unlock()
	c, err := r.plan(l, q)
	if err != nil || c.Action == ActionNone {
		return c, err
	}
	if _, err := EndStrays(ctx, l.Name, o); err != nil {
		return nil, err
	}
	began := time.Now()
	if c.Action != ActionDeploy {
		o.say("%s: %s; taking it down first", l.Name, c.Why)
		if err := takeDown(ctx, r, l.Name, o); err != nil {
			return nil, err
		}
	}
	c.Deployment = &Deployment{
		Request: *q, Lab: l.Name, ID: newID(), Began: began, Dilation: spec.Dilation, Why: spec.Why,
	}
	if err := c.Deployment.bringUp(ctx, r, o); err != nil {
		var all cleanup.Errors
		all.Add(err)
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
		defer cancel()
		all.Add(takeDown(clean, r, l.Name, o))
		return nil, fmt.Errorf("deploy %s: %w", l.Name, all.Err())
	}
	c.Took, c.Failed = time.Since(began).Seconds(), c.Deployment.failed
	return c, nil
}

// downTime is the time limit for taking a lab down after its deployment has failed. Our own choice.
const downTime = 30 * time.Second

// begin opens the state directory and takes a lab's lock, within lockTime.
func begin(path, name string) (*Root, *Lock, error) { return beginWithin(path, name, lockTime) }

// beginWithin is begin with a time limit. It retries if the state directory vanishes meanwhile,
// since removing the last lab removes the directory too.
func beginWithin(path, name string, wait time.Duration) (*Root, *Lock, error) {
	for try := 0; ; try++ {
		r, err := OpenRoot(path)
		if err != nil {
			return nil, nil, err
		}
		lock, err := r.Lock(name, wait)
		if err == nil {
			return r, lock, nil
		}
		r.Close()
		if !missing(err) || try == 5 {
			return nil, nil, err
		}
	}
}

// bringUp creates the folder and the journal of a lab and starts its supervisor.
func (d *Deployment) bringUp(ctx context.Context, r *Root, o Options) error {
	o.step("before make folder")
	if err := r.dir.Mkdir(d.Lab, 0o700); err != nil {
		return err
	}
	dir, err := r.folder(d.Lab)
	if err != nil {
		return err
	}
	defer dir.Close()
	o.step("after make folder")
	j, err := createJournal(dir, d.ID, o.Step)
	if err != nil {
		return err
	}
	defer j.Close()
	err = r.assignSubnet(d.Lab, func(s topology.Subnet) error {
		d.Subnet = s
		return d.save(dir, j)
	})
	if err != nil {
		return err
	}
	return d.supervise(ctx, r, dir, j, o)
}

// supervise starts the supervisor and waits until the lab is up.
func (d *Deployment) supervise(ctx context.Context, r *Root, dir *os.Root, j *Journal, o Options) error {
	var log *os.File
	err := j.Do("write "+logFile, kindFile, logFile, func() (err error) {
		log, err = dir.OpenFile(logFile, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	defer log.Close()
	conn, theirs, err := control.Pair()
	if err != nil {
		return err
	}
	defer conn.Close()
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{"weft", "supervise", r.path, d.Lab},
		Env:         append(os.Environ(), markVar+"="+d.ID),
		Dir:         "/",
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  []*os.File{theirs}, // becomes control.FD
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := control.KeepDescriptors(); err != nil {
		return err
	}
	err = j.Do("start supervisor", kindSupervisor, d.ID, cmd.Start)
	theirs.Close()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // the supervisor then ends the lab and itself
	defer stop()
	is, err := o.awaitUp(conn)
	if err == nil {
		d.Dilation, d.Why, d.failed = is.Dilation, is.Why, is.Failed
		err = conn.SendValue(kindKeep, nil)
	}
	if err == nil {
		_, err = conn.Expect(kindKept, nil)
	}
	if err == nil {
		return cmd.Process.Release()
	}
	conn.Close()
	_ = cmd.Wait() // it ends now that the connection is closed; its state says how
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var said *control.RemoteError
	if errors.As(err, &said) {
		return said
	}
	return fmt.Errorf("the supervisor ended (%v): %w%s", cmd.ProcessState, err, logTail(log))
}

// awaitUp passes on what the supervisor says until the lab is up.
func (o *Options) awaitUp(conn *control.Conn) (is up, err error) {
	for {
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		if err == nil && m.Kind != kindSay {
			err = m.Is(kindUp, &is)
			return is, err
		}
		var line string
		if err == nil {
			err = m.Decode(&line)
		}
		if err != nil {
			return is, err
		}
		o.say("%s", line)
	}
}

// logTail returns the end of a supervisor's log.
func logTail(log *os.File) string {
	const limit = 2000
	info, err := log.Stat()
	if err != nil || info.Size() == 0 {
		return ""
	}
	text := make([]byte, min(limit, info.Size()))
	n, _ := log.ReadAt(text, info.Size()-int64(len(text)))
	return ": " + strings.TrimSpace(string(text[:n]))
}
