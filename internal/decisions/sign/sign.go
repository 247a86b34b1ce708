// Package sign says which messages of Clutch need a signature, and verifies and makes signatures (CLUTCH-63). It
// reads no file and no clock.
package sign

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/stores/seal"
)

// Scheme is the only supported scheme of signatures.
const Scheme = "ed25519"

// A Key is a public key of a sender.
type Key struct {
	ID        string // security.auth.kid of the messages that it verifies
	Public    ed25519.PublicKey
	NotBefore time.Time // zero: always valid until NotAfter
	NotAfter  time.Time // zero: without an end
}

// ParsePublic reads a public key: PEM, or base64 of its 32 bytes or of the content of the PEM.
func ParsePublic(text string) (ed25519.PublicKey, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("required, a public key in PEM or base64")
	}
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) == ed25519.PublicKeySize {
		return raw, nil
	}
	if !strings.HasPrefix(text, "-----") {
		text = "-----BEGIN PUBLIC KEY-----\n" + text + "\n-----END PUBLIC KEY-----\n"
	}
	keys, err := seal.ParseKeys([]byte(text))
	switch {
	case err != nil:
		return nil, errors.New("is no ed25519 public key in PEM or base64; print one with: openssl pkey -in KEY -pubout")
	case len(keys) != 1:
		return nil, errors.New("has several keys; give each an entry with a kid of its own")
	}
	var public ed25519.PublicKey
	for _, public = range keys {
	}
	return public, nil
}

// A Rule says which messages must be signed: those of a sender, or those of a domain.
type Rule struct {
	Sender  string
	Domain  string
	Types   []string // of Clutch; none: all
	Require bool     // refuse a message without a signature, too
}

// covers reports whether the rule is about a message. Other dialects have none of the types, so that a rule about a sender
// covers all messages of that sender in them.
func (r Rule) covers(m envelope.Message) bool {
	if m.Clutch == nil {
		return r.Sender != "" && r.Sender == m.From
	}
	typed := len(r.Types) == 0 || slices.Contains(r.Types, m.Clutch.Type)
	if r.Sender != "" {
		return typed && r.Sender == m.From
	}
	return typed && r.Domain != "" && r.Domain == m.Clutch.Domain
}

// Rules are the keys of senders and the rules in force. The zero value needs no signature.
type Rules struct {
	Keys  map[string][]Key // by sender
	Rules []Rule
}

// None reports whether there is no key and no rule, so that Check never refuses a message.
func (r Rules) None() bool { return len(r.Keys) == 0 && len(r.Rules) == 0 }

// Has reports whether a sender has keys.
func (r Rules) Has(sender string) bool { return len(r.Keys[sender]) > 0 }

// Check says whether the signature of a message that comes at a time is verified, and whether the message is refused. A
// message without a signature is neither, unless a rule requires one. A signature is not looked at if the sender has no
// key and no rule covers the message.
func (r Rules) Check(m envelope.Message, at time.Time) (verified bool, refused error) {
	covered, required := r.Has(m.From), false
	for _, rule := range r.Rules {
		if rule.covers(m) {
			covered, required = true, required || rule.Require
		}
	}
	switch {
	case m.Clutch == nil && required:
		return false, errors.New("is missing, and signatures requires one of this sender; only a message of Clutch can have one")
	case required && !m.Clutch.IsSigned():
		return false, errors.New("is missing, and signatures requires one of this sender or domain")
	case !covered || !m.Clutch.IsSigned():
		return false, nil
	}
	if refused = r.verify(m, at); refused != nil {
		return false, refused
	}
	return true, nil
}

// verify says why a signature does not count.
func (r Rules) verify(m envelope.Message, at time.Time) error {
	auth := m.Clutch.Auth
	if auth.Scheme != Scheme {
		return fmt.Errorf("has the scheme %.40q, only %q is supported", auth.Scheme, Scheme)
	}
	i := slices.IndexFunc(r.Keys[m.From], func(k Key) bool { return k.ID == auth.KeyID })
	if i < 0 {
		return fmt.Errorf("is of the key %.80q, and the sender has no such key", auth.KeyID)
	}
	key := r.Keys[m.From][i]
	switch {
	case at.Before(key.NotBefore):
		return fmt.Errorf("is of a key that is valid from %s", key.NotBefore.UTC().Format(time.RFC3339))
	case !key.NotAfter.IsZero() && at.After(key.NotAfter):
		return fmt.Errorf("is of a key that expired at %s", key.NotAfter.UTC().Format(time.RFC3339))
	}
	signature, err := decode(auth.Value)
	if err != nil {
		return err
	}
	text, err := Text(m.Raw)
	if err != nil {
		return fmt.Errorf("can't be verified: %w", err)
	}
	if !ed25519.Verify(key.Public, text, signature) {
		return errors.New("is wrong: the message was changed, or another key signed it")
	}
	return nil
}

// decode reads a signature: base64 in either alphabet, with or without padding.
func decode(text string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) != base64.RawURLEncoding.EncodedLen(ed25519.SignatureSize) || len(signature) != ed25519.SignatureSize {
		return nil, errors.New("is no base64 of 64 bytes")
	}
	return signature, nil
}
