package lab

import "gopkg.in/yaml.v3"

// Head returns the name and the about of a lab file without checking anything else. They are empty
// if the file lacks them or is no lab.
func Head(text []byte) (name, about string) {
	var head struct {
		Name  string `yaml:"name"`
		About string `yaml:"about"`
	}
	if yaml.Unmarshal(text, &head) != nil {
		return "", ""
	}
	return head.Name, head.About
}
