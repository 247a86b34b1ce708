package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

const pageHost = "mbx-box-1.localhost"

// passkeySigned has a passkey sign an approval of carol, as a browser does, and returns the line of carol's passkey.
func passkeySigned(t *testing.T, mailbox string, a *approval) string {
	t.Helper()
	key, b64 := keyOf(50), base64.RawURLEncoding.EncodeToString
	a.Decider, a.Proof = "carol", task.Proof{Kind: proof.KindPasskey, Expires: noon.Add(24 * time.Hour)}
	a.Signed = a.statement(mailbox)
	challenge := sha256.Sum256([]byte(a.Signed))
	client := fmt.Appendf(nil,
		`{"type":"webauthn.get","challenge":%q,"origin":"http://%s:4000","crossOrigin":false}`, b64(challenge[:]), pageHost)
	host, clientHash := sha256.Sum256([]byte(pageHost)), sha256.Sum256(client)
	authenticator := append(host[:], 5, 0, 0, 0, 7)
	signature := ed25519.Sign(key, append(append([]byte(nil), authenticator...), clientHash[:]...))
	a.Proof.Signature = fmt.Sprintf(`{"id":%q,"response":{"clientDataJSON":%q,"authenticatorData":%q,"signature":%q}}`,
		b64([]byte("id")), b64(client), b64(authenticator), b64(signature))
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	try(t, err)
	return strings.Join([]string{"carol", "passkey", pageHost, b64([]byte("id")), b64(der)}, " ")
}

func TestAnApprovalByPasskeyIsThatOfAPerson(t *testing.T) {
	m := newMade(t)
	line := passkeySigned(t, m.manifest.Mailbox, &m.approvals[0])
	m.approvals = m.approvals[:1]
	known, err := proof.ParseAllowed(line)
	try(t, err)
	trust := Trust{Keys: keysOf(1), Approvers: known, Require: task.ProofPerson}
	r, err := verifyBytes(t, m.write(t), trust)
	if err != nil || !r.OK || r.Claims[4].Level != "person" {
		t.Errorf("Verify = %v, %v\n%s; want the proof of a person", r.OK, err, r.said())
	}
	m = newMade(t)
	passkeySigned(t, "another mailbox", &m.approvals[0])
	m.approvals = m.approvals[:1]
	m.approvals[0].Signed = m.approvals[0].statement(m.manifest.Mailbox)
	if r, err = verifyBytes(t, m.write(t), trust); err != nil || !strings.Contains(r.said(), "bad: approval t1 r1\n") {
		t.Errorf("Verify of a signature for another mailbox = %v, %v\n%s", r.OK, err, r.said())
	}
}

// A signature with an SSH key is less than that of a person.
func TestAKeyIsNotEnoughWhereAPersonIsRequired(t *testing.T) {
	m, trust := newMade(t), trusting(t)
	m.approvals, trust.Require = m.approvals[:2], task.ProofPerson
	if r, err := verifyBytes(t, m.write(t), trust); err != nil || r.OK || !strings.Contains(r.said(), "bad: proof\n") {
		t.Errorf("Verify = %v, %v\n%s; want the proof bad", r.OK, err, r.said())
	}
}

func TestThePlanOfACallHasItsDigest(t *testing.T) {
	content, digest, err := core.CallContent(task.Task{ID: "t1", Revision: 1, Attempt: 1}, task.Call{})
	try(t, err)
	m := newMade(t)
	m.approvals = nil
	m.approve(t, "t1", envelope.ApprovalTool, digest, string(content))
	r, err := verifyBytes(t, m.write(t), trusting(t))
	if err != nil || !r.OK || !strings.Contains(r.said(), "ok: plan t1 r1\n") {
		t.Errorf("Verify = %v, %v\n%s; want the plan ok", r.OK, err, r.said())
	}
}

func TestADigestOfAPlanLeavesOutItsVersionsAlone(t *testing.T) {
	for plan, bare := range map[string]string{
		thePlan:                                theBare,
		theBare:                                theBare,
		`{"versions":{"a":"1"},"x":1}`:         `{"x":1}`,
		`{"definitions":{"s/t":"1"},"x":1}`:    `{"x":1}`,
		`{"x":{"versions":1},"y":[1, 2]}`:      `{"x":{"versions":1},"y":[1, 2]}`,
		`{}`:                                   `{}`,
		`{"a":"\ud83d\ude00","versions":null}`: `{"a":"\ud83d\ude00"}`,
		`{"command":["` + "\xff" + `"],"tools":1}`: `{"command":["` + "\xff" + `"],"tools":1}`,
	} {
		if got, err := planDigest(plan); err != nil || got != digestOf(bare) {
			t.Errorf("planDigest(%s) = %s, %v; want that of %s", plan, got, err, bare)
		}
	}
	for _, plan := range []string{``, `[]`, `{`, `{"a"`, `{"a":1`, `{"a":}`} {
		if got, err := planDigest(plan); err == nil {
			t.Errorf("planDigest(%s) = %s; want an error", plan, got)
		}
	}
}
