package transport_test

import (
	"errors"
	"fmt"
	"testing"

	"weft/transport"
	"weft/transport/cc/ccm"
	"weft/transport/wire"
)

// Every error of Receive has one of a few reasons.
func TestReasonsOfRefusals(t *testing.T) {
	for err, want := range map[error]transport.Refusal{
		wire.ErrCheck: transport.Unreadable, errors.New("anything else"): transport.Unreadable, transport.ErrUnknownConn: transport.Foreign,
		fmt.Errorf("from host 3: %w", transport.ErrForeign): transport.Foreign, transport.ErrProtocol: transport.Impossible, ccm.ErrReplay: transport.Impossible,
	} {
		if got := transport.RefusalOf(err); got != want || got.String() == "" {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if n := (transport.Refusals{1, 2, 3, 4}).Total(); n != 10 {
		t.Errorf("%d in all", n)
	}
}
