// Package wire defines the headers of Weft's transport in UDP datagrams. Encode writes a header
// into the caller's buffer; Decode reads it back strictly.
//
// Every header opens with the same 16 bytes; the type says what follows. All numbers are
// big-endian.
//
//	 0  magic 'W'            1  version          2  type        3  flags
//	 4  connection (4)       8  packet sequence number, PSN (4): its own, or the next expected
//	12  check (2)           14  payload bytes that follow the header (2)
//
//	data (56 bytes)                            ack, nak (52 bytes)
//	16  message (4)         20  tag (4)        16  sent at, echoed (8)
//	24  offset in message (8)                  24  one-way delay (8, signed)
//	32  size of message (8)                    32  base rate (8)
//	40  sent at (8, signed)                    40  PSN that caused it (4)    44  path, echoed (2)
//	48  baseline (6)        54  path (2)       46  packets acknowledged (2)
//	                                           48  reserved, zero (4)
//
//	selective ack (56 bytes)                   probe (32 bytes)
//	16  due: sent at and baseline, echoed (8)  16  sent at (8, signed)
//	24  bytes received (8)                     24  baseline (6)              30  path (2)
//	32  bitmap (8)
//	40  base of bitmap (4)  44  PSN that caused it (4)
//	48  path, echoed (2)    50  packets out of order (2)
//	52  one-way delay in ns (4, signed)
//
// Instants and durations are picoseconds of lab time, rates bits per second, sizes bytes. PC4 (Fig.
// 4) needs sent at and baseline in data packets, and one-way delay and base rate in
// acknowledgements. The rest serves reliability and the choice of paths.
//
// Other types: a congestion notification (CNP, 32 bytes) has only the path of the packet that
// caused it, at 16. A pause (32 bytes) comes to a host from the emulated network, not from another
// host; it has the number of the host in place of the connection, the class in place of the
// payload, and two instants at 16 and 24. A notice (40 bytes) comes from a switch. Telemetry
// (HPCC), coordination tags (CCM) and requests (UEC) follow a data header whose flags say so;
// switches write the first two.
//
// A switch trims a packet with a request: it changes the type and cuts the payload off, but leaves
// its length in the header. The receiver answers with a rejection (32 bytes: due at 16, path at
// 24). A credit (32 bytes) has what its receiver has granted so far in place of the packet number.
// Types from 12 are free.
//
// Invariants: decoding what was encoded gives the same header. A header that is too short, of
// another version or type, with a wrong check or with a field out of range is refused with an error
// that says which. The package allocates nothing and keeps no state.
//
// Start reading at Data in data.go. layout.go has the same layout as data, for the Wireshark
// dissector.
package wire
