// Package sealing has the keys that seal the events of a mailbox, and gives each new seal to the anchor.
package sealing

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/seal"
	"mailboxd/internal/testtools/fault"
)

// Options are where the keys are, and who signs.
type Options struct {
	State         string   // the state directory
	Command       []string // signs its standard input; none: the file seal.key
	PublicKey     string   // the file with the public key of the command
	AnchorFile    string   // each new seal is appended to it; "" for none
	AnchorCommand []string // gets each new seal as its standard input; none: no command
}

// The files of the directory keys of the state directory.
const (
	dirName  = "keys"
	keyName  = "seal.key"   // the private key
	listName = "keys.jsonl" // all public keys, the first one first
	headName = "head.json"  // the last seal that the anchor got
)

func (o Options) path(name string) string { return filepath.Join(o.State, dirName, name) }

// write puts a file in place durably, in a directory that only the user may enter.
func (o Options) write(name string, text []byte) error {
	if err := os.Mkdir(filepath.Join(o.State, dirName), 0o700); err == nil {
		state, err := os.Open(o.State)
		if err == nil {
			err = errors.Join(state.Sync(), state.Close())
		}
		if err != nil {
			return err
		}
	}
	if err := dirtree.WriteFile(o.path(name), text); err != nil {
		return err
	}
	fault.SyncedAt("key-file-synced", o.path(name))
	return nil
}

// List returns the keys that this mailbox had, the first one first; none when there is no file.
func (o Options) List() ([]seal.Successor, error) {
	list, err := readLines[seal.Successor](o.path(listName))
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return list, nil
}

// Trusted returns the keys that the first one signed, directly or not, and those that the owner made when a key was lost.
func (o Options) Trusted() (seal.Keys, error) {
	list, err := o.List()
	roots := seal.Keys{}
	for _, k := range list {
		if k.Replaces == "" && len(k.Public) == ed25519.PublicKeySize {
			roots[seal.KeyID(k.Public)] = k.Public
		}
	}
	return roots.Follow(list), err
}

// Signer returns what signs now, or why nothing is signed.
func (o Options) Signer() (seal.Signer, error) {
	by, err := o.signer()
	if err != nil {
		return nil, err
	}
	trusted, err := o.Trusted()
	if err == nil && trusted[by.Key()] == nil {
		err = fmt.Errorf("key %s is not in %s; put the earlier key back, or run: mailboxd keys rotate", by.Key(), o.path(listName))
	}
	return by, err
}

func (o Options) signer() (seal.Signer, error) {
	if len(o.Command) > 0 {
		public, err := readPublic(o.PublicKey)
		return command{o.Command, public}, err
	}
	return readKey(o.path(keyName))
}

// readKey reads a private key, which nobody else may read.
func readKey(path string) (seal.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w; put it back from a backup, or run: mailboxd keys rotate --lost", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may use the key %s, whose mode is %04o; run: chmod 600 %[1]s", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key, err := seal.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	return key, nil
}

// readPublic reads a file with one public key.
func readPublic(path string) (public ed25519.PublicKey, err error) {
	keys, err := ReadKeys(path)
	if err == nil && len(keys) != 1 {
		err = fmt.Errorf("%s has several public keys; leave the one of the signer", path)
	}
	for _, public = range keys {
	}
	return public, err
}

// ReadKeys reads a file with public keys.
func ReadKeys(path string) (seal.Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read public keys: %w", err)
	}
	keys, err := seal.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("read public keys %s: %w", path, err)
	}
	return keys, nil
}

// prepare makes the first key of a mailbox, or finishes making it. Where there was a key, or a seal, it makes none.
func (o Options) prepare(head seal.Seal) error {
	list, err := o.List()
	if err != nil || len(list) > 0 {
		return err
	}
	_, missing := os.Stat(o.path(keyName))
	if len(o.Command) == 0 && errors.Is(missing, fs.ErrNotExist) && head.Key == "" {
		_, text, err := newKey()
		if err == nil {
			err = o.write(keyName, text)
		}
		if err != nil {
			return err
		}
	}
	by, err := o.signer()
	if err != nil {
		return err
	}
	if head.Key != "" && head.Key != by.Key() {
		return fmt.Errorf("key %s made the last seal, and %s is another one; put the earlier one back", head.Key, by.Key())
	}
	return o.add(nil, seal.Successor{Key: by.Key(), Public: publicOf(by), Time: time.Now().UnixMicro()})
}

// newKey returns a key, and the text of its file.
func newKey() (seal.PrivateKey, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	text, err := seal.PrivateKey(private).Encode()
	return seal.PrivateKey(private), text, err
}

func publicOf(by seal.Signer) ed25519.PublicKey {
	switch by := by.(type) {
	case seal.PrivateKey:
		return by.Public()
	case command:
		return by.public
	}
	return nil
}

// add appends a key to the list.
func (o Options) add(list []seal.Successor, s seal.Successor) error {
	var text bytes.Buffer
	for _, k := range append(list, s) {
		line, err := json.Marshal(k)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	return o.write(listName, text.Bytes())
}

// Rotate makes a key that signs from now on, and has the old one sign it. With the file of a public key, that one is the
// new key, and the old one signs until seal.command has the new one. With lost, nothing signs the new key.
func (o Options) Rotate(to string, lost bool) (s seal.Successor, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rotate key: %w", err)
		}
	}()
	list, err := o.List()
	if err != nil {
		return s, err
	}
	old, missing := o.Signer()
	switch {
	case lost && missing == nil:
		return s, fmt.Errorf("key %s is there; leave out --lost, so that it signs the new one", old.Key())
	case !lost && missing != nil:
		return s, missing
	case len(o.Command) > 0 && to == "":
		return s, errors.New("seal.command signs; name its new public key with --to")
	}
	var text []byte
	if to != "" {
		s.Public, err = readPublic(to)
	} else {
		var private seal.PrivateKey
		if private, text, err = newKey(); err == nil {
			s.Public = private.Public()
		}
	}
	if err != nil {
		return s, err
	}
	s.Key, s.Time = seal.KeyID(s.Public), time.Now().UnixMicro()
	if !lost {
		s.Replaces = old.Key()
		if s.Signature, err = old.Sign(s.Text()); err != nil {
			return s, err
		}
	}
	if err := o.add(list, s); err != nil || text == nil {
		return s, err
	}
	return s, o.write(keyName, text) // after the list: a key that isn't in the list signs nothing
}

// Problem returns why new events of a ledger are not sealed. A mailbox that no daemon sealed has none: serve makes its key.
func (o Options) Problem(sealed bool) error {
	list, err := o.List()
	if err == nil && len(list) == 0 && !sealed {
		return nil
	}
	_, err = o.Signer()
	return err
}
