// Package wire is how Weft's transport looks on a UDP datagram: the headers of data packets and of
// acknowledgements, written into the caller's buffer and read back strictly.
//
// Every header opens with the same 16 bytes; the type says what follows. All numbers are big-endian.
//
//	 0  magic 'W'            1  version          2  type        3  flags
//	 4  connection (4)       8  packet sequence number (4): of this packet, or the next one expected
//	12  check (2)           14  payload bytes that follow the header (2)
//
//	data (56 bytes)                            ack, nak (52 bytes)
//	16  message (4)         20  tag (4)        16  sent at, echoed (8)
//	24  offset in message (8)                  24  one-way delay (8, signed)
//	32  size of message (8)                    32  base rate (8)
//	40  sent at (8, signed)                    40  PSN that caused it (4)    44  path, echoed (2)
//	48  baseline (6)        54  path (2)       46  packets it stands for (2) 48  reserved, zero (4)
//
//	selective ack (56 bytes)                   probe (32 bytes)
//	16  due: sent at and baseline, echoed (8)  16  sent at (8, signed)
//	24  bytes received (8)                     24  baseline (6)              30  path (2)
//	32  bitmap (8)
//	40  base of bitmap (4)  44  PSN that caused it (4)
//	48  path, echoed (2)    50  packets out of order (2)
//	52  one-way delay in ns (4, signed)
//
// Instants and spans are in picoseconds of lab time, rates in bits per second, sizes in bytes. PC4 (Fig. 4) asks
// for sent at and baseline in data and for one-way delay and base rate in acknowledgements; the rest is
// what reliability and a choice of paths need. A congestion notification (CNP, 32 bytes) has the path of the packet that
// caused it at 16 and nothing else of its own. Telemetry (HPCC) lies behind a header that a flag says has it. A pause (32
// bytes) is told to a host by the emulated network, not by another host; it has the number of the host in place of a
// connection, the class in place of a payload, and two instants at 16 and 24. A notice (40 bytes) is a switch's. Types 9 and up are free.
//
// The package allocates nothing and keeps nothing. A header that is too short, of another version or type,
// with a wrong check or with a field out of range is refused with an error that says which.
package wire
