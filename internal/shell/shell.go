// Package shell writes words of commands that people copy, or that a shell reads from a script.
package shell

import "strings"

// plain are the characters that mean nothing to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,%+"

// Quote returns a text as one word of a POSIX shell: as it is if no character of it means anything
// else, otherwise in quotes.
func Quote(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
