package bundle

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"mailboxd/internal/stores/seal"
)

// signedOf returns the parts of the statement of a bundle, read without package dsse.
func signedOf(t *testing.T, file []byte) (kind string, payload, signature []byte, key string) {
	t.Helper()
	var e struct {
		PayloadType string `json:"payloadType"`
		Payload     []byte `json:"payload"`
		Signatures  []struct {
			KeyID string `json:"keyid"`
			Sig   []byte `json:"sig"`
		} `json:"signatures"`
	}
	try(t, json.Unmarshal(readFile(t, file, statementName), &e))
	if len(e.Signatures) != 1 {
		t.Fatalf("the statement has %d signatures; want 1", len(e.Signatures))
	}
	return e.PayloadType, e.Payload, e.Signatures[0].Sig, e.Signatures[0].KeyID
}

// The signature is that of DSSE: over PAE(type, body), as the specification has it.
func TestTheSignatureIsOneOfDSSE(t *testing.T) {
	kind, payload, signature, key := signedOf(t, newMade(t).write(t))
	public := seal.PrivateKey(keyOf(1)).Public()
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
	if !ed25519.Verify(public, []byte(pae), signature) {
		t.Error("ed25519 doesn't verify the signature over PAE(type, body)")
	}
	if key != seal.KeyID(public) || kind != "application/vnd.in-toto+json" {
		t.Errorf("the signature is of key %s about %s", key, kind)
	}
}

// verifyInPython is a second implementation. Its arguments are the statement and the key.
const verifyInPython = `
import base64, json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key
e = json.load(open(sys.argv[1]))
body, kind = base64.b64decode(e["payload"]), e["payloadType"].encode()
pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)
key = load_pem_public_key(open(sys.argv[2], "rb").read())
key.verify(base64.b64decode(e["signatures"][0]["sig"]), pae)
print(json.loads(body)["subject"][0]["digest"]["sha256"])
`

func TestPythonVerifiesTheSignature(t *testing.T) {
	if err := exec.Command("python3", "-c", "import cryptography").Run(); err != nil {
		t.Skip("python3 or its package cryptography is not installed, by which another program verifies the signature")
	}
	file, dir := newMade(t).write(t), t.TempDir()
	public, err := seal.EncodePublic(seal.PrivateKey(keyOf(1)).Public())
	try(t, err)
	statement, pem := filepath.Join(dir, "statement"), filepath.Join(dir, "key")
	try(t, os.WriteFile(statement, readFile(t, file, statementName), 0o600))
	try(t, os.WriteFile(pem, public, 0o600))
	said, err := exec.Command("python3", "-c", verifyInPython, statement, pem).CombinedOutput()
	if want := digestOf(string(readFile(t, file, manifestName))) + "\n"; err != nil || string(said) != want {
		t.Errorf("python says %s, %v; want the digest of the manifest, %s", said, err, want)
	}
	other, err := seal.EncodePublic(seal.PrivateKey(keyOf(2)).Public())
	try(t, err)
	try(t, os.WriteFile(pem, other, 0o600))
	if said, err := exec.Command("python3", "-c", verifyInPython, statement, pem).CombinedOutput(); err == nil {
		t.Errorf("python verifies the signature with another key: %s", said)
	}
}

func TestTheStatementIsOneOfInToto(t *testing.T) {
	file := newMade(t).write(t)
	_, payload, _, _ := signedOf(t, file)
	var s intoto.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	subject := s.GetSubject()[0]
	if subject.GetName() != manifestName || subject.GetDigest()["sha256"] != digestOf(string(readFile(t, file, manifestName))) {
		t.Errorf("the subject is %v; want the manifest with its digest", subject)
	}
	if s.GetPredicateType() != "urn:mailboxd:run:1" {
		t.Errorf("the type of the predicate is %s", s.GetPredicateType())
	}
}

// A signature in another form is the same to DSSE, and one byte that was changed to us.
func TestAStatementInAnotherFormIsRefused(t *testing.T) {
	m := Manifest{Run: "r", Mailbox: "m"}
	signed, err := sign(t.Context(), seal.PrivateKey(keyOf(1)), m, "ab")
	try(t, err)
	if _, err := verifyStatement(t.Context(), signed, keysOf(1), m, "ab"); err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	try(t, json.Unmarshal(signed, &e))
	url, err := base64.StdEncoding.DecodeString(e["payload"].(string))
	try(t, err)
	e["payload"] = base64.URLEncoding.EncodeToString(url)
	spaced := append([]byte(" "), signed...)
	extra, err := json.Marshal(e, json.Deterministic(true))
	try(t, err)
	for name, text := range map[string][]byte{"a space": spaced, "another order of members": extra, "no statement": []byte("{}\n")} {
		if _, err := verifyStatement(t.Context(), text, keysOf(1), m, "ab"); err == nil {
			t.Errorf("%s: the statement is accepted", name)
		}
	}
	if _, err := verifyStatement(t.Context(), signed, keysOf(1), m, "cd"); err == nil {
		t.Error("a statement about another manifest is accepted")
	}
}
