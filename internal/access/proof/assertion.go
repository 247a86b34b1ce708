package proof

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
)

// A credential is what a browser returns when a passkey is made or used: a RegistrationResponseJSON
// or an AuthenticationResponseJSON of WebAuthn. An assertion is kept in this form, without what
// isn't verified.
type credential struct {
	ID       string   `json:"id"`
	Response response `json:"response"`
}

type response struct {
	Client        string `json:"clientDataJSON"`
	Authenticator string `json:"authenticatorData"`
	Signature     string `json:"signature,omitempty"` // of one that is used
	PublicKey     string `json:"publicKey,omitempty"` // of one that is made
}

// clientData is what the browser says about the page (WebAuthn section 5.8.1).
type clientData struct {
	Type        string `json:"type"`
	Challenge   string `json:"challenge"`
	Origin      string `json:"origin"`
	CrossOrigin bool   `json:"crossOrigin"`
	TopOrigin   string `json:"topOrigin"`
}

// An assertion is a credential with its parts decoded.
type assertion struct {
	credential
	id, client, authenticator, signature, key []byte
	data                                      clientData
}

func parseAssertion(text []byte) (a assertion, err error) {
	if len(text) > maxAssertion {
		return a, fmt.Errorf("parse passkey: longer than %d bytes", maxAssertion)
	}
	if err := json.Unmarshal(text, &a.credential); err != nil {
		return a, fmt.Errorf("parse passkey: %w", err)
	}
	for _, part := range []struct {
		to   *[]byte
		from string
	}{
		{&a.id, a.ID}, {&a.client, a.Response.Client}, {&a.authenticator, a.Response.Authenticator},
		{&a.signature, a.Response.Signature}, {&a.key, a.Response.PublicKey},
	} {
		if *part.to, err = decode(part.from); err != nil {
			return a, fmt.Errorf("parse passkey: %w", err)
		}
	}
	if err := json.Unmarshal(a.client, &a.data); err != nil {
		return a, fmt.Errorf("parse what the browser says: %w", err)
	}
	if a.data.CrossOrigin || a.data.TopOrigin != "" {
		return a, errors.New("the passkey was used in a frame of another page")
	}
	return a, nil
}

// SignedAt returns the origin of the page where a passkey signed, and the signature in the form
// that is kept. Nothing is verified.
func SignedAt(text []byte) (origin string, kept []byte, err error) {
	a, err := parseAssertion(text)
	if err != nil {
		return "", nil, err
	}
	a.Response.PublicKey = ""
	kept, err = json.Marshal(a.credential)
	return a.data.Origin, kept, err
}

// VerifyPasskey checks that one of the passkeys signed a statement after its person was verified,
// on a page of its host. Any port counts: the system chooses it anew for each mailboxd web. It
// doesn't look at the expiry of the statement; Approvers.Check does.
func VerifyPasskey(s Statement, text []byte, passkeys []Passkey) (task.ProofLevel, error) {
	a, err := parseAssertion(text)
	if err != nil {
		return task.ProofNone, err
	}
	at := slices.IndexFunc(passkeys, func(p Passkey) bool { return bytes.Equal(p.ID, a.id) })
	if at < 0 {
		return task.ProofNone, ErrUnknownKey
	}
	key, clientHash := passkeys[at], sha256.Sum256(a.client)
	if !key.verify(slices.Concat(a.authenticator, clientHash[:]), a.signature) {
		return task.ProofNone, errors.New("the signature is not one of the passkey")
	}
	switch {
	case a.data.Type != "webauthn.get":
		return task.ProofNone, fmt.Errorf("the passkey was used for %q", a.data.Type)
	case a.data.Challenge != encode(Challenge(s)):
		return task.ProofNone, errors.New("the signature is not of this decision")
	case !isOriginOf(a.data.Origin, key.Host):
		return task.ProofNone, fmt.Errorf("the passkey was used on %q, which is no page of %s", a.data.Origin, key.Host)
	}
	if _, err := parseAuthenticatorData(a.authenticator, key.Host); err != nil {
		return task.ProofNone, err
	}
	return task.ProofPerson, nil
}

// isOriginOf reports whether an origin is http at a port of a host.
func isOriginOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Hostname() == host && origin == "http://"+u.Host
}

// NewPasskey returns the passkey that a browser made at an origin. Whether it is a person's shows
// when a person adds its line to the approvers, and not before.
func NewPasskey(text []byte, origin, host string) (Passkey, error) {
	a, err := parseAssertion(text)
	if err != nil {
		return Passkey{}, err
	}
	if a.data.Type != "webauthn.create" || a.data.Origin != origin {
		return Passkey{}, fmt.Errorf("the passkey was not made on this page, but on %q", a.data.Origin)
	}
	data, err := parseAuthenticatorData(a.authenticator, host)
	if err != nil {
		return Passkey{}, err
	}
	if data.flags&flagCredential == 0 || !bytes.Equal(credentialID(data.rest), a.id) {
		return Passkey{}, errors.New("the authenticator made another passkey")
	}
	if len(a.key) == 0 {
		return Passkey{}, errors.New("the browser can't read the public key of the passkey")
	}
	return newPasskey(host, a.id, a.key)
}

// credentialID returns the id in the data of a credential that was made (WebAuthn section 6.5.1):
// 16 bytes that name the model, the length, and the id.
func credentialID(data []byte) []byte {
	const model = 16
	if len(data) < model+2 {
		return nil
	}
	length, rest := int(binary.BigEndian.Uint16(data[model:])), data[model+2:]
	if length > len(rest) {
		return nil
	}
	return rest[:length]
}
