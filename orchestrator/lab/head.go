package lab

import "gopkg.in/yaml.v3"

// Head returns what a lab file says of itself, its name and its about, without checking anything else. They are empty where
// the file does not have them, or is no lab.
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
