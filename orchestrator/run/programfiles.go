package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"weft/orchestrator/lab"
	"weft/results/record"
)

// programFiles returns the files of the programs of a lab with their hashes: those that programs
// read below /lab, and programs that the lab names by an absolute path of this machine. A name in
// PATH means a program of the nodes' system, which a lab does not bring along, and an image has its
// programs itself. What else lies beside a program is not listed, although the program sees it.
func programFiles(l *lab.Lab) (all []record.ProgramFile) {
	for i := range l.Programs {
		p := &l.Programs[i]
		item := fmt.Sprintf("workload.%d.", p.Index)
		if p.Image == "" && !(len(p.Files) > 0 && strings.HasPrefix(filepath.Clean(p.Args[0]), labFolder)) {
			all = appendProgram(all, item+"program.0", p.Args[0])
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
			all = appendProgram(all, fmt.Sprintf("topology.nodes.%d.run.0", i), n.Run[0])
		}
	}
	return all
}

// labFolder begins the paths of a program's files in its node.
const labFolder = "/lab/"

// appendProgram appends a program of this machine, if it is named by an absolute path.
func appendProgram(all []record.ProgramFile, path, program string) []record.ProgramFile {
	if !filepath.IsAbs(program) || strings.HasPrefix(program, "/proc/") {
		return all
	}
	return append(all, record.ProgramFile{Path: path, File: program, SHA256: sumOf(program)})
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
