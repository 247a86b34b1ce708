package proof_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// A blob holds the fields of an SSH signature as PROTOCOL.sshsig orders them.
type blob struct {
	Magic                     [6]byte
	Version                   uint32
	PublicKey                 []byte
	Namespace, Reserved, Hash string
	Signature                 []byte
}

// signStatement makes the blob of a signature of the statement. Sign of package proof makes no other
// than the right form.
func signStatement(t *testing.T, signer ssh.Signer) blob {
	t.Helper()
	sum := sha512.Sum512(statement.Encode())
	b := blob{Magic: [6]byte([]byte("SSHSIG")), Version: 1, PublicKey: signer.PublicKey().Marshal(), Namespace: proof.Namespace, Hash: "sha512"}
	signed, err := signer.Sign(rand.Reader, ssh.Marshal(struct {
		Magic                     [6]byte
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{b.Magic, b.Namespace, b.Reserved, b.Hash, sum[:]}))
	if err != nil {
		t.Fatal(err)
	}
	b.Signature = ssh.Marshal(signed)
	return b
}

func (b blob) armoured() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: ssh.Marshal(b)})
}

func TestASignatureOfAnotherFormIsRefused(t *testing.T) {
	signer := ed25519Signer(t)
	keys := []ssh.PublicKey{signer.PublicKey()}
	for name, c := range map[string]struct {
		change func(*blob)
		why    string // "" if it counts
	}{
		"the right form":  {func(*blob) {}, ""},
		"another magic":   {func(b *blob) { b.Magic[0] = 'T' }, "not version 1"},
		"version 2":       {func(b *blob) { b.Version = 2 }, "not version 1"},
		"another hash":    {func(b *blob) { b.Hash = "sha1" }, `unknown hash "sha1"`},
		"no signature":    {func(b *blob) { b.Signature = nil }, "parse signature"},
		"another purpose": {func(b *blob) { b.Namespace = "git" }, `is for "git"`},
	} {
		b := signStatement(t, signer)
		c.change(&b)
		level, _, err := proof.Verify(statement, b.armoured(), keys)
		if c.why == "" {
			if err != nil || level != task.ProofKey {
				t.Errorf("%s: Verify = %v, %v; want ssh, nil", name, level, err)
			}
			continue
		}
		if err == nil || level != task.ProofNone || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: Verify = %v, %v; want %q", name, level, err, c.why)
		}
	}
}

// PROTOCOL.sshsig asks for SHA-2 of RSA keys: a SHA-1 signature can be forged.
func TestASignatureOfAnRSAKeyWithSHA1IsRefused(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer := newSigner(t, key) // its Sign uses SHA-1
	level, _, err := proof.Verify(statement, signStatement(t, signer).armoured(), []ssh.PublicKey{signer.PublicKey()})
	if err == nil || level != task.ProofNone || !strings.Contains(err.Error(), "SHA-1") {
		t.Errorf("Verify = %v, %v; want it refused for SHA-1", level, err)
	}
}

func TestASignatureByAnUnreadableKeyHasNoFingerprint(t *testing.T) {
	b := signStatement(t, ed25519Signer(t))
	b.PublicKey = []byte("no key")
	if got := proof.FingerprintOf(proof.KindSSH, string(b.armoured())); got != "" {
		t.Errorf("FingerprintOf = %q; want none", got)
	}
}

func TestACertificateIsNoKeyOfAnApprover(t *testing.T) {
	signer := ed25519Signer(t)
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	line := string(ssh.MarshalAuthorizedKey(certificate))
	if _, err := proof.ParseKey(line); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("ParseKey(certificate) = %v; want it refused", err)
	}
}

func TestAnUnreadableKeyOfAnApproverIsNamed(t *testing.T) {
	needsOpenSSH(t)
	_, err := proof.SignByAgent(t.Context(), startAgent(t), []string{"ssh-ed25519 nonsense"}, statement)
	if err == nil || !strings.Contains(err.Error(), `key "ssh-ed25519 nonsense"`) {
		t.Errorf("SignByAgent = %v; want the key named", err)
	}
}

func TestAPasskeyNeedsAKeyThatSignsAndIsLongEnough(t *testing.T) {
	weak, err := x509.MarshalPKIXPublicKey(&weakRSA(t).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signsNothing, err := x509.MarshalPKIXPublicKey(exchange.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for why, der := range map[string]string{
		"fewer than 2048 bits":             b64(weak),
		"neither ECDSA, Ed25519 nor RSA":   b64(signsNothing),
		"the public key of the passkey: ":  "!",
		"the public key of the passkey: i": "a", // no whole byte
	} {
		_, err := proof.ParsePasskey("passkey " + pageHost + " aaaa " + der)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("ParsePasskey = %v; want %q", err, why)
		}
	}
}

func weakRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAnAssertionThatCannotBeReadIsRefused(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	signed := string(p.sign(statement))
	for name, change := range map[string]func(string) string{
		"a signature that is no base64url": func(s string) string { return strings.Replace(s, `"signature":"`, `"signature":"*`, 1) },
		"no client data":                   func(s string) string { return strings.Replace(s, "clientDataJSON", "client", 1) },
		"no data of the authenticator":     func(s string) string { return strings.Replace(s, "authenticatorData", "data", 1) },
	} {
		changed := change(signed)
		if changed == signed {
			t.Fatalf("%s: nothing is changed in %s", name, signed)
		}
		if level, err := proof.VerifyPasskey(statement, []byte(changed), []proof.Passkey{p.passkey()}); err == nil || level != task.ProofNone {
			t.Errorf("%s: VerifyPasskey = %v, %v; want it refused", name, level, err)
		}
	}
}

// The counter of signatures is part of the data, so cut data is refused although the key signed it.
func TestDataOfAnAuthenticatorThatIsCutIsRefused(t *testing.T) {
	p := newSoftPasskey(t, es256(t))
	p.cut = 1
	level, err := proof.VerifyPasskey(statement, p.sign(statement), []proof.Passkey{p.passkey()})
	if err == nil || level != task.ProofNone || !strings.Contains(err.Error(), "too short") {
		t.Errorf("VerifyPasskey = %v, %v; want it refused as too short", level, err)
	}
}
