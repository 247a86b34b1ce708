package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

func sum256(text string) [32]byte { return sha256.Sum256([]byte(text)) }

const wholeClaims = `ok: bundle
ok: signature
ok: seals
not checked: seals
ok: approval t1 r1
ok: plan t1 r1
ok: request t1 r1
ok: approval t1 r1
ok: answer t1 r1
not checked: approval t2 r1
ok: plan t2 r1
not checked: request t2 r1
ok: result t1 r1
ok: result t2 r1
ok: patch t1 r1
`

func TestEachClaimOfAWholeBundleIsChecked(t *testing.T) {
	r, err := verifyBytes(t, newMade(t).write(t), trusting(t))
	if err != nil || !r.OK || r.said() != wholeClaims {
		t.Errorf("Verify = %v, %v\n%s\nwant ok\n%s", r.OK, err, r.said(), wholeClaims)
	}
	c := r.Claims[4]
	if c.Level != "ssh" || !strings.Contains(c.Text, "pre approved by alice") || !strings.Contains(c.Text, digestOf(theBare)) {
		t.Errorf("the claim of the approval is %+v; want who, which level and which digest", c)
	}
}

func TestArtifactsOfAResultAreNotChecked(t *testing.T) {
	m := newMade(t)
	result := fmt.Sprintf(`{"task_id":"t2","artifact_refs":[{"uri":"artifact:sha256:%s"},{"uri":"artifact:sha256:%s"}]}`,
		digestOf("x"), digestOf("y"))
	before := digestOf(m.bodies["results/000002.json"])
	m.bodies["results/000002.json"] = result
	for i := range m.events {
		m.events[i].Data = strings.Replace(m.events[i].Data, before, digestOf(result), 1)
	}
	m.seals = nil
	m.seal(t, 0, 6)
	m.seal(t, 6, 10)
	r, err := verifyBytes(t, m.write(t), trusting(t))
	want := strings.Replace(wholeClaims, "ok: result t2 r1\n", "ok: result t2 r1\nnot checked: artifact t2 r1\n", 1)
	if err != nil || !r.OK || r.said() != want {
		t.Errorf("Verify = %v, %v\n%s\nwant ok\n%s", r.OK, err, r.said(), want)
	}
}

func TestOneByteThatIsChangedIsFound(t *testing.T) {
	file, trust := newMade(t).write(t), trusting(t)
	random := rand.New(rand.NewPCG(1, 2))
	positions := random.Perm(len(file))[:min(5000, len(file))]
	const workers = 2
	var all sync.WaitGroup
	for w := range workers {
		flips := rand.New(rand.NewPCG(3, uint64(w)))
		all.Go(func() {
			changed := append([]byte(nil), file...)
			for i := w; i < len(positions); i += workers {
				at := positions[i]
				changed[at] ^= byte(1 + flips.IntN(255))
				if r, err := verifyBytes(t, changed, trust); err == nil && r.OK {
					t.Errorf("byte %d was changed from %q to %q, and all claims are good", at, file[at], changed[at])
				}
				changed[at] = file[at]
			}
		})
	}
	all.Wait()
}

// Who has the key can say anything; but what can be computed has to be so.
func TestAClaimThatIsNotSoIsBad(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*made)
		bad    string
	}{
		"a result that the event hasn't": {func(m *made) { m.bodies["results/000002.json"] = "{}" }, "result t2 r1"},
		"a patch that no event has":      {func(m *made) { m.bodies["patches/000001.1.patch"] = "--- c\n" }, "patch t1 r1"},
		"an event in a sealed range":     {func(m *made) { m.events[3].Data = `{"by":"mallory"}` }, "seals"},
		"an event that was removed":      {func(m *made) { m.events = append(m.events[:4], m.events[5:]...) }, "seals"},
		"a hash that was changed":        {func(m *made) { m.events[0].Hash = &seal.Hash{1} }, "seals"},
		"a seal with another range":      {func(m *made) { m.seals[0].Last++ }, "seals"},
		"seals in another order":         {func(m *made) { m.seals[0], m.seals[1] = m.seals[1], m.seals[0] }, "seals"},
		"a plan that wasn't approved":    {func(m *made) { m.approvals[0].Plan = `{"command":["rm"]}` }, "plan t1 r1"},
		"a request that wasn't approved": {func(m *made) {
			m.bodies["requests/000001.json"] = strings.Replace(theRequest, "t1", "t3", 1)
		}, "request t1 r1"},
		"a text that wasn't signed":     {func(m *made) { m.approvals[0].Signed += "x" }, "approval t1 r1"},
		"a decision that wasn't signed": {func(m *made) { m.approvals[0].Decision = task.Denied }, "approval t1 r1"},
		"another answer that was approved": {func(m *made) {
			m.bodies["results/000001.json"] = "{}"
			m.event("t1", task.KindTaskFinished, `{"result_sha256":"%s"}`, digestOf("{}"))
		}, "answer t1 r1"},
		"a file of no task": {func(m *made) { m.bodies["results/000009.json"] = "{}" }, "bundle"},
	} {
		m := newMade(t)
		c.change(m)
		r, err := verifyBytes(t, m.write(t), trusting(t))
		if err != nil || r.OK || !strings.Contains(r.said(), "bad: "+c.bad+"\n") {
			t.Errorf("%s: Verify = %v, %v\n%s\nwant bad: %s", name, r.OK, err, r.said(), c.bad)
		}
	}
}

func TestAnotherKeyIsBad(t *testing.T) {
	trust := trusting(t)
	trust.Keys = keysOf(2)
	r, err := verifyBytes(t, newMade(t).write(t), trust)
	if err != nil || r.OK || !strings.Contains(r.said(), "bad: signature\n") {
		t.Errorf("Verify with another key = %v, %v\n%s", r.OK, err, r.said())
	}
}

func TestAKeyThatTheGivenOneSignedAsItsSuccessorCounts(t *testing.T) {
	m := newMade(t) // its seals are those of key 1
	old, next := seal.PrivateKey(keyOf(1)), seal.PrivateKey(keyOf(2))
	s := seal.Successor{Key: next.Key(), Public: next.Public(), Time: 5, Replaces: old.Key()}
	var err error
	s.Signature, err = old.Sign(s.Text())
	try(t, err)
	m.signer, m.keys = next, []seal.Successor{s}
	file := m.write(t)
	r, err := verifyBytes(t, file, trusting(t))
	if err != nil || !r.OK || r.said() != wholeClaims {
		t.Errorf("Verify with the old key = %v, %v\n%s", r.OK, err, r.said())
	}
	trust := trusting(t)
	trust.Keys = keysOf(2)
	r, err = verifyBytes(t, file, trust)
	if err != nil || !r.OK || strings.Count(r.said(), "not checked: seals\n") != 2 {
		t.Errorf("Verify with the new key alone = %v, %v\n%s\nwant the signatures of the old seals not checked", r.OK, err, r.said())
	}
	m = newMade(t)
	s.Signature[0] ^= 1
	m.signer, m.keys = next, []seal.Successor{s}
	if r, err = verifyBytes(t, m.write(t), trusting(t)); err != nil || r.OK {
		t.Errorf("Verify with a successor that the old key didn't sign = %v, %v\n%s", r.OK, err, r.said())
	}
}

func TestAnApproverWhoIsNotKnownIsNotChecked(t *testing.T) {
	file := newMade(t).write(t)
	for name, change := range map[string]func(*Trust){
		"no approvers":    func(trust *Trust) { trust.Approvers = nil },
		"another key":     func(trust *Trust) { trust.Approvers[0].Keys = nil },
		"another of them": func(trust *Trust) { trust.Approvers[0].Name = "carol" },
	} {
		trust := trusting(t)
		change(&trust)
		r, err := verifyBytes(t, file, trust)
		if err != nil || !r.OK || strings.Count(r.said(), "not checked: approval t1 r1\n") != 2 {
			t.Errorf("%s: Verify = %v, %v\n%s\nwant both approvals of alice not checked", name, r.OK, err, r.said())
		}
		trust.Require = task.ProofKey
		r, err = verifyBytes(t, file, trust)
		if err != nil || r.OK || !strings.Contains(r.said(), "bad: proof\n") {
			t.Errorf("%s: Verify with a required proof = %v, %v\n%s", name, r.OK, err, r.said())
		}
	}
}

func TestRequiredProofsNeedADecision(t *testing.T) {
	trust := trusting(t)
	trust.Require = task.ProofKey
	m := newMade(t)
	m.approvals = m.approvals[:2]
	r, err := verifyBytes(t, m.write(t), trust)
	if err != nil || !r.OK || !strings.Contains(r.said(), "ok: proof\n") {
		t.Errorf("Verify of two signed decisions = %v, %v\n%s", r.OK, err, r.said())
	}
	m = newMade(t)
	m.approvals = nil
	if r, err = verifyBytes(t, m.write(t), trust); err != nil || r.OK {
		t.Errorf("Verify without a decision = %v, %v\n%s", r.OK, err, r.said())
	}
}

func TestWhatIsRedactedIsNotChecked(t *testing.T) {
	m := newMade(t)
	for name, left := range map[string]string{"results/000001": theResult, "patches/000001.1": thePatch} {
		delete(m.bodies, name+".json")
		delete(m.bodies, name+".patch")
		text, err := encode(redacted{digestOf(left), len(left)})
		try(t, err)
		m.bodies[name+".redacted.json"] = string(text)
	}
	m.approvals[0].Plan = ""
	r, err := verifyBytes(t, m.write(t), trusting(t))
	if err != nil || !r.OK {
		t.Fatalf("Verify = %v, %v\n%s", r.OK, err, r.said())
	}
	for _, want := range []string{"plan t1 r1", "answer t1 r1", "result t1 r1", "patch t1 r1"} {
		if !strings.Contains(r.said(), "not checked: "+want+"\n") {
			t.Errorf("Verify says\n%s\nwant not checked: %s", r.said(), want)
		}
	}
	m = newMade(t)
	delete(m.bodies, "results/000001.json")
	m.bodies["results/000001.redacted.json"] = `{"sha256":"` + strings.Repeat("0", 64) + `","size":1}`
	if r, err = verifyBytes(t, m.write(t), trusting(t)); err != nil || r.OK {
		t.Errorf("Verify of another hash = %v, %v\n%s", r.OK, err, r.said())
	}
}

func TestFilesOfLinesThatCannotBeReadAreNoBundle(t *testing.T) {
	for name, change := range map[string]func(*made){
		"an approval of no task":  func(m *made) { m.approvals[0].Task = "t9" },
		"an event of no task":     func(m *made) { m.events[1].Task = "t9" },
		"events in another order": func(m *made) { m.events[1].Seq = 9 },
		"an event with a hash":    func(m *made) { m.events[1].Hash = &seal.Hash{} },
		"another format":          func(m *made) { m.manifest.Format = 2 },
		"a task without an id":    func(m *made) { m.manifest.Tasks[0].ID = "../x" },
		"a line that is too long": func(m *made) {
			m.bodies[messagesName] = "x"
			m.approvals = nil
			m.bodies[approvalsName] = strings.Repeat("x", maxLine+1)
		},
	} {
		m := newMade(t)
		change(m)
		if r, err := verifyBytes(t, m.write(t), trusting(t)); !errors.Is(err, ErrNoBundle) {
			t.Errorf("%s: Verify = %v, %v; want %v", name, r.OK, err, ErrNoBundle)
		}
	}
}

func TestTheSameBundleHasTheSameBytes(t *testing.T) {
	if a, b := newMade(t).write(t), newMade(t).write(t); string(a) != string(b) {
		t.Error("two bundles of one run differ")
	}
}

// BenchmarkVerify is the promise about a bundle of 100,000 events.
func BenchmarkVerify(b *testing.B) {
	m := newMade(b)
	m.seals = nil
	for len(m.events) < 100_000 {
		m.event("t1", task.KindTaskProgress, `{"message":"reading file %d of the repository","percent":%d}`, len(m.events), len(m.events)%100)
	}
	for at := 0; at+1000 <= len(m.events); at += 1000 {
		m.seal(b, at, at+1000)
	}
	file, trust := m.write(b), trusting(b)
	began, n := time.Now(), 0
	for b.Loop() {
		if r, err := verifyBytes(b, file, trust); err != nil || !r.OK {
			b.Fatal(err, r.said())
		}
		n++
	}
	b.ReportMetric(float64(n*len(m.events))/time.Since(began).Seconds(), "events/s")
}
