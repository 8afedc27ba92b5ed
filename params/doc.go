// Package params declares the keys of a lab file beside the code that they are about.
//
// A section is a struct whose method Keys lists its keys in the order of the reference: the name of each, the kind of value with its range and
// the field that it goes to, one sentence of what it means, and its default with where that is from. Package orchestrator/lab
// makes everything else of these lists: the reader with its positioned errors, explain, the JSON Schema, the reference and
// completion. Rules about several keys are ordinary code, in a method Rules beside Keys.
//
// Why lists that are bound to the fields, and no struct tags: docs/adr/0195.
package params
