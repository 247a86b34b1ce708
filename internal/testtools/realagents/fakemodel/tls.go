package fakemodel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// StartTLS starts a server on an unused port of an address, with a certificate of an authority of
// its own. Its clients trust it by Authority. Close stops it.
func StartTLS(address string) (*Server, error) {
	authority, certificate, err := certify(net.ParseIP(address))
	if err != nil {
		return nil, err
	}
	plain, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	s := serve(tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	s.scheme = "https"
	s.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})
	return s, nil
}

// Authority returns the certificate of the authority that clients have to trust, in PEM; nil for a
// server without TLS.
func (s *Server) Authority() []byte { return s.authority }

// certify makes an authority, and its certificate of an address. Codex refuses an authority that is
// the server, too.
func certify(address net.IP) (authority []byte, _ tls.Certificate, err error) {
	above, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	root := template("fake authority")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	leaf := template("fake model server")
	leaf.IPAddresses, leaf.KeyUsage, leaf.ExtKeyUsage = []net.IP{address}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if authority, err = x509.CreateCertificate(rand.Reader, root, root, above.Public(), above); err != nil {
		return nil, tls.Certificate{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), above)
	return authority, tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}
