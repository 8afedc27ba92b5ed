//go:build wasip1

package cc

import "unsafe"

//go:wasmexport weft_cc
func exportCC() uint32 {
	describe()
	return address(unsafe.Pointer(&about))
}

//go:wasmexport weft_event
func exportEvent(event int32) { handle(event) }
