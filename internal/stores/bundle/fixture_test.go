package bundle

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// keyOf returns the same key for the same number.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func keysOf(numbers ...byte) seal.Keys {
	keys := seal.Keys{}
	for _, n := range numbers {
		public := seal.PrivateKey(keyOf(n)).Public()
		keys[seal.KeyID(public)] = public
	}
	return keys
}

// alice is an approver with a key.
func alice(t testing.TB) (ssh.Signer, proof.Approver) {
	t.Helper()
	signer, err := ssh.NewSignerFromSigner(keyOf(100))
	if err != nil {
		t.Fatal(err)
	}
	return signer, proof.Approver{Name: "alice", Keys: []ssh.PublicKey{signer.PublicKey()}}
}

// A made is a bundle to be written, which tests change before.
type made struct {
	manifest  Manifest
	approvals []approval
	events    []event
	seals     []seal.Seal
	keys      []seal.Successor
	bodies    map[string]string
	signer    seal.Signer
	replace   map[string]string // texts of the manifest or the statement
}

const (
	theRequest = `{"schema_version":"1.0","task_id":"t1"}`
	theHash    = "6f4ae556a8802abcf6de514ecd9e288ba9ee400595d7972aae2c86b84660fd5a" // the hash of its content

	thePlan   = `{"format":2,"request":"` + theHash + `","command":["./agent"],"tools":null,"budget":{},"versions":{"agent":"1.0"}}`
	theBare   = `{"format":2,"request":"` + theHash + `","command":["./agent"],"tools":null,"budget":{}}`
	theResult = `{"task_id":"t1","status":"ok"}`
	thePatch  = "--- a\n+++ b\n"
)

func digestOf(text string) string { return hexOf(sum256(text)) }

// newMade returns a run of two tasks: one that alice approved, with a result and a patch, and one that a person denied
// at a terminal. Half of the events are of other tasks, and the last two have no seal.
func newMade(t testing.TB) *made {
	t.Helper()
	m := &made{signer: seal.PrivateKey(keyOf(1))}
	m.manifest = Manifest{Format: format, Run: "run_1", Mailbox: "box-1", Time: noon.Add(time.Hour), Tasks: []Task{
		{"t1", 1, "ken", "ann", task.Done, envelope.OK}, {"t2", 1, "ken", "ann", task.Done, envelope.Rejected},
	}}
	m.bodies = map[string]string{
		"requests/000001.json": theRequest, "requests/000002.json": `{"task_id":"t2"}`,
		"results/000001.json": theResult, "results/000002.json": `{"task_id":"t2","status":"rejected"}`, "patches/000001.1.patch": thePatch,
		messagesName: `{"seq":1}` + "\n",
	}
	m.approve(t, "t1", envelope.ApprovalPre, digestOf(theBare), thePlan)
	m.approve(t, "t1", envelope.ApprovalPost, digestOf(theResult), "")
	m.approvals = append(m.approvals, approval{
		Task: "t2", Revision: 1, Stage: envelope.ApprovalPre, Digest: digestOf(theBare), Plan: thePlan, Asked: noon, Decision: task.Denied,
		Decided: noon.Add(time.Minute), Decider: "bob", Proof: task.Proof{Kind: proof.KindTerminal, Terminal: "/dev/pts/1"},
	})
	m.event("t1", task.KindTaskAccepted, `{}`)
	m.event("t1", task.KindApprovalApproved, `{"by":"alice","digest":"%.12s","stage":"pre"}`, digestOf(theBare))
	m.event("t2", task.KindApprovalDenied, `{"by":"bob","digest":"%.12s","stage":"pre"}`, digestOf(theBare))
	m.event("t2", task.KindTaskRejected, `{"reasons":["denied"],"result_sha256":"%s"}`, digestOf(m.bodies["results/000002.json"]))
	m.event("t1", task.KindTaskFinished, `{"status":"ok","patch_sha256":"%s","result_sha256":"%s"}`, digestOf(thePatch), digestOf(theResult))
	m.event("t1", task.KindApprovalApproved, `{"by":"alice","digest":"%.12s","stage":"post"}`, digestOf(theResult))
	m.seal(t, 0, 6)
	m.seal(t, 6, 10)
	return m
}

// approve adds an approval of alice.
func (m *made) approve(t testing.TB, id envelope.ID, stage envelope.Approval, digest, plan string) {
	t.Helper()
	a := approval{
		Task: id, Revision: 1, Stage: stage, Digest: digest, Plan: plan, Asked: noon, Expires: noon.Add(24 * time.Hour),
		Decision: task.Approved, Decided: noon.Add(time.Minute), Decider: "alice",
		Proof: task.Proof{Kind: proof.KindSSH, Expires: noon.Add(24 * time.Hour)},
	}
	signer, approver := alice(t)
	list := proof.Approvers{Mailbox: m.manifest.Mailbox, List: []proof.Approver{approver}}
	signed, err := proof.Sign(signer, list.StatementOf(a.row(), a.consent()))
	if err != nil {
		t.Fatal(err)
	}
	a.Proof.Signature, a.Proof.Key = string(signed), ssh.FingerprintSHA256(signer.PublicKey())
	a.Signed = a.statement(m.manifest.Mailbox)
	m.approvals = append(m.approvals, a)
}

// event adds an event of another task, as a hash, and one of the run.
func (m *made) event(id string, kind task.Kind, data string, args ...any) {
	seq := int64(len(m.events) + 1)
	other := seal.Event{Seq: seq, Time: noon.UnixMicro(), Kind: "task.queued", Task: "other", Revision: 1, Data: []byte("{}")}.Hash()
	m.events = append(m.events, event{Seq: seq, Hash: &other},
		event{Seq: seq + 1, Time: noon.UnixMicro(), Kind: string(kind), Task: id, Revision: 1, Data: fmt.Sprintf(data, args...)})
}

// seal seals events by their indexes.
func (m *made) seal(t testing.TB, from, to int) {
	t.Helper()
	var s seal.Seal
	if n := len(m.seals); n > 0 {
		s.Previous = m.seals[n-1].Hash
	}
	r := seal.NewRange(s.Previous)
	for _, e := range m.events[from:to] {
		r.Add(e.hash())
	}
	s.First, s.Last, s.Hash, s.Time = m.events[from].Seq, m.events[to-1].Seq, r.Sum(), noon.UnixMicro()
	s, err := s.Signed(m.signer)
	if err != nil {
		t.Fatal(err)
	}
	m.seals = append(m.seals, s)
}

// write returns the bytes of the bundle.
func (m *made) write(t testing.TB) []byte {
	t.Helper()
	s, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.file.Close()
	for name, body := range m.bodies {
		try(t, s.addBytes(name, noon, []byte(body)))
	}
	try(t, addLines(s, approvalsName, m.manifest.Time, m.approvals))
	try(t, addLines(s, eventsName, m.manifest.Time, m.events))
	try(t, addLines(s, sealsName, m.manifest.Time, m.seals))
	try(t, addLines(s, keysName, m.manifest.Time, m.keys))
	byName := func(a, b entry) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(s.entries, byName)
	for _, e := range s.entries {
		m.manifest.Files = append(m.manifest.Files, fileOf(e))
	}
	text, err := encode(m.manifest)
	try(t, err)
	if other := m.replace[manifestName]; other != "" {
		text = []byte(other)
	}
	try(t, s.addBytes(manifestName, m.manifest.Time, text))
	signed, err := sign(t.Context(), m.signer, m.manifest, s.entries[len(s.entries)-1].digest())
	try(t, err)
	if other := m.replace[statementName]; other != "" {
		signed = []byte(other)
	}
	try(t, s.addBytes(statementName, m.manifest.Time, signed))
	slices.SortFunc(s.entries, byName)
	var out bytes.Buffer
	try(t, writeTar(&out, s.entries, s.file))
	return out.Bytes()
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// trusting trusts the key with number 1, and alice.
func trusting(t testing.TB) Trust {
	t.Helper()
	_, approver := alice(t)
	return Trust{Keys: keysOf(1), Approvers: []proof.Approver{approver}}
}

func verifyBytes(t testing.TB, file []byte, trust Trust) (Report, error) {
	t.Helper()
	return Verify(t.Context(), bytes.NewReader(file), int64(len(file)), trust)
}

// said returns the claims of a report, one a line: the status and the claim, and the task.
func (r Report) said() string {
	var b strings.Builder
	for _, c := range r.Claims {
		fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.Status, c.What, c.Task)))
	}
	return b.String()
}

// readFile returns a file of a bundle.
func readFile(t testing.TB, file []byte, name string) []byte {
	t.Helper()
	b, err := open(bytes.NewReader(file), int64(len(file)))
	try(t, err)
	e := b.find(name)
	if e == nil {
		t.Fatalf("the bundle has no %s", name)
	}
	text, err := io.ReadAll(io.NewSectionReader(bytes.NewReader(file), e.offset, e.size))
	try(t, err)
	return text
}
