// Package record holds the shapes of what a run leaves: the summary and the rows of its data files. It only
// describes; packages store, stats and expect work on it.
package record
