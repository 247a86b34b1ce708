package dial

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"time"
)

// probeTimeout limits a probe.
const probeTimeout = 10 * time.Second

// Probe connects to a service, verifies its certificate, and sends it no request. It returns the
// address of the connection.
func Probe(ctx context.Context, address string) (string, error) {
	if err := CheckURL(address); err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dialer := newDialer(nil, u.Scheme == "http")
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), portOf(u)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if u.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
		err = secure.HandshakeContext(ctx)
	}
	return conn.RemoteAddr().String(), err
}
