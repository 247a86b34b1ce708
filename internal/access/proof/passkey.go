package proof

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A Passkey is the public key of a WebAuthn credential. It signs on the page of one host, after the
// person was verified there, by a PIN or a finger.
type Passkey struct {
	Host string // the host of the page, without its port: WebAuthn's rp.id
	ID   []byte // of the credential

	key crypto.PublicKey
	der []byte // of the key, as PKIX
}

// passkeyWord begins the line of a passkey.
const passkeyWord = "passkey"

// Limits of what a passkey is made of.
const (
	maxCredentialID = 1023     // bytes, WebAuthn section 4
	maxKey          = 2 << 10  // bytes; an RSA key of 8192 bits needs 1 KiB
	maxAssertion    = 16 << 10 // bytes of JSON
	minRSA          = 2048     // bits
	hostPrefix      = "mbx-"   // of the pages of mailboxes: no web site can ask for such a passkey
	hostSuffix      = ".localhost"
)

// IsPasskey reports whether a line is meant to be that of a passkey.
func IsPasskey(line string) bool {
	return line == passkeyWord || strings.HasPrefix(line, passkeyWord+" ")
}

// ParsePasskey reads a passkey as mailboxd web prints it: the word passkey, its host, the id of
// the credential and the public key, and perhaps a comment.
func ParsePasskey(line string) (Passkey, error) {
	words := strings.Fields(line)
	if len(words) < 4 || words[0] != passkeyWord || strings.ContainsAny(line, "\n\r") {
		return Passkey{}, errors.New("is no line of a passkey such as mailboxd web prints")
	}
	id, err := decode(words[2])
	if err != nil {
		return Passkey{}, fmt.Errorf("the id of the passkey: %w", err)
	}
	der, err := decode(words[3])
	if err != nil {
		return Passkey{}, fmt.Errorf("the public key of the passkey: %w", err)
	}
	return newPasskey(words[1], id, der)
}

func newPasskey(host string, id, der []byte) (Passkey, error) {
	label, isPage := strings.CutSuffix(host, hostSuffix)
	plain := func(r rune) bool { return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' }
	switch {
	case !isPage || !strings.HasPrefix(label, hostPrefix) || strings.ContainsFunc(label, func(r rune) bool { return !plain(r) }):
		return Passkey{}, fmt.Errorf("%q is not the host of a page of mailboxd web", host)
	case len(id) == 0 || len(id) > maxCredentialID:
		return Passkey{}, fmt.Errorf("the id of the passkey has %d bytes; want 1 to %d", len(id), maxCredentialID)
	case len(der) > maxKey:
		return Passkey{}, fmt.Errorf("the public key of the passkey has %d bytes; want at most %d", len(der), maxKey)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Passkey{}, fmt.Errorf("the public key of the passkey: %w", err)
	}
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return Passkey{}, errors.New("the public key of the passkey is not on the curve P-256")
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return Passkey{}, fmt.Errorf("the public key of the passkey has fewer than %d bits", minRSA)
		}
	default:
		return Passkey{}, errors.New("the public key of the passkey is neither ECDSA, Ed25519 nor RSA")
	}
	return Passkey{host, id, key, der}, nil
}

// String returns the line of the passkey. ParsePasskey reads it.
func (p Passkey) String() string {
	return strings.Join([]string{passkeyWord, p.Host, encode(p.ID), encode(p.der)}, " ")
}

// Challenge returns what a passkey is asked to sign for a statement.
func Challenge(s Statement) []byte {
	sum := sha256.Sum256(s.Encode())
	return sum[:]
}

// verify checks a signature of the passkey: ES256, EdDSA or RS256.
func (p Passkey) verify(signed, signature []byte) bool {
	sum := sha256.Sum256(signed)
	switch key := p.key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, signed, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	}
	return false
}

// authenticatorData is what the authenticator signs about itself (WebAuthn section 6.1).
type authenticatorData struct {
	hostHash []byte
	flags    byte
	rest     []byte // the credential that was made, and extensions
}

// The flags of authenticatorData.
const (
	flagPresent    = 1 << 0
	flagVerified   = 1 << 2
	flagCredential = 1 << 6
	flagExtensions = 1 << 7
)

// parseAuthenticatorData also checks that the person was verified for a host.
func parseAuthenticatorData(raw []byte, host string) (authenticatorData, error) {
	const header = sha256.Size + 1 + 4 // and the counter of signatures
	if len(raw) < header {
		return authenticatorData{}, errors.New("the data of the authenticator is too short")
	}
	a, want := authenticatorData{raw[:sha256.Size], raw[sha256.Size], raw[header:]}, sha256.Sum256([]byte(host))
	switch {
	case !bytes.Equal(a.hostHash, want[:]):
		return a, fmt.Errorf("the passkey signed for another host than %s", host)
	case a.flags&flagPresent == 0:
		return a, errors.New("the passkey was used without a person")
	case a.flags&flagVerified == 0:
		return a, errors.New("the person was not verified: the passkey needs a PIN or a finger")
	case len(a.rest) > 0 && a.flags&(flagCredential|flagExtensions) == 0:
		return a, errors.New("the data of the authenticator is too long")
	}
	return a, nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(text string) ([]byte, error) { return base64.RawURLEncoding.Strict().DecodeString(text) }
