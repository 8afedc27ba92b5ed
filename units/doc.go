// Package units is the vocabulary every other package shares: lab time in integer picoseconds, sizes in
// bytes, rates in bits per second, and how each is read from and written to text.
//
// Everything here is a value: no clock is read, nothing is allocated on the hot paths. A quantity in text
// always carries its unit; a bare number is an error.
package units
