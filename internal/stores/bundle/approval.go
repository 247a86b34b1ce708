package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// maxApprovals limits the approvals of a bundle, of which a little stays in memory.
const maxApprovals = 5_000

// maxWords limits the bytes of what stays in memory of an approval.
const maxWords = 400

// An approval is a line of approvals.jsonl: what a person was asked, and what came of it.
type approval struct {
	Task     envelope.ID       `json:"task_id"`
	Revision int               `json:"revision"`
	Stage    envelope.Approval `json:"stage"`
	Digest   string            `json:"digest"`
	Plan     string            `json:"plan,omitempty"` // as it is stored, a JSON object
	Approver string            `json:"approver,omitempty"`
	Asked    time.Time         `json:"asked_at"`
	Expires  time.Time         `json:"expires_at,omitzero"`
	Decision task.Decision     `json:"decision,omitempty"`
	Decided  time.Time         `json:"decided_at,omitzero"`
	Decider  string            `json:"decided_by,omitempty"`
	Note     string            `json:"note,omitempty"`
	Signed   string            `json:"signed,omitempty"` // the text that was signed
	Proof    task.Proof        `json:"proof,omitzero"`
}

// approvalOf returns the line for an approval of a task in a mailbox.
func approvalOf(mailbox string, row task.Task, c task.Consent) approval {
	a := approval{
		Task: row.ID, Revision: row.Revision, Stage: c.Stage, Digest: c.Digest, Plan: string(c.Plan), Approver: c.Approver,
		Asked: c.Asked, Expires: c.Expires, Decision: c.Decision, Decided: c.Decided, Decider: c.Decider, Note: c.Note, Proof: c.Proof,
	}
	if a.isDecided() && c.Proof.Signature != "" {
		a.Signed = a.statement(mailbox)
	}
	return a
}

// isDecided reports whether the last word is that of a person.
func (a approval) isDecided() bool { return a.Decision == task.Approved || a.Decision == task.Denied }

func (a approval) consent() task.Consent {
	return task.Consent{
		Stage: a.Stage, Digest: a.Digest, Asked: a.Asked, Expires: a.Expires,
		Decision: a.Decision, Decided: a.Decided, Decider: a.Decider, Proof: a.Proof,
	}
}

func (a approval) row() task.Task { return task.Task{ID: a.Task, Revision: a.Revision} }

// statement returns the text that a proof of the approval signs.
func (a approval) statement(mailbox string) string {
	return string(proof.Approvers{Mailbox: mailbox}.StatementOf(a.row(), a.consent()).Encode())
}

// check verifies the proof of the approval. Only known approvers count.
func (a approval) check(mailbox string, known []proof.Approver) (task.ProofLevel, Status, string) {
	switch a.Proof.Kind {
	case "":
		return task.ProofNone, Unchecked, "without a proof"
	case proof.KindTerminal:
		return task.ProofNone, Unchecked, "confirmed at a terminal, of which no proof is left"
	}
	if a.Signed != a.statement(mailbox) {
		return task.ProofNone, Bad, "the signed text is about something else"
	}
	list := proof.Approvers{Mailbox: mailbox, List: known, Self: task.SelfAllow}
	if list.Find(a.Decider) == nil {
		return task.ProofNone, Unchecked, fmt.Sprintf("signed with %s, and no key of %s was given", a.Proof.Kind, a.Decider)
	}
	level, err := list.Check(a.row(), a.consent(), a.Decided)
	switch {
	case errors.Is(err, proof.ErrUnknownKey):
		return task.ProofNone, Unchecked, fmt.Sprintf("signed with %s, and the key %s of %s was not given", a.Proof.Kind, a.Proof.Key, a.Decider)
	case err != nil:
		return task.ProofNone, Bad, err.Error()
	}
	return level, Good, fmt.Sprintf("proof %s, key %s", level, proof.FingerprintOf(a.Proof.Kind, a.Proof.Signature))
}

// planDigest returns the digest of a plan or of a call: the SHA-256 of its JSON without the members versions and
// definitions, which approvals don't cover.
func planDigest(plan string) (string, error) {
	in := jsontext.NewDecoder(bytes.NewReader([]byte(plan)), jsontext.AllowInvalidUTF8(true))
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return "", errors.New("it is no object")
	}
	bare := []byte{'{'}
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return "", err
		}
		leave := string(name) == `"versions"` || string(name) == `"definitions"`
		begin := len(bare)
		if begin > 1 {
			bare = append(bare, ',')
		}
		bare = append(append(bare, name...), ':')
		value, err := in.ReadValue()
		if err != nil {
			return "", err
		}
		if bare = append(bare, value...); leave {
			bare = bare[:begin]
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return "", err
	}
	return hexOf(sha256.Sum256(append(bare, '}'))), nil
}

// A decided is what is kept of an approval until the events are read.
type decided struct {
	key   decidedKey
	claim Claim // about the proof
	plan  Claim // about the digest
	asked Claim // about the request that the plan names; the zero value makes no claim
}

// A decidedKey is what an approval and its event have in common.
type decidedKey struct {
	task   int // its number
	kind   task.Kind
	stage  string
	digest string // its first digits
	by     string
}

// readApprovals checks the decisions of people.
func (v *verifier) readApprovals() (all []decided, err error) {
	in := v.lines(approvalsName)
	for {
		line, err := in.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return all, nil
			}
			return nil, err
		}
		var a approval
		if err := json.Unmarshal(line, &a, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("read line %d of %s: %w", in.n, approvalsName, err)
		}
		number := v.numbers[taskKey{a.Task, a.Revision}]
		switch {
		case number == 0:
			return nil, fmt.Errorf("line %d of %s is about no task of the bundle", in.n, approvalsName)
		case len(all) == maxApprovals:
			return nil, fmt.Errorf("it has more than %d approvals", maxApprovals)
		case len(a.Decider)+len(a.Stage)+len(a.Digest)+len(a.Proof.Kind)+len(a.Proof.Key) > maxWords:
			return nil, fmt.Errorf("line %d of %s: a name has too many bytes", in.n, approvalsName)
		case a.isDecided():
			all = append(all, v.decide(a, number))
		}
	}
}

// decide makes the claims of a decision.
func (v *verifier) decide(a approval, number int) decided {
	t := v.manifest.Tasks[number-1]
	kind := task.KindApprovalApproved
	if a.Decision == task.Denied {
		kind = task.KindApprovalDenied
	}
	level, status, text := a.check(v.manifest.Mailbox, v.trust.Approvers)
	c := about("approval", t, status, "%s %s by %s at %s, digest %.64s: %s",
		a.Stage, a.Decision, a.Decider, a.Decided.UTC().Format(time.RFC3339), a.Digest, text)
	if c.level = level; status == Good {
		c.Level = level.String()
	}
	d := decided{
		key:   decidedKey{number, kind, string(a.Stage), a.Digest[:min(eventDigits, len(a.Digest))], a.Decider},
		claim: c, plan: v.digested(a, number),
	}
	if a.Stage != envelope.ApprovalPost && d.plan.Status == Good {
		d.asked = v.requested(a, number)
	}
	return d
}

// digested makes the claim that the digest of a decision is that of what the bundle has.
func (v *verifier) digested(a approval, number int) Claim {
	t := v.manifest.Tasks[number-1]
	if a.Stage == envelope.ApprovalPost {
		e := v.result(number)
		switch {
		case a.Decision == task.Denied:
			return about("answer", t, Unchecked, "the denied answer is not in the bundle")
		case e == nil || isRedacted(e.name):
			return about("answer", t, Unchecked, "the approved answer is not in the bundle")
		case e.digest() != a.Digest:
			return about("answer", t, Bad, "the digest of the approved answer is %.64s, and that of %s is %s", a.Digest, e.name, e.digest())
		}
		return about("answer", t, Good, "%s has the digest that was approved", e.name)
	}
	if a.Plan == "" {
		return about("plan", t, Unchecked, "what %s decided about is not in the bundle", a.Decider)
	}
	switch digest, err := planDigest(a.Plan); {
	case err != nil:
		return about("plan", t, Bad, "read the plan: %v", err)
	case digest != a.Digest:
		return about("plan", t, Bad, "the decision is about digest %.64s, and the plan has %s", a.Digest, digest)
	}
	return about("plan", t, Good, "the plan has the digest that %s %s", a.Decider, a.Decision)
}

// maxHashed limits the bytes of a request whose content is hashed, which takes 16 times its size.
const maxHashed = 1 << 20

// requested makes the claim that the request of the bundle is the one that a plan names; none for a plan that names
// none, as that of a call.
func (v *verifier) requested(a approval, number int) Claim {
	var plan struct {
		Request string `json:"request"`
	}
	if err := json.Unmarshal([]byte(a.Plan), &plan); err != nil || plan.Request == "" {
		return Claim{}
	}
	t, name := v.manifest.Tasks[number-1], fmt.Sprintf("requests/%06d.json", number)
	if v.find(name) == nil {
		return about("request", t, Unchecked, "the request that the plan names is not in the bundle")
	}
	text, err := v.small(name, maxHashed)
	if err != nil {
		return about("request", t, Unchecked, "%v", err)
	}
	var ainl struct {
		Version jsontext.Value `json:"schema_version"`
	}
	hash, _ := envelope.ContentHash(text)
	switch {
	case hash == plan.Request:
		return about("request", t, Good, "%s is what %s %s", name, a.Decider, a.Decision)
	case json.Unmarshal(text, &ainl) != nil || ainl.Version == nil:
		return about("request", t, Unchecked, "in its dialect, the plan names the hash of a part of %s", name)
	}
	return about("request", t, Bad, "the decision is about a request with hash %.64s, and %s has %s", plan.Request, name, hash)
}
