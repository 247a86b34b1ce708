// Package hub is the server between an owner and its runners: NATS with JetStream in this process, an nkey
// for each user, and TLS unless it listens on the loopback interface. cmd/mailboxd-hub has its commands;
// mailboxd itself never has the server.
//
// A hub has a directory:
//
//	hub.json            its root, address, and the public key of the owner
//	hub.nk              the credentials of the owner, to be copied there
//	tls/                its certificate and key, unless it listens on the loopback interface
//	runners/NAME        the public key of each enrolled runner
//	credentials/NAME.nk the credentials of a runner, to be copied there
//	jetstream/          streams and buckets
package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nkeys"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/dial"
)

// DefaultRoot is the root of a hub whose init names none.
const DefaultRoot = "mailboxd"

// names of the files of a hub.
const (
	settingsFile   = "hub.json"
	ownerFile      = "hub.nk"
	certFile       = "tls/cert.pem"
	keyFile        = "tls/key.pem"
	runnersDir     = "runners"
	credentialsDir = "credentials"
	jetstreamDir   = "jetstream"
)

// settings are what init decided.
type settings struct {
	Root   string   `json:"root"`
	Listen string   `json:"listen"`
	Hosts  []string `json:"hosts,omitempty"` // of the certificate; the first is that of the URL
	Owner  string   `json:"owner"`           // public key
}

// A Plan says how to make a hub.
type Plan struct {
	Dir    string
	Root   string   // the part of the subjects that says which mailbox
	Listen string   // address and port
	Hosts  []string // by which owner and runners reach it; none for the name of the machine
	TLS    bool     // also on the loopback interface
}

// Made is a new hub.
type Made struct {
	URL         string
	Credentials string // the file of the owner's
}

// DefaultDir is the directory of a hub that names none: $XDG_DATA_HOME/mailboxd/hub.
func DefaultDir() (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the directory of the hub: %w; set --dir", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "mailboxd", "hub"), nil
}

// Init makes the directory of a hub, its keys, and its certificate.
func Init(p Plan) (Made, error) {
	if fleet.Name(p.Root) != nil {
		return Made{}, fmt.Errorf("root %q: name it by %s", p.Root, fleet.NameRule)
	}
	loopback, err := checkListen(p.Listen)
	if err != nil {
		return Made{}, err
	}
	if _, err := os.Lstat(filepath.Join(p.Dir, settingsFile)); err == nil {
		return Made{}, fmt.Errorf("%s has a hub already; start it with mailboxd-hub serve, or set --dir", p.Dir)
	}
	for _, dir := range []string{"", runnersDir, credentialsDir, jetstreamDir} {
		if err := os.MkdirAll(filepath.Join(p.Dir, dir), 0o700); err != nil {
			return Made{}, fmt.Errorf("make the directory of the hub: %w", err)
		}
	}
	set := settings{Root: p.Root, Listen: p.Listen, Hosts: p.Hosts}
	if len(set.Hosts) == 0 {
		set.Hosts = defaultHosts(p.Listen)
	}
	var certificate []byte
	if !loopback || p.TLS {
		if certificate, err = makeCertificate(p.Dir, set.Hosts); err != nil {
			return Made{}, err
		}
	}
	owner, public, err := newKey()
	if err != nil {
		return Made{}, err
	}
	set.Owner = public
	credentials := carrier.Credentials{Seed: owner, Root: p.Root, Hub: certificate}
	file := filepath.Join(p.Dir, ownerFile)
	if err := writeFile(file, credentials.Text(), false); err != nil {
		return Made{}, fmt.Errorf("write the credentials of the owner: %w", err)
	}
	if err := writeSettings(p.Dir, set); err != nil { // the last one: with it the hub is made
		return Made{}, err
	}
	return Made{URL: set.url(p.Dir), Credentials: file}, nil
}

// checkListen says whether an address is of the loopback interface alone.
func checkListen(listen string) (loopback bool, err error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("listen %q: want an address and a port, such as 0.0.0.0:4222", listen)
	}
	if _, err := net.ResolveTCPAddr("tcp", listen); err != nil {
		return false, fmt.Errorf("listen %q: %w", listen, err)
	}
	return dial.IsLoopback(host), nil
}

// defaultHosts are the hosts of a hub whose user names none: its address, or the name of the machine.
func defaultHosts(listen string) []string {
	host, _, _ := net.SplitHostPort(listen)
	if addr, err := netip.ParseAddr(host); err == nil && !addr.IsUnspecified() || host != "" && err != nil {
		return []string{host}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return []string{name, "localhost"}
	}
	return []string{"localhost"}
}

// url is what owner and runners connect to.
func (s settings) url(dir string) string {
	_, port, _ := net.SplitHostPort(s.Listen)
	scheme := "nats"
	if hasTLS(dir) {
		scheme = "tls"
	}
	return scheme + "://" + net.JoinHostPort(s.Hosts[0], port)
}

// hasTLS says whether a hub has a certificate.
func hasTLS(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, certFile))
	return err == nil
}

// newKey makes an nkey of a user.
func newKey() (seed, public string, err error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	text, err := key.Seed()
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return string(text), public, nil
}

// readSettings reads the settings of a hub, whose directory no other user may change.
func readSettings(dir string) (settings, error) {
	var set settings
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		return set, fmt.Errorf("use the hub %s: other users may write to it (mode %04o); run: chmod go-w %s", dir, info.Mode().Perm(), dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return set, fmt.Errorf("%s has no hub; make one with mailboxd-hub init, or set --dir", dir)
	}
	if err != nil {
		return set, fmt.Errorf("read the settings of the hub: %w", err)
	}
	if err := json.Unmarshal(text, &set, json.RejectUnknownMembers(true)); err != nil {
		return set, fmt.Errorf("read %s: %w", filepath.Join(dir, settingsFile), err)
	}
	_, err = checkListen(set.Listen)
	if err != nil || fleet.Name(set.Root) != nil || len(set.Hosts) == 0 || !nkeys.IsValidPublicUserKey(set.Owner) {
		return set, fmt.Errorf("read %s: root, listen, hosts or owner is missing or wrong; restore the file from a backup",
			filepath.Join(dir, settingsFile))
	}
	return set, nil
}

func writeSettings(dir string, set settings) error {
	text, err := json.Marshal(set, jsontext.WithIndent("  "))
	if err == nil {
		err = writeFile(filepath.Join(dir, settingsFile), append(text, '\n'), false)
	}
	if err != nil {
		return fmt.Errorf("write the settings of the hub: %w", err)
	}
	return nil
}

// writeFile writes a file of its user whole, or not at all, and durable. With fresh, it is an error if the
// file is there.
func writeFile(path string, text []byte, fresh bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	switch {
	case err != nil:
	case fresh:
		err = os.Link(tmp.Name(), path) // fails if it is there
	default:
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil || fresh {
		_ = os.Remove(tmp.Name())
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// certificateOf is the certificate of a hub; nil for none.
func certificateOf(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, certFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the hub: %w", err)
	}
	return bytes.TrimSpace(text), nil
}

// privateFile refuses a file that other users may read.
func privateFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("check %s: %w", filepath.Base(path), err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s: other users may read the file (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	return nil
}

// hidden says whether a file of a directory is one that is being written.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }
