package proof_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

const (
	pageHost   = "mbx-share-ainl-3f2a91c0.localhost"
	pageOrigin = "http://" + pageHost + ":40213"
)

// A softPasskey is an authenticator in software, with a browser: what it returns can be changed.
type softPasskey struct {
	t   testing.TB
	key crypto.Signer
	id  []byte

	kind, origin, host, challenge string // "": as it has to be
	more                          string // in the client data
	flags                         byte
	rest                          []byte // after the header of the data of the authenticator
	cut                           int    // bytes that the data of the authenticator lacks at its end
}

func newSoftPasskey(t testing.TB, key crypto.Signer) *softPasskey {
	return &softPasskey{t: t, key: key, id: []byte("credential of " + t.Name()), flags: 5}
}

func es256(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// public is the key as PKIX.
func (p *softPasskey) public() []byte {
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		p.t.Fatal(err)
	}
	return der
}

// line is that of the passkey.
func (p *softPasskey) line() string {
	return strings.Join([]string{"passkey", pageHost, b64(p.id), b64(p.public())}, " ")
}

func (p *softPasskey) passkey() proof.Passkey {
	p.t.Helper()
	passkey, err := proof.ParsePasskey(p.line())
	if err != nil {
		p.t.Fatal(err)
	}
	return passkey
}

// parts are the client data and the data of the authenticator.
func (p *softPasskey) parts(kind string, challenge []byte) (client, authenticator []byte) {
	client = fmt.Appendf(nil, `{"type":%q,"challenge":%q,"origin":%q,"crossOrigin":false%s}`, or(p.kind, kind), or(p.challenge, b64(challenge)), or(p.origin, pageOrigin), p.more)
	hash := sha256.Sum256([]byte(or(p.host, pageHost)))
	data := append(append(hash[:], p.flags, 0, 0, 0, 7), p.rest...)
	return client, data[:len(data)-p.cut]
}

// sign returns the assertion of a statement.
func (p *softPasskey) sign(s proof.Statement) []byte {
	p.t.Helper()
	client, authenticator := p.parts("webauthn.get", proof.Challenge(s))
	hash := sha256.Sum256(client)
	signed := slices.Concat(authenticator, hash[:])
	options := crypto.SignerOpts(crypto.SHA256)
	sum := sha256.Sum256(signed)
	data := sum[:]
	if _, whole := p.key.(ed25519.PrivateKey); whole {
		options, data = crypto.Hash(0), signed
	}
	signature, err := p.key.Sign(rand.Reader, data, options)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.json(map[string]string{"clientDataJSON": b64(client), "authenticatorData": b64(authenticator), "signature": b64(signature)})
}

// made returns what the browser returns about a new passkey.
func (p *softPasskey) made() []byte {
	p.rest = slices.Concat(make([]byte, 16), binary.BigEndian.AppendUint16(nil, uint16(len(p.id))), p.id, []byte("COSE"))
	client, authenticator := p.parts("webauthn.create", []byte("any"))
	return p.json(map[string]string{"clientDataJSON": b64(client), "authenticatorData": b64(authenticator), "publicKey": b64(p.public())})
}

func (p *softPasskey) json(response map[string]string) []byte {
	text, err := json.Marshal(map[string]any{"id": b64(p.id), "rawId": b64(p.id), "type": "public-key", "response": response})
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func TestAPasskeySignsWithEachAlgorithmOfWebAuthn(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ES256": es256(t), "EdDSA": ed, "RS256": rsaKey} {
		p := newSoftPasskey(t, key)
		signed := p.sign(statement)
		if level, err := proof.VerifyPasskey(statement, signed, []proof.Passkey{p.passkey()}); err != nil || level != task.ProofPerson {
			t.Errorf("%s: VerifyPasskey = %v, %v; want person, nil", name, level, err)
		}
		origin, kept, err := proof.SignedAt(signed)
		if err != nil || origin != pageOrigin {
			t.Errorf("%s: SignedAt = %q, %v; want %q", name, origin, err, pageOrigin)
		}
		if _, err := proof.VerifyPasskey(statement, kept, []proof.Passkey{p.passkey()}); err != nil {
			t.Errorf("%s: what is kept doesn't verify: %v", name, err)
		}
	}
}

func TestASignatureOfAPasskeyIsOfOneDecisionAlone(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	signed, keys := p.sign(statement), []proof.Passkey{p.passkey()}
	for name, change := range map[string]func(*proof.Statement){
		"mailbox":  func(s *proof.Statement) { s.Mailbox = "another" },
		"task":     func(s *proof.Statement) { s.Task = "t2" },
		"revision": func(s *proof.Statement) { s.Revision++ },
		"stage":    func(s *proof.Statement) { s.Stage = envelope.ApprovalPost },
		"decision": func(s *proof.Statement) { s.Decision = task.Denied },
		"digest":   func(s *proof.Statement) { s.Digest = strings.Repeat("cd", 32) },
		"question": func(s *proof.Statement) { s.Asked = s.Asked.Add(time.Microsecond) },
		"expiry":   func(s *proof.Statement) { s.Expires = s.Expires.Add(time.Second) },
	} {
		other := statement
		change(&other)
		if level, err := proof.VerifyPasskey(other, signed, keys); err == nil || level != task.ProofNone {
			t.Errorf("the signature counts for another %s", name)
		}
	}
	if _, err := proof.VerifyPasskey(statement, signed, nil); !errors.Is(err, proof.ErrUnknownKey) {
		t.Errorf("VerifyPasskey without passkeys = %v; want ErrUnknownKey", err)
	}
}

func TestAPasskeyCountsOnlyAsItHasToBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*softPasskey)
		why    string
	}{
		"without a person":              {func(p *softPasskey) { p.flags = 4 }, "without a person"},
		"without a verified person":     {func(p *softPasskey) { p.flags = 1 }, "was not verified"},
		"for another host":              {func(p *softPasskey) { p.host = "mbx-other.localhost" }, "another host"},
		"on a page of another host":     {func(p *softPasskey) { p.origin = "http://mbx-other.localhost:40213" }, "no page of"},
		"on a page below the host":      {func(p *softPasskey) { p.origin = "http://a." + pageHost + ":1" }, "no page of"},
		"on a page with a path":         {func(p *softPasskey) { p.origin = pageOrigin + "/x" }, "no page of"},
		"on a page of another protocol": {func(p *softPasskey) { p.origin = "https://" + pageHost + ":40213" }, "no page of"},
		"on a page with a user":         {func(p *softPasskey) { p.origin = "http://" + pageHost + "@evil:1" }, "no page of"},
		"in a frame":                    {func(p *softPasskey) { p.more = `,"topOrigin":"http://evil"` }, "in a frame"},
		"to make another":               {func(p *softPasskey) { p.kind = "webauthn.create" }, "webauthn.create"},
		"for no decision":               {func(p *softPasskey) { p.challenge = "AAAA" }, "not of this decision"},
		"with more data":                {func(p *softPasskey) { p.rest = []byte("more") }, "too long"},
		"with a key of another":         {func(p *softPasskey) { p.key = es256(p.t) }, "not one of the passkey"},
	} {
		p := newSoftPasskey(t, es256(t))
		keys := []proof.Passkey{p.passkey()}
		c.change(p)
		level, err := proof.VerifyPasskey(statement, p.sign(statement), keys)
		if err == nil || level != task.ProofNone || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: VerifyPasskey = %v, %v; want %q", name, level, err, c.why)
		}
	}
}

func TestAPasskeyWithExtensionsCounts(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	p.flags, p.rest = 5|1<<7, []byte{0xa0}
	if _, err := proof.VerifyPasskey(statement, p.sign(statement), []proof.Passkey{p.passkey()}); err != nil {
		t.Error(err)
	}
}

func TestADecisionByPasskeyFromTheLedgerCountsOnlyAsItWasSigned(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	approvers := proof.Approvers{Mailbox: "m", List: []proof.Approver{
		{Name: "ada", Min: task.ProofPerson, Passkeys: []proof.Passkey{p.passkey()}}, {Name: "eve", Min: task.ProofPerson},
	}}
	row, c := decided(t, approvers, ed25519Signer(t))
	c.Proof.Kind, c.Proof.Signature = proof.KindPasskey, string(p.sign(approvers.StatementOf(row, c)))
	if level, err := approvers.Check(row, c, time.Now()); err != nil || level != task.ProofPerson {
		t.Fatalf("Check = %v, %v; want person, nil", level, err)
	}
	if print := proof.FingerprintOf(proof.KindPasskey, c.Proof.Signature); !strings.HasPrefix(print, "SHA256:") {
		t.Errorf("FingerprintOf = %q", print)
	}
	for name, change := range map[string]func(*proof.Approvers, *task.Task, *task.Consent){
		"another kind of proof":    func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Proof.Kind = proof.KindSSH },
		"another approver":         func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decider = "eve" },
		"another revision":         func(_ *proof.Approvers, r *task.Task, _ *task.Consent) { r.Revision = 3 },
		"another mailbox":          func(a *proof.Approvers, _ *task.Task, _ *task.Consent) { a.Mailbox = "n" },
		"another decision":         func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decision = task.Denied },
		"an earlier question":      func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Asked = c.Asked.Add(-time.Second) },
		"a longer time":            func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Expires = c.Expires.Add(time.Hour) },
		"a decision after its end": func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decided = c.Expires },
		"a passkey that was taken away": func(a *proof.Approvers, _ *task.Task, _ *task.Consent) {
			a.List = []proof.Approver{{Name: "ada", Min: task.ProofPerson, Keys: []ssh.PublicKey{ed25519Signer(t).PublicKey()}}}
		},
	} {
		a, r, other := approvers, row, c
		change(&a, &r, &other)
		if _, err := a.Check(r, other, time.Now()); err == nil {
			t.Errorf("a decision with %s counts", name)
		}
	}
}

func TestALineOfAPasskeyIsReadAsItIsWritten(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	good := p.line()
	if got := p.passkey().String(); got != good {
		t.Errorf("String = %q; want %q", got, good)
	}
	if _, err := proof.ParsePasskey(good + " ada's phone"); err != nil {
		t.Errorf("with a comment: %v", err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"nothing":             "",
		"one word":            "passkey",
		"another word":        "ssh" + strings.TrimPrefix(good, "passkey"),
		"two lines":           good + "\n" + good,
		"a site of the web":   strings.Replace(good, pageHost, "example.com", 1),
		"plain localhost":     strings.Replace(good, pageHost, "localhost", 1),
		"a host with a port":  strings.Replace(good, pageHost, pageHost+":80", 1),
		"a host below a page": strings.Replace(good, pageHost, "mbx-a.b.localhost", 1),
		"no id":               "passkey " + pageHost + " - " + b64(p.public()),
		"a long id":           "passkey " + pageHost + " " + b64(make([]byte, 1024)) + " " + b64(p.public()),
		"no key":              "passkey " + pageHost + " aaaa aaaa",
		"another curve":       newSoftPasskey(t, p384).line(),
	} {
		if _, err := proof.ParsePasskey(line); err == nil {
			t.Errorf("%s is read as a passkey", name)
		}
	}
}

func TestAPasskeyIsReadUpToItsLimits(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	p.id = make([]byte, 1023)
	if got := p.passkey(); len(got.ID) != len(p.id) {
		t.Errorf("an id of %d bytes is read as %d bytes", len(p.id), len(got.ID))
	}
	if _, err := proof.ParsePasskey(strings.Replace(p.line(), pageHost, "mbx-az-09.localhost", 1)); err != nil {
		t.Errorf("a host of letters, digits and hyphens: %v", err)
	}
	for size, fits := range map[int]bool{2 << 10: true, 2<<10 + 1: false} {
		line := strings.Join([]string{"passkey", pageHost, "aaaa", b64(rsaKeyOf(t, size))}, " ")
		if _, err := proof.ParsePasskey(line); (err == nil) != fits {
			t.Errorf("a key of %d bytes: %v; want it read: %t", size, err, fits)
		}
	}
	assertion := p.sign(statement)
	for size, fits := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		padded := append(slices.Clone(assertion), bytes.Repeat([]byte(" "), size-len(assertion))...)
		if _, err := proof.VerifyPasskey(statement, padded, []proof.Passkey{p.passkey()}); (err == nil) != fits {
			t.Errorf("an assertion of %d bytes: %v; want it to count: %t", size, err, fits)
		}
	}
}

// rsaKeyOf returns an RSA key that has a size as PKIX.
func rsaKeyOf(t *testing.T, size int) []byte {
	t.Helper()
	for bits := 8 * (size - 64); ; bits += 8 {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits))
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537})
		if err != nil || len(der) > size {
			t.Fatalf("no key of %d bytes: %v", size, err)
		}
		if len(der) == size {
			return der
		}
	}
}

func TestALineIsMeantForAPasskeyByItsFirstWord(t *testing.T) {
	for line, want := range map[string]bool{
		"passkey": true, "passkey mbx-a.localhost x": true, "passkeys x": false, "ssh-ed25519 AAAA passkey": false, "": false,
	} {
		if got := proof.IsPasskey(line); got != want {
			t.Errorf("IsPasskey(%q) = %t; want %t", line, got, want)
		}
	}
}

func TestANewPasskeyWithCutDataIsRefused(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	p.flags |= 1 << 6
	p.made() // sets the data of a new passkey
	whole := p.rest[:len(p.rest)-len("COSE")]
	for size := range len(whole) + 1 {
		p.rest = whole[:size]
		client, authenticator := p.parts("webauthn.create", []byte("any"))
		made := p.json(map[string]string{"clientDataJSON": b64(client), "authenticatorData": b64(authenticator), "publicKey": b64(p.public())})
		if _, err := proof.NewPasskey(made, pageOrigin, pageHost); (err == nil) != (size == len(whole)) {
			t.Errorf("the first %d of %d bytes up to the end of the id: %v", size, len(whole), err)
		}
	}
}

func TestANewPasskeyIsOneOfThisPageWithAVerifiedPerson(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	p.flags |= 1 << 6
	made, err := proof.NewPasskey(p.made(), pageOrigin, pageHost)
	if err != nil || made.String() != p.line() {
		t.Fatalf("NewPasskey = %v, %v; want %s", made, err, p.line())
	}
	for name, change := range map[string]func(*softPasskey) []byte{
		"another page":         func(p *softPasskey) []byte { p.origin = "http://" + pageHost + ":1"; return p.made() },
		"another host":         func(p *softPasskey) []byte { p.host = "mbx-other.localhost"; return p.made() },
		"no verified person":   func(p *softPasskey) []byte { p.flags = 1 | 1<<6; return p.made() },
		"no new passkey":       func(p *softPasskey) []byte { p.flags = 5; return p.made() },
		"a passkey that signs": func(p *softPasskey) []byte { p.kind = "webauthn.get"; return p.made() },
		"another id": func(p *softPasskey) []byte {
			return []byte(strings.ReplaceAll(string(p.made()), b64(p.id), b64([]byte("other"))))
		},
		"no key": func(p *softPasskey) []byte { return []byte(strings.Replace(string(p.made()), b64(p.public()), "", 1)) },
	} {
		p := newSoftPasskey(t, es256(t))
		p.flags |= 1 << 6
		if _, err := proof.NewPasskey(change(p), pageOrigin, pageHost); err == nil {
			t.Errorf("a passkey with %s counts as new", name)
		}
	}
}

func FuzzVerifyPasskeyTakesNoOtherBytes(f *testing.F) {
	p := newSoftPasskey(f, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	keys, other := []proof.Passkey{p.passkey()}, statement
	other.Task = "t2"
	f.Add(p.sign(other))
	p.flags |= 1 << 6
	f.Add(p.made())
	f.Add([]byte(`{"id":"","response":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if level, err := proof.VerifyPasskey(statement, text, keys); err == nil || level != task.ProofNone {
			t.Errorf("%q counts", text)
		}
		if _, kept, err := proof.SignedAt(text); err == nil {
			if _, again, err := proof.SignedAt(kept); err != nil || string(again) != string(kept) {
				t.Errorf("%q is kept as %q, and read again as %q, %v", text, kept, again, err)
			}
		}
		if made, err := proof.NewPasskey(text, pageOrigin, pageHost); err == nil {
			if again, err := proof.ParsePasskey(made.String()); err != nil || again.String() != made.String() {
				t.Errorf("the line of %v is not read again: %v", made, err)
			}
		}
	})
}
