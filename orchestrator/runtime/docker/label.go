package docker

import (
	"strings"

	"weft/orchestrator/runtime"
)

// The labels of everything that this package makes. An object that lacks one of them was not made by it.
const (
	labelLab   = "weft.lab"   // the lab's name
	labelRun   = "weft.run"   // which launch of it, 16 hexadecimal digits
	labelNode  = "weft.node"  // the node's name, or the fabric's
	labelOwner = "weft.owner" // the process that launched it: see runtime.Owner
)

// ours says whether labels are those of a container that this package made, and returns its owner.
func ours(labels map[string]string) (runtime.Owner, bool) {
	o, ok := runtime.ParseOwner(labels[labelOwner])
	return o, ok && labels[labelLab] != "" && isRun(labels[labelRun]) && labels[labelNode] != ""
}

// isRun says whether text is the value of labelRun.
func isRun(text string) bool {
	return len(text) == 16 && strings.Trim(text, "0123456789abcdef") == ""
}
