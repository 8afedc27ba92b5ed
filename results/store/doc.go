// Package store writes the directory of a run, as the run goes, and reads it back.
//
// What comes in are rows and the final summary; what goes out is a directory that exists once, is never
// overwritten, and says at every moment whether its run is under way, done, failed or was interrupted.
// Wall time and machine appear in manifest.json and summary.json only: the data files of a simulated run are a
// function of lab, seed and version, byte for byte.
package store
