// Package plan says in words what running or deploying a lab makes on the machine: the operations in order, what each waits for, how
// each is undone, what is there once it is done, and what they use in all. In comes the value that the runtimes launch
// (emulate.Setup); out comes a Plan, which prints as text and as JSON. Sizes are bytes.
//
// Nothing here decides anything. Whatever is in a plan is read from the setup, or is a function of it that the code which acts
// uses too. Op.Makes has one line for each property, and a test of package deploy holds what is there in labs that are up
// against these lines.
package plan
