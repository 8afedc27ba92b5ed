// Package view makes the page on which people watch runs: weft view, and view.html in a run's
// directory.
//
// Input is one run directory or several, or the frames of a run that goes on. Output is an HTML
// page without references to anything else, and a server for it on loopback.
//
// A Model is what the page needs of one run: the network, frames, connections, parts of
// ranks, faults and clocks (model.go, columns.go). Page puts models, stylesheet and script into one
// file (page.go). The script is in page/, one ES module for each view; main.js is where it starts.
// Server serves the page and, of a run that goes on, new models (server.go).
//
// Invariants. The page's content policy allows its own script, by hash, and connections to where it
// came from, nothing else. A server answers nobody without its token, and no request whose Host is
// not its own. Names from a run are data: the script never makes them markup.
package view
