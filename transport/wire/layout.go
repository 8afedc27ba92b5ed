package wire

import "fmt"

// This file has the layout of every header as data, for other programs that read packets of the
// transport: see package dissector. A test compares it with the encoders.

// Kind is the type of a field.
type Kind uint8

// Kinds of field. All are big-endian.
const (
	Number  Kind = iota // unsigned
	Signed              // two's complement
	Instant             // picoseconds of lab time, signed
	Span                // picoseconds, unsigned
	Bits                // a set, shown in hexadecimal
)

// Field is a part of a header.
type Field struct {
	Name  string // short, of letters and _
	Label string // for people
	At    int    // first byte
	Size  int    // bytes, 1 to 8
	Kind  Kind
}

// Flag is a bit of a header's flags.
type Flag struct {
	Bit   Flags
	Name  string
	Label string
}

// Header is the layout of one type of packet.
type Header struct {
	Type   Type
	Name   string // data, ack ...
	Label  string
	Size   int // bytes, without telemetry
	Flags  []Flag
	Fields []Field // its own fields, after the prefix
}

// Prefix returns the fields at the beginning of every header, after the flags.
func Prefix() []Field {
	return []Field{
		{"conn", "Connection", 4, 4, Number},
		{"psn", "Packet sequence number", 8, 4, Number},
		{"check", "Check", 12, 2, Bits},
		{"payload", "Payload bytes", 14, 2, Number},
	}
}

// Layout returns the layout of every type of packet.
func Layout() []Header {
	acked := []Field{
		{"echo", "Sent at, echoed", 16, 8, Instant},
		{"oneway", "One-way queueing delay", 24, 8, Instant},
		{"baserate", "Base rate (b/s)", 32, 8, Number},
		{"cause", "PSN that caused it", 40, 4, Number},
		{"path", "Path", 44, 2, Number},
		{"count", "Packets it stands for", 46, 2, Number},
	}
	data := []Field{
		{"message", "Message", 16, 4, Number},
		{"tag", "Tag", 20, 4, Number},
		{"offset", "Offset in the message", 24, 8, Number},
		{"size", "Size of the message", 32, 8, Number},
		{"sent", "Sent at", 40, 8, Instant},
		{"baseline", "Delay on an idle path", 48, 6, Span},
		{"path", "Path", 54, 2, Number},
	}
	ackFlags := []Flag{{CE, "ce", "Congestion experienced"}, {Telemetry, "telemetry", "Telemetry follows"}}
	return []Header{
		{TypeData, "data", "Data", int(DataSize), []Flag{
			{Announce, "announce", "First packet of a message"}, {Fin, "fin", "Nothing is queued behind it"},
			{Telemetry, "telemetry", "Telemetry follows"}, {AckNow, "acknow", "Asks for an acknowledgement at once"},
			{Coordinated, "coordinated", "A coordination tag follows"},
			{Trimmable, "trimmable", "A request follows; switches may trim the packet"},
		}, data},
		{TypeTrimmed, "trimmed", "Trimmed data", int(DataSize), []Flag{
			{Announce, "announce", "First packet of a message"}, {Fin, "fin", "Nothing is queued behind it"},
			{AckNow, "acknow", "Asks for an acknowledgement at once"},
			{LastHop, "lasthop", "The last switch trimmed it"},
			{Trimmable, "trimmable", "A request follows"},
		}, data},
		{TypeAck, "ack", "Acknowledgement", int(AckSize), ackFlags, acked},
		{TypeNak, "nak", "Go back", int(AckSize), ackFlags, acked},
		{TypeCNP, "cnp", "Congestion notification", CNPSize, nil, []Field{{"path", "Path", 16, 2, Number}}},
		{TypeSack, "sack", "Selective acknowledgement", int(SackSize), []Flag{
			{CE, "ce", "Congestion experienced"}, {Probed, "probed", "A probe caused it"},
			{Rated, "rated", "A base rate follows"}, {Telemetry, "telemetry", "Telemetry follows"},
		}, []Field{
			{"due", "Due on an idle path at", 16, 8, Instant},
			{"received", "Bytes received", 24, 8, Number},
			{"bitmap", "Bitmap", 32, 8, Bits},
			{"base", "Base of the bitmap", 40, 4, Number},
			{"cause", "PSN that caused it", 44, 4, Number},
			{"path", "Path", 48, 2, Number},
			{"disorder", "Packets out of order", 50, 2, Number},
			{"onewayns", "One-way queueing delay (ns)", 52, 4, Signed},
		}},
		{TypeProbe, "probe", "Probe", ProbeSize, []Flag{{Trimmable, "trimmable", "A request follows"}}, []Field{
			{"sent", "Sent at", 16, 8, Instant},
			{"baseline", "Delay on an idle path", 24, 6, Span},
			{"path", "Path", 30, 2, Number},
		}},
		{TypeReject, "reject", "Rejection of a trimmed packet", RejectSize, []Flag{
			{CE, "ce", "Congestion experienced"}, {LastHop, "lasthop", "The last switch trimmed it"},
		}, []Field{
			{"due", "Due on an idle path at", 16, 8, Instant},
			{"path", "Path", 24, 2, Number},
		}},
		{TypeCredit, "credit", "Credit", CreditSize, nil, []Field{
			{"granted", "Granted since the connection began" + creditUnits(), 8, 4, Number}, // instead of a PSN
		}},
		{TypePause, "pause", "NIC paused or resumed", PauseSize, []Flag{{held, "held", "Held back"}}, []Field{
			{"at", "At", 16, 8, Instant},
			{"clears", "NIC is empty at", 24, 8, Instant},
		}},
		{TypeNotice, "notice", "Notification of a switch", NoticeSize, nil, []Field{
			{"kind", "Notification type", 16, 1, Number},
			{"last", "No path is light", 17, 1, Number},
			{"srcport", "Source port of the flow", 18, 2, Number},
			{"src", "Source of the flow", 20, 4, Number},
			{"dst", "Destination of the flow", 24, 4, Number},
			{"switch", "Switch", 28, 4, Number},
			{"at", "At", 32, 8, Instant},
		}},
	}
}

// RequestLayout returns the layout of a request, which follows the header of a data packet, trimmed
// or not, or of a probe, with the flag Trimmable.
func RequestLayout() []Field {
	return []Field{{"target", "Credit target" + creditUnits(), 0, RequestSize, Number}}
}

// creditUnits ends the labels of credits.
func creditUnits() string { return fmt.Sprintf(" (units of %d bytes)", int64(CreditUnit)) }

// RateLayout returns the layout of a base rate, which follows the header of a selective
// acknowledgement with the flag Rated.
func RateLayout() []Field { return []Field{{"base", "Base rate (b/s)", 0, int(RateSize), Number}} }

// Shim returns the layout of a coordination tag, which follows the header of a data packet with the
// flag Coordinated.
func Shim() []Field {
	return []Field{{"cc", "CC indicator", 0, 1, Number}, {"ar", "AR indicator", 2, 2, Number}}
}

// Table is the layout of telemetry, which follows a header with the flag Telemetry: a byte with the
// number of records that fit, a byte with the number written, padding up to Prefix bytes, and the
// records.
type Table struct {
	Prefix, Record int // bytes
	Fields         []Field
	AtUnit         int // unit of instants in picoseconds
	SentUnit       int // unit of bytes sent in bytes
	QueuedUnit     int // unit of queues in bytes
}

// TelemetryTable returns the layout of telemetry.
func TelemetryTable() Table {
	return Table{
		Prefix: telemetryPrefix, Record: recordSize,
		AtUnit: int(atUnit), SentUnit: sentUnit, QueuedUnit: queuedUnit,
		Fields: []Field{
			{"at", "At", 0, 5, Number},
			{"sent", "Sent before", 5, 4, Number},
			{"queued", "Held behind it", 9, 3, Number},
		},
	}
}
