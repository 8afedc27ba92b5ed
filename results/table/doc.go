// Package table shows summaries to people: one run in full, several runs as rows, two engines side by side, and
// a progress bar. What comes in are summaries, what goes out is text in lab units. Whether colour or a bar is
// wanted is decided by the caller; nothing here looks at the environment.
package table
