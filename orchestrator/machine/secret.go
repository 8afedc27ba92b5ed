package machine

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"time"
)

// minSecret is the length of the shortest secret in bytes: one that is made at random and written
// in hexadecimal has 128 bits.
const minSecret = 32

// ReadSecret reads the secret in a file, which other users must not be able to read.
func ReadSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no file %s; openssl rand -hex 32 > %[1]s && chmod 600 %[1]s makes a secret", path)
	}
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by other users; chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minSecret {
		return "", fmt.Errorf("%s has %d characters; expected at least %d, such as those of openssl rand -hex 32", path,
			len(secret), minSecret)
	}
	return secret, nil
}

// errStranger ends a connection to a peer without the secret.
var errStranger = errors.New("the other end does not have the secret of this one")

// secure returns the settings of TLS for both ends of a connection. The key of both follows from
// the secret, and each end accepts no other.
func secure(secret string) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "weft machine", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weft machine"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<36, 0), // the secret ends the trust, not a date
	}
	public := key.Public().(ed25519.PublicKey)
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		// there is no chain and no name to check, but one key
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errStranger
			}
			theirs, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !theirs.Equal(public) {
				return errStranger
			}
			return nil
		},
	}, nil
}
