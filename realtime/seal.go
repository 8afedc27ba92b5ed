package realtime

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

// A stream to a part on another machine is a TCP connection. The agents of both machines have set
// it up with TLS and derived keys from that; what crosses is sealed here, in the process of the
// network, because a relay costs two more wake-ups for each crossing.
//
// A stream is records: 4 bytes with the length of what follows, big endian, and that many bytes of
// AES-256-GCM. The length is authenticated, too. The nonce is the number of the record in its
// direction, so a record that is missing, repeated or out of order does not open.

// Keys are those of a stream between machines, 32 bytes each. The zero value is for a stream within
// a machine, which is not sealed.
type Keys struct{ Send, Receive []byte }

const (
	sealHeader = 4        // bytes
	maxSealed  = 64 << 10 // bytes of a record that are sealed; our own choice
)

// seal seals and opens the records of a stream.
type seal struct {
	send, receive direction
	clear         []byte // what is to be sealed
	raw           []byte // the beginning of a record that came
}

// direction is one direction of a stream.
type direction struct {
	aead    cipher.AEAD
	records uint64 // so far
	nonce   [12]byte
}

// newSeal returns the seal of a stream; nil: it has none.
func newSeal(k Keys) (*seal, error) {
	if k.Send == nil && k.Receive == nil {
		return nil, nil
	}
	var s seal
	for d, key := range map[*direction][]byte{&s.send: k.Send, &s.receive: k.Receive} {
		if len(key) != 32 {
			return nil, fmt.Errorf("a key of %d bytes; expected 32", len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if d.aead, err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// next returns the nonce of the next record.
func (d *direction) next() []byte {
	binary.BigEndian.PutUint64(d.nonce[4:], d.records)
	d.records++
	return d.nonce[:]
}

// close appends records with what is to be sealed to out.
func (s *seal) close(out []byte) []byte {
	for left := s.clear; len(left) > 0; {
		n := min(len(left), maxSealed)
		at := len(out)
		out = binary.BigEndian.AppendUint32(out, uint32(n+s.send.aead.Overhead()))
		out = s.send.aead.Seal(out, s.send.next(), left[:n], out[at:])
		left = left[n:]
	}
	return out
}

var errSeal = errors.New("a record is not what the other end sealed")

// open appends what whole records contain to in, and keeps the rest.
func (s *seal) open(in []byte) ([]byte, error) {
	left := s.raw
	for len(left) >= sealHeader {
		n := int(binary.BigEndian.Uint32(left))
		if n > maxSealed+s.receive.aead.Overhead() {
			return in, errSeal
		}
		if len(left) < sealHeader+n {
			break
		}
		opened, err := s.receive.aead.Open(in, s.receive.next(), left[sealHeader:sealHeader+n], left[:sealHeader])
		if err != nil {
			return in, errSeal
		}
		in, left = opened, left[sealHeader+n:]
	}
	s.raw = s.raw[:copy(s.raw, left)]
	return in, nil
}
