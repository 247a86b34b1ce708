package proof

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/internal/decisions/task"
)

// The kinds of proofs, as task.Proof has them.
const (
	KindTerminal = "terminal"
	KindSSH      = "ssh"
	KindPasskey  = "passkey"
)

// An Approver is a name under which decisions are made, with the proof that they need.
type Approver struct {
	Name     string
	Min      task.ProofLevel
	Keys     []ssh.PublicKey // of the approver; if Min is above task.ProofTerminal, a key or a passkey is required
	Passkeys []Passkey
	User     []string // all names of the user; tasks that they requested are the approver's own
}

// requested reports whether the user of the approver requested a task, by the name of its
// requester. Upper and lower case are the same here.
func (a *Approver) requested(row task.Task) bool {
	return slices.ContainsFunc(a.User, func(name string) bool { return strings.EqualFold(name, row.Requester) })
}

// Approvers verify decisions. The zero value knows no approver, so no decision counts.
// Approvers are immutable.
type Approvers struct {
	Mailbox  string // id of the mailbox
	List     []Approver
	Self     task.SelfRule // about tasks that the approver requested
	Validity time.Duration // of a new signature; 0: MaxValidity
}

// StatementOf returns the statement that the proof of a decision signs.
func (a Approvers) StatementOf(row task.Task, c task.Consent) Statement {
	return Statement{a.Mailbox, row.ID, row.Revision, c.Stage, c.Decision, c.Digest, c.Asked, c.Proof.Expires}
}

// Find returns the approver with a name; nil for none.
func (a Approvers) Find(name string) *Approver {
	at := slices.IndexFunc(a.List, func(r Approver) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &a.List[at]
}

// WhyNobody says why no approver may decide about a task; "" if one may, or if the only
// permitted approver is unknown.
func (a Approvers) WhyNobody(row task.Task, only string) string {
	own := func(r Approver) bool { return r.requested(row) }
	may := slices.DeleteFunc(slices.Clone(a.List), func(r Approver) bool { return only != "" && r.Name != only })
	if a.Self != task.SelfRefuse || len(may) == 0 || slices.ContainsFunc(may, func(r Approver) bool { return !own(r) }) {
		return ""
	}
	return fmt.Sprintf("%s requested this task; another approver must decide (approval.self is refuse)", row.Requester)
}

// Expiry returns when a signature that is made now should expire.
func (a Approvers) Expiry(now time.Time) time.Time {
	valid := a.Validity
	if valid <= 0 || valid > MaxValidity {
		valid = MaxValidity
	}
	return now.Add(valid).UTC().Truncate(time.Second)
}

// Check verifies the proof of a decision about a task, and returns what it shows. It is for a
// decision that is made now, which has no Decided yet, and for one from the ledger before a run
// starts. The error says why the decision doesn't count.
func (a Approvers) Check(row task.Task, c task.Consent, now time.Time) (task.ProofLevel, error) {
	approver := a.Find(c.Decider)
	if approver == nil {
		return task.ProofNone, fmt.Errorf("%q is no approver", c.Decider)
	}
	level, err := a.level(approver, row, c, now)
	switch {
	case err != nil:
		return task.ProofNone, fmt.Errorf("the proof of %s doesn't hold: %w", c.Decider, err)
	case a.Self == task.SelfRefuse && approver.requested(row):
		return level, fmt.Errorf("%s requested this task; another approver must decide (approval.self is refuse)", row.Requester)
	case approver.requested(row) && level < a.Self.Needs():
		return level, fmt.Errorf("%s requested this task; the decision has to be confirmed at a terminal (approval.self is confirm)", row.Requester)
	case level < approver.Min:
		return level, fmt.Errorf("decisions of %s need proof: %s, and this one has %s", c.Decider, approver.Min, level)
	}
	return level, nil
}

// CheckSigned verifies the signature of what is no approval and is done now: a decision about the work of a task, or what a
// person sends. The person who requested the task may decide. The error says why the signature doesn't count.
func (a Approvers) CheckSigned(row task.Task, c task.Consent, now time.Time) error {
	approver := a.Find(c.Decider)
	if approver == nil {
		return fmt.Errorf("%q is no approver", c.Decider)
	}
	level, err := a.level(approver, row, c, now)
	switch {
	case err != nil:
		return fmt.Errorf("the proof of %s doesn't hold: %w", c.Decider, err)
	case level < approver.Min:
		return fmt.Errorf("decisions of %s need proof: %s, and this one has %s", c.Decider, approver.Min, level)
	}
	return nil
}

func (a Approvers) level(approver *Approver, row task.Task, c task.Consent, now time.Time) (task.ProofLevel, error) {
	switch c.Proof.Kind {
	case "":
		return task.ProofNone, nil
	case KindTerminal: // nothing is left of it that could be verified again
		return task.ProofTerminal, nil
	case KindSSH, KindPasskey:
	default:
		return task.ProofNone, fmt.Errorf("unknown kind of proof %q", c.Proof.Kind)
	}
	if c.Expires.IsZero() || c.Expires.After(c.Proof.Expires) {
		return task.ProofNone, errors.New("the decision is valid for longer than was signed")
	}
	made := c.Decided
	if made.IsZero() {
		made = now
	}
	if err := valid(c.Proof.Expires, made); err != nil {
		return task.ProofNone, err
	}
	if c.Proof.Kind == KindPasskey {
		return VerifyPasskey(a.StatementOf(row, c), []byte(c.Proof.Signature), approver.Passkeys)
	}
	level, _, err := Verify(a.StatementOf(row, c), []byte(c.Proof.Signature), approver.Keys)
	return level, err
}

// MaxValidity is the longest time for which a signature may be valid.
const MaxValidity = 366 * 24 * time.Hour

// valid returns why a signature that expires at a time doesn't count for a decision that was made
// at another; nil if it counts.
func valid(expires, made time.Time) error {
	switch {
	case !made.Before(expires):
		return fmt.Errorf("%w at %s", ErrExpired, expires.UTC().Format(time.RFC3339))
	case expires.Sub(made) > MaxValidity+time.Hour:
		return fmt.Errorf("the signature is valid until %s, for longer than a year", expires.UTC().Format(time.RFC3339))
	}
	return nil
}
