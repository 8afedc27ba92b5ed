package lab

import (
	"bytes"
	"errors"
	"io"

	"gopkg.in/yaml.v3"
)

// Head returns the name and the about of a lab file without checking anything else. They are empty
// if the file lacks them or is no lab: one file is one document.
func Head(text []byte) (name, about string) {
	var head struct {
		Name  string `yaml:"name"`
		About string `yaml:"about"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	if d.Decode(&head) != nil || !errors.Is(d.Decode(new(yaml.Node)), io.EOF) {
		return "", ""
	}
	return head.Name, head.About
}
