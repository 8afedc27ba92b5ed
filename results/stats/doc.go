// Package stats turns samples into the few numbers that a summary shows. What comes in are values, what goes
// out are exact nearest-rank quantiles, means and Jain's index; Dist does the same in bounded memory for the
// millions of samples that packets leave. It is pure.
package stats
