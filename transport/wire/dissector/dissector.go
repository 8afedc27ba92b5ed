// Package dissector generates a Wireshark dissector for the headers of Weft's transport, in Lua,
// from the layout in package wire. `weft schema dissector` prints it.
package dissector

import (
	"fmt"
	"strings"

	"weft/transport/wire"
)

// Lua returns the text of the dissector.
func Lua() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `-- Wireshark dissector for Weft's transport, version %d: UDP port %d.
-- Made by "weft schema dissector" from the layout in transport/wire. Use it so:
--   wireshark -X lua_script:weft.lua capture.pcapng
local weft = Proto("weft", "Weft transport")
local f = weft.fields
`, wire.Version, wire.Port)
	b.WriteString(`f.version = ProtoField.uint8("weft.version", "Version")
f.type = ProtoField.uint8("weft.type", "Type", base.DEC, {`)
	for _, h := range wire.Layout() {
		fmt.Fprintf(&b, "[%d] = %q, ", h.Type, h.Label)
	}
	b.WriteString("})\nf.flags = ProtoField.uint8(\"weft.flags\", \"Flags\", base.HEX)\n")
	for _, p := range wire.Prefix() {
		declare(&b, "weft", p)
	}
	for _, h := range wire.Layout() {
		for _, p := range h.Flags {
			fmt.Fprintf(&b, "f.%s_%s = ProtoField.bool(\"weft.%s.%s\", %q, 8, nil, 0x%02x)\n", h.Name, p.Name, h.Name,
				p.Name, p.Label, uint8(p.Bit))
		}
		for _, p := range h.Fields {
			declare(&b, "weft."+h.Name, p)
		}
	}
	table := wire.TelemetryTable()
	b.WriteString(hopFields)
	for _, p := range wire.Shim() {
		declare(&b, "weft.tag", p)
	}
	for _, p := range wire.RequestLayout() {
		declare(&b, "weft.request", p)
	}
	for _, p := range wire.RateLayout() {
		declare(&b, "weft.rate", p)
	}
	b.WriteString(help)
	for _, h := range wire.Layout() {
		layout(&b, h)
	}
	fmt.Fprintf(&b, telemetry, table.Prefix, table.Record, table.Fields[0].Size, table.Fields[1].At,
		table.Fields[1].Size, table.SentUnit,
		table.Fields[2].At, table.Fields[2].Size, table.QueuedUnit)
	fmt.Fprintf(&b, shim, wire.CoordinationSize)
	for _, p := range wire.Shim() {
		fmt.Fprintf(&b, "  tag:add(f.tag_%s, buf(at + %d, %d))\n", p.Name, p.At, p.Size)
	}
	fmt.Fprintf(&b, "  return at + %d\nend\n", wire.CoordinationSize)
	fmt.Fprintf(&b, request, wire.RequestSize)
	for _, p := range wire.RequestLayout() {
		fmt.Fprintf(&b, "  request:add(f.request_%s, buf(at + %d, %d))\n", p.Name, p.At, p.Size)
	}
	fmt.Fprintf(&b, "  return at + %d\nend\n", wire.RequestSize)
	fmt.Fprintf(&b, rate, wire.RateSize)
	for _, p := range wire.RateLayout() {
		fmt.Fprintf(&b, "  rate:add(f.rate_%s, buf(at + %d, %d))\n", p.Name, p.At, p.Size)
	}
	fmt.Fprintf(&b, "  return at + %d\nend\n", wire.RateSize)
	fmt.Fprintf(&b, body, wire.Version, wire.Version, wire.Port)
	return []byte(b.String())
}

// identifier returns the name of a field in Lua.
func identifier(scope string, f wire.Field) string {
	return strings.ReplaceAll(strings.TrimPrefix(scope+"."+f.Name, "weft."), ".", "_")
}

// declare writes the declaration of a ProtoField, of the type that its size and kind ask for.
func declare(b *strings.Builder, scope string, f wire.Field) {
	kind, format := map[int]string{1: "uint8", 2: "uint16", 3: "uint24", 4: "uint32"}[f.Size], ""
	if kind == "" {
		kind = "uint64"
	}
	label := f.Label
	switch f.Kind {
	case wire.Instant, wire.Signed:
		kind = map[int]string{4: "int32", 8: "int64"}[f.Size]
	case wire.Bits:
		format = ", base.HEX"
	}
	if f.Kind == wire.Instant || f.Kind == wire.Span {
		label += " (ps)"
	}
	fmt.Fprintf(b, "f.%s = ProtoField.%s(\"%s.%s\", %q%s)\n", identifier(scope, f), kind, scope, f.Name, label, format)
}

// layout writes the function that shows the fields of a type of packet.
func layout(b *strings.Builder, h wire.Header) {
	fmt.Fprintf(b, "headers[%d] = { name = %q, size = %d, telemetry = %v, show = function(tree, buf, flags)\n",
		h.Type, h.Name, h.Size, hasTelemetry(h))
	for _, p := range h.Flags {
		fmt.Fprintf(b, "  flags:add(f.%s_%s, buf(3, 1))\n", h.Name, p.Name)
	}
	for _, p := range h.Fields {
		id := identifier("weft."+h.Name, p)
		switch {
		case p.Size > 4 && p.Size < 8:
			fmt.Fprintf(b, "  tree:add(f.%s, buf(%d, %d), number(buf, %d, %d))\n", id, p.At, p.Size, p.At, p.Size)
		default:
			fmt.Fprintf(b, "  tree:add(f.%s, buf(%d, %d))\n", id, p.At, p.Size)
		}
	}
	b.WriteString("end }\n")
}

// hasTelemetry reports whether packets with this header may carry telemetry records.
func hasTelemetry(h wire.Header) bool {
	for _, f := range h.Flags {
		if f.Bit == wire.Telemetry {
			return true
		}
	}
	return false
}

// Parts of the dissector. Those with verbs get sizes and positions.
const (
	hopFields = `f.hop_room = ProtoField.uint8("weft.hop.room", "Records that fit")
f.hop_count = ProtoField.uint8("weft.hop.count", "Records written")
f.hop_at = ProtoField.uint64("weft.hop.at", "At (ns)")
f.hop_sent = ProtoField.uint64("weft.hop.sent", "Sent before (bytes)")
f.hop_queued = ProtoField.uint64("weft.hop.queued", "Held behind it (bytes)")
`
	shim = `
-- shim shows the coordination tag behind a header.
local function shim(tree, buf, at)
  if buf:len() < at + %[1]d then return at end
  local tag = tree:add(buf(at, %[1]d), "Coordination tag")
`
	request = `
-- request shows the request for credit behind a header.
local function request(tree, buf, at)
  if buf:len() < at + %[1]d then return at end
  local request = tree:add(buf(at, %[1]d), "Request")
`
	rate = `
-- rate shows the base rate behind a header.
local function rate(tree, buf, at)
  if buf:len() < at + %[1]d then return at end
  local rate = tree:add(buf(at, %[1]d), "Base rate")
`
	help = `
-- number reads an unsigned number of 5 to 7 bytes.
local function number(buf, at, size)
  local high = UInt64(buf(at, size - 4):uint())
  return high:lshift(32) + UInt64(buf(at + size - 4, 4):uint())
end

local headers = {}
`
	telemetry = `
-- hops shows what switches wrote behind a header.
local function hops(tree, buf, at)
  if buf:len() < at + %[1]d then return at end
  local room, count = buf(at, 1):uint(), buf(at + 1, 1):uint()
  local size = %[1]d + room * %[2]d
  if buf:len() < at + size then return at end
  local all = tree:add(buf(at, size), "Telemetry of " .. count .. " switches")
  all:add(f.hop_room, buf(at, 1))
  all:add(f.hop_count, buf(at + 1, 1))
  for i = 0, math.min(count, room) - 1 do
    local r = at + %[1]d + i * %[2]d
    local one = all:add(buf(r, %[2]d), "Switch " .. i + 1)
    one:add(f.hop_at, buf(r, %[3]d), number(buf, r, %[3]d))
    one:add(f.hop_sent, buf(r + %[4]d, %[5]d), UInt64(buf(r + %[4]d, %[5]d):uint()) * UInt64(%[6]d))
    one:add(f.hop_queued, buf(r + %[7]d, %[8]d), UInt64(buf(r + %[7]d, %[8]d):uint()) * UInt64(%[9]d))
  end
  return at + size
end
`
	body = `
function weft.dissector(buf, pinfo, root)
  if buf:len() < 16 or buf(0, 1):uint() ~= 0x57 or buf(1, 1):uint() ~= %d then return 0 end
  local h = headers[buf(2, 1):uint()]
  if h == nil or buf:len() < h.size then return 0 end
  pinfo.cols.protocol = "Weft"
  local tree = root:add(weft, buf(0, h.size), "Weft " .. h.name .. ", version %d")
  tree:add(f.version, buf(1, 1))
  tree:add(f.type, buf(2, 1))
  local flags = tree:add(f.flags, buf(3, 1))
  tree:add(f.conn, buf(4, 4))
  if h.name ~= "credit" then tree:add(f.psn, buf(8, 4)) end
  tree:add(f.check, buf(12, 2))
  tree:add(f.payload, buf(14, 2))
  h.show(tree, buf, flags)
  local behind = h.size
  if h.telemetry and buf(3, 1):bitfield(4, 1) == 1 then behind = hops(tree, buf, behind) end
  if h.name == "data" and buf(3, 1):bitfield(1, 1) == 1 then behind = shim(tree, buf, behind) end
  if h.name == "sack" and buf(3, 1):bitfield(3, 1) == 1 then behind = rate(tree, buf, behind) end
  local requests = h.name == "data" or h.name == "trimmed" or h.name == "probe"
  if requests and buf(3, 1):bitfield(0, 1) == 1 then behind = request(tree, buf, behind) end
  local number = h.name == "credit" and " granted " or " psn "
  pinfo.cols.info = h.name .. " conn " .. buf(4, 4):uint() .. number .. buf(8, 4):uint()
  if behind < buf:len() then Dissector.get("data"):call(buf(behind):tvb(), pinfo, root) end
  return buf:len()
end

DissectorTable.get("udp.port"):add(%d, weft)
`
)
