// Package params declares the keys of a lab file, each once, beside the code that the key is about.
//
// A section is a struct with a method Keys. It lists the keys in the order of the reference:
//
//	func (l *Link) Keys() []params.Key {
//		return []params.Key{
//			params.New("delay", params.Time(&l.Delay, 0, units.Second), "One-way propagation.").
//				Default("1us", "PC4 paper, section IV"),
//		}
//	}
//
// A Key has a name, a Value (the kind of value, its range and the field that it is stored in), a
// sentence for the reference, and a default with its source. Package orchestrator/lab derives
// everything else from these lists: the reader with its positioned errors, explain, the JSON
// Schema, the reference and completion. In goes the text of a value; out comes the typed value in
// its field, or an error that says what was expected.
//
// The one idea is that a key is bound to its field. A call of Keys makes a list for one struct, so
// a later key can depend on the values of earlier ones: defaults that follow (Following), ranges
// that follow (Lazy), and keys that only apply to some values (Only). Hence the order of the list
// is the order of reading.
//
// These must hold. A default is a text like any other and is within its range. Set stores nothing
// when it returns an error, except in a Maybe. Values that did not come from a text are held to the
// same ranges by Check. Rules that concern several keys are ordinary code, in a method Rules beside
// Keys.
//
// Start reading at Key and New in key.go, then Value and Of in value.go. The other files are kinds
// of values. Why lists bound to fields and not struct tags: docs/adr/0195.
package params
