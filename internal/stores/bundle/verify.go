package bundle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

// Trust is what a verifier knows from elsewhere.
type Trust struct {
	Keys      seal.Keys        // of the owner of the mailbox
	Approvers []proof.Approver // with their keys; nil: no approval can be checked
	Require   task.ProofLevel  // which each decision of a person needs; ProofNone: none
}

// Verify checks all claims of a bundle. It reads no other file. An error that wraps ErrNoBundle says that there is
// nothing to check. The memory that it needs doesn't grow with the bundle.
func Verify(ctx context.Context, file io.ReaderAt, size int64, trust Trust) (Report, error) {
	b, err := open(file, size)
	if err != nil {
		return Report{}, err
	}
	v := newVerifier(b, trust)
	if err := v.verify(ctx); err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrNoBundle, err)
	}
	v.OK = !slices.ContainsFunc(v.Claims, func(c Claim) bool { return c.Status == Bad })
	return v.Report, nil
}

// A verifier checks one bundle.
type verifier struct {
	*bundle
	Report
	trust   Trust
	keys    seal.Keys // given, and those that replaced them
	numbers map[taskKey]int
	wanted  map[patchKey]bool // the patches of the bundle
	found   found
}

func newVerifier(b *bundle, trust Trust) *verifier {
	v := &verifier{
		bundle: b, trust: trust, Report: Report{Run: b.manifest.Run}, numbers: map[taskKey]int{}, wanted: map[patchKey]bool{},
		found: found{map[int]setter{}, map[patchKey]int64{}, map[int]bool{}, map[decidedKey]int64{}},
	}
	for i, t := range b.manifest.Tasks {
		v.numbers[taskKey{t.ID, t.Revision}] = i + 1
	}
	return v
}

func (v *verifier) verify(ctx context.Context) error {
	if err := v.readKeys(); err != nil {
		return err
	}
	v.checkWhole()
	if err := v.checkSignature(ctx); err != nil {
		return err
	}
	decisions, err := v.readApprovals()
	if err != nil {
		return err
	}
	for _, d := range decisions {
		v.found.decided[d.key] = 0
	}
	patches, err := v.patches()
	if err != nil {
		return err
	}
	if err := v.readEvents(); err != nil {
		return err
	}
	v.reportDecisions(decisions)
	if err := v.reportResults(); err != nil {
		return err
	}
	v.reportPatches(patches)
	return nil
}

// readKeys adds to the given keys those that replaced them, as the old ones signed.
func (v *verifier) readKeys() error {
	var successors []seal.Successor
	if e := v.find(keysName); e != nil && e.size > maxKeys {
		return fmt.Errorf("%s has more than %d KiB", keysName, maxKeys>>10)
	}
	in := v.lines(keysName)
	for {
		line, err := in.next()
		if isBad(err) {
			return err
		}
		if err != nil {
			v.keys = v.trust.Keys.Follow(successors)
			return nil
		}
		var s seal.Successor
		if err := json.Unmarshal(line, &s, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("read line %d of %s: %w", in.n, keysName, err)
		}
		successors = append(successors, s)
	}
}

func (v *verifier) checkWhole() {
	if err := v.manifest.differsFrom(v.entries); err != nil {
		v.say("bundle", Bad, "%v", err)
		return
	}
	for _, e := range v.entries {
		for _, folder := range []string{"requests", "results", "patches"} {
			if n, _ := numberOf(e.name, folder); n > len(v.manifest.Tasks) {
				v.say("bundle", Bad, "%s is about no task of the manifest", e.name)
				return
			}
		}
	}
	v.say("bundle", Good, "%s, as the manifest lists them", count(len(v.manifest.Files), "file"))
}

func (v *verifier) checkSignature(ctx context.Context) error {
	signed, err := v.small(statementName, maxStatement)
	if err != nil {
		return err
	}
	key, err := verifyStatement(ctx, signed, v.keys, v.manifest, v.find(manifestName).digest())
	if err != nil {
		v.say("signature", Bad, "%v", err)
		return nil
	}
	v.say("signature", Good, "key %s signed the manifest", key)
	return nil
}

// reportDecisions makes the claims about decisions, and whether they are proven as is required.
func (v *verifier) reportDecisions(all []decided) {
	unproven := 0
	for _, d := range all {
		if seq := v.found.decided[d.key]; seq > 0 {
			d.claim.Text += fmt.Sprintf("; event %d", seq)
		} else {
			d.claim.Text += "; no event of the bundle has it"
		}
		v.add(d.claim)
		v.add(d.plan)
		if d.asked.What != "" {
			v.add(d.asked)
		}
		if d.claim.level < v.trust.Require {
			unproven++
		}
	}
	if v.trust.Require == task.ProofNone {
		return
	}
	switch {
	case len(all) == 0:
		v.say("proof", Bad, "proof %s is required, and no person decided", v.trust.Require)
	case unproven > 0:
		v.say("proof", Bad, "proof %s is required, and %d of %s not verified with it", v.trust.Require, unproven, count(len(all), "decision"))
	default:
		v.say("proof", Good, "%s verified with proof %s, which is required", count(len(all), "decision"), v.trust.Require)
	}
}

// result returns the file with the result of a task by its number; nil for none.
func (v *verifier) result(number int) *entry {
	if e := v.find(fmt.Sprintf("results/%06d.json", number)); e != nil {
		return e
	}
	return v.find(fmt.Sprintf("results/%06d.redacted.json", number))
}

// digestOf returns the digest of a body, which may be redacted.
func (v *verifier) digestOf(e *entry) (string, error) {
	if !isRedacted(e.name) {
		return e.digest(), nil
	}
	text, err := v.small(e.name, maxRedacted)
	if err != nil {
		return "", err
	}
	var left redacted
	if err := json.Unmarshal(text, &left, json.RejectUnknownMembers(true)); err != nil {
		return "", fmt.Errorf("read %s: %w", e.name, err)
	}
	return left.SHA256, nil
}

func (v *verifier) reportResults() error {
	for i, t := range v.manifest.Tasks {
		e, set := v.result(i+1), v.found.results[i+1]
		switch {
		case e == nil && set.seq > 0:
			v.add(about("result", t, Unchecked, "event %d has its digest, and the result is not in the bundle", set.seq))
			continue
		case e == nil:
			continue
		}
		digest, err := v.digestOf(e)
		if err != nil {
			return err
		}
		switch {
		case set.seq == 0:
			v.add(about("result", t, Unchecked, "no event of the bundle has its digest, %.64s", digest))
		case set.digest != digest:
			v.add(about("result", t, Bad, "%s has digest %.64s, and event %d has %.64s", e.name, digest, set.seq, set.digest))
		case isRedacted(e.name):
			v.add(about("result", t, Unchecked, "it is redacted; event %d has its digest, %.64s", set.seq, digest))
		default:
			v.add(about("result", t, Good, "event %d has its digest, %.64s", set.seq, digest))
		}
		if err := v.reportArtifacts(t, e); err != nil {
			return err
		}
	}
	return nil
}

// maxNaming limits a result that is searched for the names of artifacts.
const maxNaming = 8 << 20

// reportArtifacts says which artifacts a result names. Their bytes are not in the bundle.
func (v *verifier) reportArtifacts(t Task, e *entry) error {
	switch {
	case isRedacted(e.name):
		return nil
	case e.size > maxNaming:
		v.add(about("artifact", t, Unchecked, "%s is too large to be searched for the names of artifacts", e.name))
		return nil
	}
	text, err := v.small(e.name, maxNaming)
	if err != nil {
		return err
	}
	if named := envelope.ArtifactsIn(text); len(named) > 0 {
		v.add(about("artifact", t, Unchecked, "%s, which the bundle doesn't have; compare the files with the names, the first is %s",
			count(len(named), "artifact"), envelope.ArtifactURI(named[0])))
	}
	return nil
}

// A patch is a patch of the bundle, or its digest.
type patch struct {
	entry   *entry
	key     patchKey
	attempt int
}

// patches lists the patches of the bundle.
func (v *verifier) patches() (all []patch, err error) {
	for i := range v.entries {
		e := &v.entries[i]
		number, attempt := numberOf(e.name, "patches")
		if number == 0 || number > len(v.manifest.Tasks) {
			continue
		}
		digest, err := v.digestOf(e)
		if err != nil {
			return nil, err
		}
		p := patch{e, patchKey{number, digest}, attempt}
		v.wanted[p.key] = true
		all = append(all, p)
	}
	return all, nil
}

func (v *verifier) reportPatches(all []patch) {
	for _, p := range all {
		t, seq := v.manifest.Tasks[p.key.task-1], v.found.patches[p.key]
		switch {
		case seq == 0 && v.found.patched[p.key.task]:
			v.add(about("patch", t, Bad, "%s has digest %.64s, and no event of the bundle has it", p.entry.name, p.key.digest))
		case seq == 0:
			v.add(about("patch", t, Unchecked, "no event of the bundle has the digest of run %d, %.64s", p.attempt, p.key.digest))
		case isRedacted(p.entry.name):
			v.add(about("patch", t, Unchecked, "it is redacted; event %d has the digest of run %d, %.64s", seq, p.attempt, p.key.digest))
		default:
			v.add(about("patch", t, Good, "event %d has the digest of run %d, %.64s", seq, p.attempt, p.key.digest))
		}
	}
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
