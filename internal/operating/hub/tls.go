package hub

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateYears is how long a certificate of init lasts. Owner and runners trust this one alone, so that
// another one means to copy credentials again.
const certificateYears = 20

// makeCertificate makes a certificate for hosts, signed by its own key.
func makeCertificate(dir string, hosts []string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the hub: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the hub: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "mailboxd-hub"},
		NotBefore: now.Add(-48 * time.Hour), // the clock of a runner may be behind
		NotAfter:  now.AddDate(certificateYears, 0, 0),
		KeyUsage:  x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the hub: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make the key of the hub: %w", err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	err = os.MkdirAll(filepath.Join(dir, filepath.Dir(keyFile)), 0o700)
	if err == nil {
		err = writeFile(filepath.Join(dir, keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), false)
	}
	if err == nil {
		err = writeFile(filepath.Join(dir, certFile), certificate, false)
	}
	if err != nil {
		return nil, fmt.Errorf("write the certificate of the hub: %w", err)
	}
	return certificate, nil
}

// tlsConfig is that of the server; nil without a certificate.
func tlsConfig(dir string) (*tls.Config, error) {
	if !hasTLS(dir) {
		return nil, nil
	}
	if err := privateFile(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read certificate and key of the hub in %s: %w", filepath.Join(dir, "tls"), err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}
