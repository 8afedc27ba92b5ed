package docker

import (
	"strings"

	"weft/orchestrator/runtime"
)

// Labels of everything that this package makes. An object that lacks one of them is someone else's.
const (
	labelLab   = "weft.lab"   // the lab's name
	labelRun   = "weft.run"   // ID of the launch, 16 hexadecimal digits
	labelNode  = "weft.node"  // the node's name, or the fabric's
	labelOwner = "weft.owner" // the process that launched it; see runtime.Owner
)

// ownerFromLabels returns the owner of a container. ok is false if the labels are not those of this
// package.
func ownerFromLabels(labels map[string]string) (runtime.Owner, bool) {
	o, ok := runtime.ParseOwner(labels[labelOwner])
	return o, ok && labels[labelLab] != "" && isRun(labels[labelRun]) && labels[labelNode] != ""
}

// isRun reports whether text is a valid value of labelRun.
func isRun(text string) bool {
	return len(text) == 16 && strings.Trim(text, "0123456789abcdef") == ""
}
