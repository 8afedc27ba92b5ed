package bench

import (
	"fmt"
	"slices"
	"strings"

	"weft/collectives/schedule"
)

// ParseType returns the element type that nccl-tests calls text (-d). float is float32. The error
// names the types there are, and an equivalent of those that only nccl-tests has.
func ParseType(text string) (schedule.Type, error) {
	if text == "float" {
		return schedule.Float32, nil
	}
	return element(text, schedule.Types(), map[string]string{
		"half": "bfloat16 has the same size", "fp16": "bfloat16 has the same size",
	})
}

// ParseReduction returns the reduction that nccl-tests calls text (-o), with an error as ParseType.
func ParseReduction(text string) (schedule.Reduction, error) {
	return element(text, schedule.Reductions(), map[string]string{
		"avg": "an average moves the same data as a sum",
	})
}

// element returns the value of all that text names. hints are for names that only nccl-tests has.
func element[T ~string](text string, all []T, hints map[string]string) (T, error) {
	if slices.Contains(all, T(text)) {
		return T(text), nil
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = string(v)
	}
	list := strings.Join(names, ", ")
	switch hint := hints[text]; {
	case text == "all":
		return "", fmt.Errorf("%q: a benchmark uses one; run it once for each of %s", text, list)
	case hint != "":
		return "", fmt.Errorf("%q: expected one of %s; %s", text, list, hint)
	}
	return "", fmt.Errorf("%q: expected one of %s", text, list)
}
