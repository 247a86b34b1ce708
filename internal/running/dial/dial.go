// Package dial connects to the addresses of services, and to none that no service may have.
package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// CheckURL refuses the address of a service that is not https, unless it is on this machine, and one
// with a secret in it.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return errors.New("is not the address of a service, such as https://agents.example.com/run")
	case u.User != nil:
		return errors.New("has a user or a password: put the token in a variable, and name it as bearer_env")
	case u.Fragment != "":
		return errors.New("has a fragment, which is never sent: remove it")
	case u.Scheme == "http" && !IsLoopback(u.Hostname()):
		return fmt.Errorf("is not encrypted: write https; http is for this machine alone, such as http://127.0.0.1:8080")
	}
	return nil
}

// IsLoopback reports whether a host is this machine by its name.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// A BlockedError is an address that no service may have.
type BlockedError struct {
	address netip.Addr
	why     string
}

// Error returns the address and the reason.
func (e *BlockedError) Error() string { return fmt.Sprintf("%s is refused: %s", e.address, e.why) }

// translated are the prefixes of IPv6 addresses that end with an IPv4 address.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// metadata is an address at which Amazon's machines have their credentials, beside a link-local one.
var metadata = netip.MustParseAddr("fd00:ec2::254")

// checkAddress refuses the addresses of the link, at which machines in clouds have their credentials,
// and without TLS all but this machine's. The name is resolved by then, so that it can't be another
// one when it is resolved again.
func checkAddress(address string, plain bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := at.Addr().WithZone("").Unmap()
	if translated.Contains(addr) {
		text := addr.As16()
		addr = netip.AddrFrom4([4]byte(text[12:]))
	}
	switch {
	case addr.IsLinkLocalUnicast(), addr.IsLinkLocalMulticast(), addr.IsInterfaceLocalMulticast():
		return &BlockedError{addr, "it is a link-local address"}
	case addr == metadata:
		return &BlockedError{addr, "it is the metadata service of a cloud"}
	case addr.IsMulticast(), addr.IsUnspecified():
		return &BlockedError{addr, "it is not the address of one machine"}
	case plain && !addr.IsLoopback():
		return &BlockedError{addr, "without TLS, a service is on this machine"}
	}
	return nil
}

// Limits of a connection.
const (
	dialTimeout = 30 * time.Second
	maxHeader   = 64 << 10
)

// newDialer returns what connects to services, and to no address that none may have.
func newDialer(resolver *net.Resolver, plain bool) *net.Dialer {
	return &net.Dialer{
		Timeout: dialTimeout, Resolver: resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkAddress(address, plain)
		},
	}
}

// Client returns a client for one address. It uses no proxy, follows no redirect, and sends nothing
// twice by itself. Without TLS, plain, the address is on this machine. Nil means what the machine has.
func Client(resolver *net.Resolver, roots *x509.CertPool, plain bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: newDialer(resolver, plain).DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// SameOrigin reports whether two addresses have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// portOf returns the port of an address, also one that its scheme implies.
func portOf(u *url.URL) string {
	if u.Port() == "" {
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Port()
}
