package collect

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"time"
)

// Life of the keys of a round. Our own choice: a longer sweep is resumed, which makes new ones.
const (
	life = 30 * 24 * time.Hour
	skew = 24 * time.Hour // by which the clock of a machine may be late
)

// collectorName is the name in the certificate of a collector, whatever its address.
const collectorName = "collector.weft.invalid"

// makeKeys returns the keys of a collector and of the tasks of its round, each with its certificate
// and that of the authority of both, as PEM. The key of the authority is not kept.
func makeKeys(now time.Time) (collector, tasks []byte, err error) {
	template := func(name string) *x509.Certificate {
		serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // it never fails
		return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-skew), NotAfter: now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature}
	}
	ca := template("weft sweep")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.MaxPathLenZero = true
	public, authority, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	root, err := x509.CreateCertificate(nil, ca, ca, public, authority)
	if err != nil {
		return nil, nil, err
	}
	one := func(c *x509.Certificate, use x509.ExtKeyUsage) []byte {
		c.ExtKeyUsage = []x509.ExtKeyUsage{use}
		public, key, e1 := ed25519.GenerateKey(nil)
		cert, e2 := x509.CreateCertificate(nil, c, ca, public, authority)
		private, e3 := x509.MarshalPKCS8PrivateKey(key)
		err = errors.Join(err, e1, e2, e3)
		var out bytes.Buffer
		for _, b := range []pem.Block{{Type: "PRIVATE KEY", Bytes: private}, {Type: "CERTIFICATE", Bytes: cert},
			{Type: "CERTIFICATE", Bytes: root}} {
			err = errors.Join(err, pem.Encode(&out, &b))
		}
		return out.Bytes()
	}
	c := template(collectorName)
	c.DNSNames = []string{collectorName}
	return one(c, x509.ExtKeyUsageServerAuth), one(template("shard"), x509.ExtKeyUsageClientAuth), err
}

// config returns the settings of TLS for the owner of keys. Each end accepts a certificate of the
// same authority, for the use of the other end. Whether keys are too old is decided by the clock of
// the collector, whose machine made them: that of a task may be wrong.
func config(keys []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(keys, keys)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(pair.Certificate[len(pair.Certificate)-1])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	var now func() time.Time // nil: the clock of the machine
	if slices.Contains(pair.Leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		now = func() time.Time { return root.NotBefore.Add(skew) }
	}
	return &tls.Config{Time: now, MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool,
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: collectorName,
		SessionTicketsDisabled: true}, nil
}
