package proof_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// decided is an approval that ada signed, as the ledger has it.
func decided(t *testing.T, a proof.Approvers, signer ssh.Signer) (task.Task, task.Consent) {
	t.Helper()
	row := task.Task{ID: "t1", Revision: 2}
	c := task.Consent{
		Stage: envelope.ApprovalPre, Digest: statement.Digest, Asked: statement.Asked, Expires: statement.Expires,
		Decision: task.Approved, Decided: statement.Asked.Add(time.Minute), Decider: "ada",
		Proof: task.Proof{Kind: proof.KindSSH, Expires: statement.Expires},
	}
	signed, err := proof.Sign(signer, a.StatementOf(row, c))
	if err != nil {
		t.Fatal(err)
	}
	c.Proof.Signature = string(signed)
	return row, c
}

func TestADecisionFromTheLedgerCountsOnlyAsItWasSigned(t *testing.T) {
	signer := ed25519Signer(t)
	approvers := proof.Approvers{Mailbox: "m", List: []proof.Approver{
		{Name: "ada", Min: task.ProofKey, Keys: []ssh.PublicKey{signer.PublicKey()}},
		{Name: "eve", Min: task.ProofKey, Keys: []ssh.PublicKey{ed25519Signer(t).PublicKey()}},
		{Name: "bob"},
	}}
	row, c := decided(t, approvers, signer)
	if level, err := approvers.Check(row, c, time.Now()); err != nil || level != task.ProofKey {
		t.Fatalf("Check = %v, %v; want ssh, nil", level, err)
	}
	for name, change := range map[string]func(*proof.Approvers, *task.Task, *task.Consent){
		"no proof": func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Proof = task.Proof{} },
		"a terminal's": func(_ *proof.Approvers, _ *task.Task, c *task.Consent) {
			c.Proof = task.Proof{Kind: proof.KindTerminal}
		},
		"an unknown kind":          func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Proof.Kind = "vow" },
		"another approver":         func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decider = "eve" },
		"nobody":                   func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decider = "mallory" },
		"another revision":         func(_ *proof.Approvers, r *task.Task, _ *task.Consent) { r.Revision = 3 },
		"another mailbox":          func(a *proof.Approvers, _ *task.Task, _ *task.Consent) { a.Mailbox = "n" },
		"an earlier question":      func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Asked = c.Asked.Add(-time.Second) },
		"a longer time":            func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Expires = c.Expires.Add(time.Hour) },
		"no end":                   func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Expires = time.Time{} },
		"a decision after its end": func(_ *proof.Approvers, _ *task.Task, c *task.Consent) { c.Decided = c.Expires },
		"a key that was taken away": func(a *proof.Approvers, _ *task.Task, _ *task.Consent) {
			a.List = []proof.Approver{{Name: "ada", Min: task.ProofKey}}
		},
	} {
		a, r, other := approvers, row, c
		change(&a, &r, &other)
		if _, err := a.Check(r, other, time.Now()); err == nil {
			t.Errorf("a decision with %s counts", name)
		}
	}
}

// A decision that is made now has no time yet; its signature must not have expired before.
func TestADecisionThatIsMadeNowNeedsASignatureThatHasNotExpired(t *testing.T) {
	signer := ed25519Signer(t)
	approvers := proof.Approvers{Mailbox: "m", List: []proof.Approver{{Name: "ada", Min: task.ProofKey, Keys: []ssh.PublicKey{signer.PublicKey()}}}}
	row, c := decided(t, approvers, signer)
	c.Decided = time.Time{}
	if level, err := approvers.Check(row, c, c.Expires.Add(-time.Nanosecond)); err != nil || level != task.ProofKey {
		t.Errorf("Check before the expiry = %v, %v; want ssh, nil", level, err)
	}
	if level, err := approvers.Check(row, c, c.Expires); !errors.Is(err, proof.ErrExpired) || level != task.ProofNone {
		t.Errorf("Check at the expiry = %v, %v; want ErrExpired", level, err)
	}
}

func TestASignatureIsValidForAYearAtMost(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	for validity, want := range map[time.Duration]time.Duration{
		time.Hour: time.Hour, 0: proof.MaxValidity, -time.Hour: proof.MaxValidity, 2 * proof.MaxValidity: proof.MaxValidity,
	} {
		if got := (proof.Approvers{Validity: validity}).Expiry(now); !got.Equal(now.Add(want)) {
			t.Errorf("Expiry of a signature with validity %v is in %v; want %v", validity, got.Sub(now), want)
		}
	}
	signer := ed25519Signer(t)
	approvers := proof.Approvers{Mailbox: "m", List: []proof.Approver{{Name: "ada", Min: task.ProofKey, Keys: []ssh.PublicKey{signer.PublicKey()}}}}
	row, c := decided(t, approvers, signer)
	const tolerated = proof.MaxValidity + time.Hour // clocks differ
	for before, counts := range map[time.Duration]bool{tolerated: true, tolerated + time.Second: false} {
		c.Decided = c.Proof.Expires.Add(-before)
		if _, err := approvers.Check(row, c, time.Now()); (err == nil) != counts {
			t.Errorf("a decision %v before its signature expires: %v; want it to count: %t", before, err, counts)
		}
	}
}

func TestAnApproverWithoutAProofNeedsNone(t *testing.T) {
	a := proof.Approvers{List: []proof.Approver{{Name: "bob"}}}
	if level, err := a.Check(task.Task{}, task.Consent{Decision: task.Approved, Decider: "bob"}, time.Now()); err != nil || level != task.ProofNone {
		t.Errorf("Check = %v, %v; want none, nil", level, err)
	}
}

func TestAnOwnTaskIsDecidedAsTheRuleSays(t *testing.T) {
	for _, c := range []struct {
		rule  task.SelfRule
		kind  string
		asker string
		why   string
	}{
		{task.SelfRefuse, "", "ada", "another approver must decide"},
		{task.SelfRefuse, proof.KindTerminal, "ADA", "another approver must decide"},
		{task.SelfRefuse, "", "lovelace", "another approver must decide"},
		{task.SelfRefuse, "", "upstream", ""},
		{task.SelfConfirm, "", "ada", "confirmed at a terminal"},
		{task.SelfConfirm, proof.KindTerminal, "ada", ""},
		{task.SelfConfirm, "", "upstream", ""},
		{task.SelfAllow, "", "ada", ""},
		{task.SelfRule(7), "", "upstream", ""},
	} {
		a := proof.Approvers{Self: c.rule, List: []proof.Approver{{Name: "ada", User: []string{"ada", "lovelace"}}}}
		decision := task.Consent{Decision: task.Approved, Decider: "ada", Proof: task.Proof{Kind: c.kind}}
		_, err := a.Check(task.Task{Requester: c.asker}, decision, time.Now())
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s, proof %q, requested by %s: %v; want %q", c.rule, c.kind, c.asker, err, c.why)
		}
	}
}

func TestAnUntouchedHardwareKeyDoesNotCount(t *testing.T) {
	for flags, want := range map[byte]task.ProofLevel{1: task.ProofPerson, 0: task.ProofNone} {
		token := newSoftToken(t, flags)
		a := proof.Approvers{Mailbox: "m", List: []proof.Approver{{Name: "ada", Min: task.ProofPerson, Keys: []ssh.PublicKey{token.PublicKey()}}}}
		row, c := decided(t, a, token)
		if level, err := a.Check(row, c, time.Now()); level != want || (err == nil) != (want == task.ProofPerson) {
			t.Errorf("flags %d: Check = %v, %v; want %v", flags, level, err, want)
		}
	}
}

func TestAnOrdinaryKeyIsNoPerson(t *testing.T) {
	signer := ed25519Signer(t)
	a := proof.Approvers{Mailbox: "m", List: []proof.Approver{{Name: "ada", Min: task.ProofPerson, Keys: []ssh.PublicKey{signer.PublicKey()}}}}
	row, c := decided(t, a, signer)
	if _, err := a.Check(row, c, time.Now()); err == nil || !strings.Contains(err.Error(), "need proof: person") {
		t.Errorf("Check = %v; want that a person's proof is needed", err)
	}
}

func TestADecisionAboutWorkNeedsTheProofOfItsApprover(t *testing.T) {
	signer := ed25519Signer(t)
	approvers := func(least task.ProofLevel) proof.Approvers {
		return proof.Approvers{Mailbox: "m", Self: task.SelfRefuse, List: []proof.Approver{
			{Name: "ada", Min: least, Keys: []ssh.PublicKey{signer.PublicKey()}},
		}}
	}
	row, c := decided(t, approvers(task.ProofKey), signer)
	row.Requester = "ada" // may apply what she asked for
	for name, one := range map[string]struct {
		least  task.ProofLevel
		change func(*task.Consent)
		why    string
	}{
		"signed":           {task.ProofKey, func(*task.Consent) {}, ""},
		"needing a person": {task.ProofPerson, func(*task.Consent) {}, "need proof: person"},
		"changed":          {task.ProofKey, func(c *task.Consent) { c.Digest = "another" }, "the proof of ada doesn't hold"},
		"of a stranger":    {task.ProofKey, func(c *task.Consent) { c.Decider = "mallory" }, "is no approver"},
		"unsigned":         {task.ProofKey, func(c *task.Consent) { c.Proof = task.Proof{} }, "need proof"},
	} {
		decision := c
		one.change(&decision)
		err := approvers(one.least).CheckSigned(row, decision, c.Expires.Add(-time.Minute))
		if (err == nil) != (one.why == "") || err != nil && !strings.Contains(err.Error(), one.why) {
			t.Errorf("a decision that is %s: %v; want %q", name, err, one.why)
		}
	}
}

func TestNobodyMayDecideIfTheRequesterIsTheOnlyApprover(t *testing.T) {
	ada, bob := proof.Approver{Name: "ada", User: []string{"ada", "alda"}}, proof.Approver{Name: "bob", User: []string{"bob"}}
	row := task.Task{Requester: "Alda"}
	for name, test := range map[string]struct {
		list []proof.Approver
		self task.SelfRule
		only string
		none bool
	}{
		"the requester alone":                {[]proof.Approver{ada}, task.SelfRefuse, "", true},
		"the requester, who may":             {[]proof.Approver{ada}, task.SelfConfirm, "", false},
		"another one, too":                   {[]proof.Approver{ada, bob}, task.SelfRefuse, "", false},
		"another one alone":                  {[]proof.Approver{bob}, task.SelfRefuse, "", false},
		"the requester as the permitted one": {[]proof.Approver{ada, bob}, task.SelfRefuse, "ada", true},
		"another one as the permitted one":   {[]proof.Approver{ada, bob}, task.SelfRefuse, "bob", false},
		"an unknown permitted one":           {[]proof.Approver{ada}, task.SelfRefuse, "eve", false},
		"no approver":                        {nil, task.SelfRefuse, "", false},
	} {
		why := proof.Approvers{List: test.list, Self: test.self}.WhyNobody(row, test.only)
		if (why != "") != test.none {
			t.Errorf("with %s, nobody may decide because %q; want a reason: %v", name, why, test.none)
		}
	}
}
