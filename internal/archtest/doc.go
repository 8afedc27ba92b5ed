// Package archtest holds, as tests, the rules about Weft's source that a compiler does not: which
// package may use which, that the core is pure, who may read a clock, end the process or start a
// program, and that every package says what it is. Each failure says why the rule exists. There is
// no code in it but the tests.
package archtest
