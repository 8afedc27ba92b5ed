package deploy

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"weft/internal/cleanup"
	"weft/orchestrator/lab"
	"weft/orchestrator/run"
	"weft/orchestrator/topology"
)

// Request is a lab to be deployed.
type Request struct {
	File   string            `json:"file"` // path that the lab was read from, for messages
	Text   []byte            `json:"-"`    // text of the lab; saved as a file of its own
	Set    []string          `json:"set,omitempty"`
	Engine lab.EngineOptions `json:"engine"`
	Files  map[string][]byte `json:"files,omitempty"` // contents of the files that the lab names

	// On says which machines the lab is on: the addresses of agents, with Secret, the file with
	// their secret, or an engine that places agents, with Image, that of their containers. "": this
	// one.
	On     string `json:"on,omitempty"`
	Secret string `json:"secret,omitempty"`
	Image  string `json:"image,omitempty"`

	// Read reads a file that the lab names and Files does not have. If it is nil, there are none.
	Read func(name string) ([]byte, error) `json:"-"`

	Version string `json:"version"` // of Weft
}

// Deployment is a request that is, or was, carried out.
type Deployment struct {
	Request
	Lab      string    `json:"lab"`
	ID       string    `json:"id"` // random; marks its processes
	Began    time.Time `json:"began"`
	Dilation float64   `json:"dilation"`
	Why      string    `json:"why"` // reason for the dilation

	failed []string // see Change

	Subnet topology.Subnet `json:"subnet"` // unique within the state directory
}

// Files of a lab's folder, beside the journal.
const (
	labFile        = "lab.yaml"
	deploymentFile = "deployment.json"
	socketFile     = "socket"
	eventsFile     = "events.jsonl"
	logFile        = "supervisor.log"
)

// newID returns a random ID for a deployment.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// placed reports whether an engine places the agents of other machines.
func (q *Request) placed() bool { return q.On != "" && q.Secret == "" }

// LabTime says what the clocks of programs show that ask for lab time.
func (q *Request) LabTime() string {
	l, err := q.parse()
	if err != nil {
		return ""
	}
	without, kind := run.NoClocks(l), l.Clocks.Kind()
	switch {
	case without != "":
		return without
	case kind.Talks:
		return fmt.Sprintf("with weft exec --clock lab they read the clock of their host, which %s synchronizes",
			kind.Title)
	case !kind.Perfect:
		return "with weft exec --clock lab they read the clock of their host, with its errors"
	}
	return "with weft exec --clock lab they see lab time"
}

// parse returns the lab of a request; if it is a sweep, its first point.
func (q *Request) parse() (*lab.Lab, error) {
	labs, err := lab.Parse(q.File, q.Text, lab.Options{
		Set: q.Set, Engine: q.Engine, Read: q.read, Files: lab.FilesOf(q.read),
	})
	if err != nil {
		return nil, err
	}
	return labs[0], nil
}

// read returns a file that the lab names and keeps it in Files for the supervisor.
func (q *Request) read(name string) ([]byte, error) {
	if text, ok := q.Files[name]; ok {
		return text, nil
	}
	if q.Read == nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	text, err := q.Read(name)
	if err != nil {
		return nil, err
	}
	if q.Files == nil {
		q.Files = map[string][]byte{}
	}
	q.Files[name] = text
	return text, nil
}

// save writes a deployment to its lab's folder.
func (d *Deployment) save(dir *os.Root, j *Journal) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{labFile, d.Text}, {deploymentFile, append(text, '\n')}} {
		write := func() error { return writeFile(dir, f.name, f.text) }
		if err := j.Do("write "+f.name, kindFile, f.name, write); err != nil {
			return err
		}
	}
	return nil
}

// writeFile creates a file and writes it completely, or returns an error.
func writeFile(dir *os.Root, name string, text []byte) error {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return cleanup.Join(err, f.Close())
}

// readDeployment reads what save wrote.
func readDeployment(dir *os.Root) (*Deployment, error) {
	text, err := dir.ReadFile(deploymentFile)
	if err != nil {
		return nil, err
	}
	d := new(Deployment)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", deploymentFile, err)
	}
	d.Text, err = dir.ReadFile(labFile)
	return d, err
}

// Difference is a setting in which two labs differ.
type Difference struct {
	Path string `json:"path"`
	Was  string `json:"was"` // empty: the setting is new
	Is   string `json:"is"`  // empty: the setting is gone
}

func (d Difference) String() string {
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s is new: %s", d.Path, d.Is)
	case d.Is == "":
		return fmt.Sprintf("%s is gone: it was %s", d.Path, d.Was)
	}
	return fmt.Sprintf("%s changes from %s to %s", d.Path, d.Was, d.Is)
}

// differences returns the settings in which the networks of two labs differ. Sections that only
// matter to a run, such as the workload, are left out.
func differences(was, is *lab.Lab) []Difference {
	idle := []string{"about", "workload", "faults", "measure", "expect", "report"}
	about := func(path string) bool {
		section, _, _ := strings.Cut(path, ".")
		return slices.Contains(idle, section)
	}
	values := func(l *lab.Lab) map[string]string {
		m := map[string]string{}
		for _, s := range l.Sources {
			if !about(s.Path) {
				m[s.Path] = s.Value
			}
		}
		return m
	}
	before, after := values(was), values(is)
	var all []Difference
	for _, s := range is.Sources {
		if v, ok := before[s.Path]; !about(s.Path) && (!ok || v != s.Value) {
			all = append(all, Difference{Path: s.Path, Was: v, Is: s.Value})
		}
	}
	for _, s := range was.Sources {
		if _, ok := after[s.Path]; !about(s.Path) && !ok {
			all = append(all, Difference{Path: s.Path, Was: s.Value})
		}
	}
	return all
}

// ErrNotDeployed is returned for a lab that does not exist.
var ErrNotDeployed = errors.New("it is not deployed")

// missing reports whether err means that a file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
