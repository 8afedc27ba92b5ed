package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"weft/orchestrator/lab"
	"weft/results/record"
)

// programFiles returns the files of the programs of a lab with their hashes: those that programs
// read below /lab, the programs themselves, by an absolute path or by what this machine's PATH has
// for their names, and arguments that are absolute paths of files of this machine (a script, a
// model), up to maxArgument. An image has its programs itself. What else lies beside a program is
// not listed, although the program sees it.
func programFiles(l *lab.Lab) (all []record.ProgramFile) {
	for i := range l.Programs {
		p := &l.Programs[i]
		item := fmt.Sprintf("workload.%d.", p.Index)
		if p.Image == "" && !(len(p.Files) > 0 && strings.HasPrefix(filepath.Clean(p.Args[0]), labFolder)) {
			all = appendProgram(all, item+"program.", p.Args)
		}
		for k := range p.Files {
			sum := sha256.Sum256(p.Files[k].Text)
			all = append(all, record.ProgramFile{Path: fmt.Sprintf("%sfiles.%d", item, k), File: p.Files[k].Name,
				SHA256: hex.EncodeToString(sum[:])})
		}
	}
	nodes, _ := l.Topology.Drawn()
	for i, n := range nodes {
		if n.Image == "" && len(n.Run) > 0 {
			all = appendProgram(all, fmt.Sprintf("topology.nodes.%d.run.", i), n.Run)
		}
	}
	return all
}

// labFolder begins the paths of a program's files in its node.
const labFolder = "/lab/"

// maxArgument bounds the files among the arguments of a program that are read for their hashes: the
// data of a training takes long to read. It is that of --file.
const maxArgument = 256 << 20

// appendProgram appends a program of this machine, if it is there, and the files among its
// arguments.
func appendProgram(all []record.ProgramFile, path string, args []string) []record.ProgramFile {
	for i, name := range args {
		switch {
		case i > 0:
			info, err := os.Stat(name)
			if !filepath.IsAbs(name) || err != nil || !info.Mode().IsRegular() || info.Size() > maxArgument {
				continue
			}
		case !strings.Contains(name, "/"):
			found, err := exec.LookPath(name)
			if err != nil {
				continue // a program of the nodes' system
			}
			name = found
		}
		if filepath.IsAbs(name) && !strings.HasPrefix(name, "/proc/") {
			all = append(all, record.ProgramFile{Path: path + strconv.Itoa(i), File: name, SHA256: sumOf(name)})
		}
	}
	return all
}

// sumOf returns the SHA-256 of a regular file, in hexadecimal digits; "" if it cannot be read.
func sumOf(name string) string {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
