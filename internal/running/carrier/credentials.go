// Package carrier connects an owner and its runners over NATS: who logs in, and how.
package carrier

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mailboxd/internal/decisions/fleet"
)

// maxCredentials bounds a file of credentials.
const maxCredentials = 64 << 10

// Credentials let a process log in at the hub. A file of them has the seed of an nkey, lines such as
// "runner: gpu-1", and the certificate of the hub.
type Credentials struct {
	Seed   string
	Runner string // the name of the runner that they are for; "" for the owner
	Root   string // the part of the subjects that says which mailbox; "" if not known
	Hub    []byte // the only certificates to trust, in PEM; nil for those of the system
}

// ReadCredentials reads a file of credentials, which only its user may read.
func ReadCredentials(path string) (Credentials, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Credentials{}, fmt.Errorf("read credentials %s: other users may read the file (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	if info.Size() > maxCredentials {
		return Credentials{}, fmt.Errorf("read credentials %s: the file has more than %d bytes", path, maxCredentials)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	c, err := ParseCredentials(text)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials %s: %w", path, err)
	}
	return c, nil
}

// ParseCredentials reads the text of credentials.
func ParseCredentials(text []byte) (Credentials, error) {
	var c Credentials
	head, certificates := text, []byte(nil)
	if at := bytes.Index(text, []byte("-----BEGIN ")); at >= 0 {
		head, certificates = text[:at], text[at:]
	}
	for line := range strings.Lines(string(head)) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "SU") && c.Seed == "":
			c.Seed = line
		case key == "runner" && fleet.Name(value) == nil:
			c.Runner = value
		case key == "root" && fleet.Name(value) == nil:
			c.Root = value
		default:
			return Credentials{}, fmt.Errorf("unknown line that begins with %q; want a seed, runner or root, or a certificate",
				line[:min(len(line), 8)])
		}
	}
	if _, err := nkeys.FromSeed([]byte(c.Seed)); err != nil {
		return Credentials{}, errors.New("it has no seed of a user's nkey: a line that begins with SU; " +
			"copy the whole file that mailboxd-hub wrote")
	}
	if certificates = bytes.TrimSpace(certificates); len(certificates) > 0 {
		if block, _ := pem.Decode(certificates); block == nil || block.Type != "CERTIFICATE" {
			return Credentials{}, errors.New("its certificate is damaged; copy the whole file that mailboxd-hub wrote")
		}
		c.Hub = append(certificates, '\n')
	}
	return c, nil
}

// Text returns the text of credentials, which ParseCredentials reads.
func (c Credentials) Text() []byte {
	var w bytes.Buffer
	fmt.Fprintf(&w, "# The key of %s at the hub of mailboxd. Keep it secret.\n%s\n", c.role(), c.Seed)
	if c.Runner != "" {
		fmt.Fprintf(&w, "runner: %s\n", c.Runner)
	}
	if c.Root != "" {
		fmt.Fprintf(&w, "root: %s\n", c.Root)
	}
	w.Write(c.Hub)
	return w.Bytes()
}

func (c Credentials) role() string {
	if c.Runner == "" {
		return "the owner"
	}
	return "runner " + c.Runner
}

// Options returns the options of a connection that logs in with the credentials.
func (c Credentials) Options() ([]nats.Option, error) {
	key, err := nkeys.FromSeed([]byte(c.Seed))
	if err != nil {
		return nil, fmt.Errorf("use credentials of %s: %w", c.role(), err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("use credentials of %s: %w", c.role(), err)
	}
	options := []nats.Option{nats.Nkey(public, key.Sign)}
	if len(c.Hub) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(c.Hub) {
			return nil, fmt.Errorf("use credentials of %s: the certificate of the hub can't be read", c.role())
		}
		options = append(options, nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}))
	}
	return options, nil
}
