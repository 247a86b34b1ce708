package bundle

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

// eventDigits is how much of the digest of an approval its events have.
const eventDigits = 12

// digits is how many hexadecimal digits a SHA-256 has.
const digits = 64

// An event is a line of events.jsonl: an event of the run as the ledger stores it, or the hash of another one in a
// sealed range.
type event struct {
	Seq      int64      `json:"seq"`
	Time     int64      `json:"time,omitzero"` // microseconds since 1970
	Kind     string     `json:"kind,omitempty"`
	Task     string     `json:"task_id,omitempty"`
	Revision int64      `json:"revision,omitzero"`
	Data     string     `json:"data,omitempty"` // a JSON object, the bytes that are stored
	Hash     *seal.Hash `json:"hash,omitempty"` // instead of all others
}

func (e event) hash() seal.Hash {
	if e.Hash != nil {
		return *e.Hash
	}
	return seal.Event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Task: e.Task, Revision: e.Revision, Data: []byte(e.Data)}.Hash()
}

// A taskKey names a revision of a task.
type taskKey struct {
	id       envelope.ID
	revision int
}

// A patchKey names a patch of a task by its number.
type patchKey struct {
	task   int
	digest string
}

// A setter is the last event that set the result of a task.
type setter struct {
	seq    int64
	digest string
}

// found is what the events of a bundle say about its other files.
type found struct {
	results map[int]setter // by the number of the task
	patches map[patchKey]int64
	patched map[int]bool // tasks with patches
	decided map[decidedKey]int64
}

// readEvents reads the events, and checks the seals that cover them. What the events say about the files and the
// decisions of the bundle is in v.found.
func (v *verifier) readEvents() error {
	s := &sealing{in: v.lines(sealsName), keys: v.keys, unknown: map[string]int{}}
	events, last := v.lines(eventsName), int64(0)
	if err := s.next(); err != nil {
		return err
	}
	for {
		line, err := events.next()
		if isBad(err) {
			return err
		}
		if err != nil {
			break
		}
		var e event
		if err := json.Unmarshal(line, &e, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("read line %d of %s: %w", events.n, eventsName, err)
		}
		switch {
		case e.Seq <= last:
			return fmt.Errorf("line %d of %s: event %d comes after event %d", events.n, eventsName, e.Seq, last)
		case e.Hash != nil && e.Kind+e.Task+e.Data != "":
			return fmt.Errorf("line %d of %s: event %d has a hash beside its content", events.n, eventsName, e.Seq)
		}
		last = e.Seq
		if err := v.note(e); err != nil {
			return fmt.Errorf("line %d of %s: %w", events.n, eventsName, err)
		}
		if err := s.add(e); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	s.report(v)
	return nil
}

// note keeps what an event says about files and decisions.
func (v *verifier) note(e event) error {
	if e.Hash != nil {
		return nil
	}
	number := v.numbers[taskKey{envelope.ID(e.Task), int(e.Revision)}]
	if number == 0 {
		return fmt.Errorf("event %d is about no task of the bundle", e.Seq)
	}
	if !strings.Contains(e.Data, `_sha256"`) && !isDecision(e.Kind) {
		return nil
	}
	var data struct {
		Result string `json:"result_sha256"`
		Patch  string `json:"patch_sha256"`
		Stage  string `json:"stage"`
		Digest string `json:"digest"`
		By     string `json:"by"`
	}
	if json.Unmarshal([]byte(e.Data), &data) != nil {
		return nil // data of an older version
	}
	if len(data.Result) == digits {
		v.found.results[number] = setter{e.Seq, data.Result}
	}
	if len(data.Patch) == digits && e.Kind != string(task.KindWorktreeApplied) && e.Kind != string(task.KindWorktreeDiscarded) {
		v.found.patched[number] = true
		if key := (patchKey{number, data.Patch}); v.wanted[key] {
			v.found.patches[key] = e.Seq
		}
	}
	if isDecision(e.Kind) {
		key := decidedKey{number, task.Kind(e.Kind), data.Stage, data.Digest, data.By}
		if _, known := v.found.decided[key]; known {
			v.found.decided[key] = e.Seq
		}
	}
	return nil
}

func isDecision(kind string) bool {
	return kind == string(task.KindApprovalApproved) || kind == string(task.KindApprovalDenied)
}

// sealing compares events with seals. Both come in the order of their seqs.
type sealing struct {
	in      *lines
	keys    seal.Keys
	at      *seal.Seal // whose range is being read; nil: none is left
	sum     *seal.Range
	before  *seal.Seal
	seals   int
	own     int // events of the run with a seal
	others  int // hashes with a seal
	first   int64
	last    int64
	open    int            // events of the run without a seal
	starts  int            // seals that don't name the seal right before them
	unknown map[string]int // seals by keys that were not given
	wrong   string         // the first thing that is wrong
}

func (s *sealing) fail(format string, args ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf(format, args...)
	}
}

// maxUnknown limits the keys that were not given.
const maxUnknown = 10

// next reads the next seal.
func (s *sealing) next() error {
	line, err := s.in.next()
	if errors.Is(err, io.EOF) {
		s.at = nil
		return nil
	}
	if err != nil {
		return err
	}
	next := &seal.Seal{}
	if err := json.Unmarshal(line, next, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("read line %d of %s: %w", s.in.n, sealsName, err)
	}
	s.before, s.at, s.sum = s.at, next, seal.NewRange(next.Previous)
	s.seals++
	if s.before == nil {
		s.first = next.First
	}
	s.last = next.Last
	switch {
	case next.First > next.Last || s.before != nil && next.First <= s.before.Last:
		s.fail("the seal of events %d to %d is out of order", next.First, next.Last)
	case s.before != nil && next.First == s.before.Last+1 && next.Previous != s.before.Hash:
		s.starts++
	}
	if s.keys[next.Key] == nil {
		if s.unknown[next.Key]++; len(s.unknown) > maxUnknown {
			return fmt.Errorf("%s has seals of more than %d keys", sealsName, maxUnknown)
		}
	} else if err := next.Verify(s.keys); err != nil {
		s.fail("the seal of events %d to %d: %v", next.First, next.Last, err)
	}
	return nil
}

// add adds an event to the range of its seal.
func (s *sealing) add(e event) error {
	for s.at != nil && s.at.Last < e.Seq {
		s.compare()
		if err := s.next(); err != nil {
			return err
		}
	}
	if s.at == nil || e.Seq < s.at.First {
		if e.Hash == nil {
			s.open++
		}
		return nil
	}
	if e.Hash == nil {
		s.own++
	} else {
		s.others++
	}
	s.sum.Add(e.hash())
	return nil
}

func (s *sealing) compare() {
	if s.sum.Sum() != s.at.Hash {
		s.fail("events %d to %d are not those that were sealed", s.at.First, s.at.Last)
	}
}

// end compares the seals that are left.
func (s *sealing) end() error {
	for s.at != nil {
		s.compare()
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// report makes the claims about seals.
func (s *sealing) report(v *verifier) {
	switch {
	case s.wrong != "":
		v.say("seals", Bad, "%s", s.wrong)
	case s.seals > 0:
		v.say("seals", Good, "%s of events %d to %d: right for %s of the run, and %s of others as hashes",
			count(s.seals, "seal"), s.first, s.last, count(s.own, "event"), count(s.others, "event"))
	}
	if s.open > 0 {
		v.say("seals", Unchecked, "%s of the run without a seal", count(s.open, "event"))
	}
	if s.starts > 0 {
		v.say("seals", Unchecked, "%s without the one right before: the ledger was lost or restored there", count(s.starts, "seal"))
	}
	for _, key := range sortedKeys(s.unknown) {
		v.say("seals", Unchecked, "%s with a signature of key %.40q, which was not given", count(s.unknown[key], "seal"), key)
	}
}
