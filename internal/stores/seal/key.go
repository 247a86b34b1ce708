package seal

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// A Signer signs texts with one key.
type Signer interface {
	Key() string // its id
	Sign(text []byte) ([]byte, error)
}

// KeyID returns the id of a key: the first 16 hexadecimal digits of the hash of its 32 bytes.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// A PrivateKey is a Signer with a key in memory.
type PrivateKey ed25519.PrivateKey

// Public returns the public part of the key.
func (k PrivateKey) Public() ed25519.PublicKey {
	public, _ := ed25519.PrivateKey(k).Public().(ed25519.PublicKey)
	return public
}

// Key returns the id of the key.
func (k PrivateKey) Key() string { return KeyID(k.Public()) }

// Sign signs a text.
func (k PrivateKey) Sign(text []byte) ([]byte, error) {
	return ed25519.PrivateKey(k).Sign(nil, text, crypto.Hash(0))
}

// ParsePrivateKey reads a key in PEM of PKCS#8.
func ParsePrivateKey(text []byte) (PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("is no private key in PEM (PKCS#8)")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if private, ok := key.(ed25519.PrivateKey); ok {
		return PrivateKey(private), nil
	}
	return nil, errors.New("is no ed25519 key")
}

// Encode returns the key in PEM of PKCS#8.
func (k PrivateKey) Encode() ([]byte, error) {
	bytes, err := x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(k))
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}), err
}

// EncodePublic returns a public key in PEM.
func EncodePublic(key ed25519.PublicKey) ([]byte, error) {
	bytes, err := x509.MarshalPKIXPublicKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: bytes}), err
}

// Keys are public keys by id.
type Keys map[string]ed25519.PublicKey

// ParseKeys reads one or more public keys in PEM.
func ParseKeys(text []byte) (Keys, error) {
	keys := Keys{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("is no ed25519 key")
		}
		keys[KeyID(public)] = public
	}
	if len(keys) == 0 {
		return nil, errors.New("has no public key in PEM")
	}
	return keys, nil
}

func (k Keys) verify(id string, text, signature []byte) error {
	key, ok := k[id]
	switch {
	case !ok:
		return fmt.Errorf("key %s is not known", id)
	case !ed25519.Verify(key, text, signature):
		return fmt.Errorf("signature of key %s is wrong", id)
	}
	return nil
}

// A Successor is a key that replaces another one. The old key signs it.
type Successor struct {
	Key       string            `json:"key"` // its id
	Public    ed25519.PublicKey `json:"public"`
	Time      int64             `json:"time"`     // of the replacement, in microseconds since 1970
	Replaces  string            `json:"replaces"` // the id of the old key; "" for the first one
	Signature []byte            `json:"signature,omitempty"`
}

// Text returns what the old key signs.
func (s Successor) Text() []byte {
	return fmt.Appendf(nil, "mailboxd/key/1\nkey %s\npublic %x\ntime %d\nreplaces %s\n", s.Key, []byte(s.Public), s.Time, s.Replaces)
}

// Follow returns the keys and those that replaced them, one after the other. A successor without a right
// signature of a known key is left out.
func (k Keys) Follow(successors []Successor) Keys {
	all := Keys{}
	for id, key := range k {
		all[id] = key
	}
	for grown := true; grown; {
		grown = false
		for _, s := range successors {
			if all[s.Key] == nil && len(s.Public) == ed25519.PublicKeySize && KeyID(s.Public) == s.Key && all.verify(s.Replaces, s.Text(), s.Signature) == nil {
				all[s.Key], grown = s.Public, true
			}
		}
	}
	return all
}
