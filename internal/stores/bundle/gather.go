package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

// addEvents adds the events of the run, the seals that cover them, and the hashes of the other events that these seals
// cover.
func (x *exporter) addEvents(ctx context.Context) error {
	own := map[int64]bool{}
	for _, row := range x.rows {
		own[row.Seq] = true
	}
	seqs, err := x.eventSeqs(ctx)
	if err != nil {
		return err
	}
	seals, err := x.Ledger.SealsSince(ctx, 0)
	if err != nil {
		return err
	}
	var covering []seal.Seal
	var lines []event
	add := func(first, last int64, sealed bool) error {
		part, err := x.Ledger.StoredEvents(ctx, first, last)
		all := x.eventLines(part, own)
		if !sealed {
			all = slices.DeleteFunc(all, func(e event) bool { return e.Hash != nil })
		}
		lines = append(lines, all...)
		return err
	}
	for _, s := range append(seals, seal.Seal{First: math.MaxInt64}) {
		before, within := below(seqs, s.First), below(seqs, s.Last+1)
		if before > 0 { // without a seal
			err = add(seqs[0], seqs[before-1], false)
		}
		if within > before && err == nil {
			covering, err = append(covering, s), add(s.First, s.Last, true)
		}
		if err != nil {
			return err
		}
		seqs = seqs[max(before, within):]
	}
	x.time = x.latest(lines)
	if err := addLines(x.spool, eventsName, x.time, lines); err != nil {
		return err
	}
	return addLines(x.spool, sealsName, x.time, covering)
}

// below returns how many of the ordered seqs are below a limit.
func below(seqs []int64, limit int64) int {
	n, _ := slices.BinarySearch(seqs, limit)
	return n
}

// eventSeqs returns the seqs of the events of the run, in their order.
func (x *exporter) eventSeqs(ctx context.Context) (seqs []int64, err error) {
	for i, row := range x.rows {
		if slices.ContainsFunc(x.rows[:i], func(earlier task.Task) bool { return earlier.ID == row.ID }) {
			continue // an earlier revision
		}
		for after, more := int64(0), true; more; {
			page, err := x.Ledger.Events(ctx, row.ID, after, eventPage)
			if err != nil {
				return nil, err
			}
			for _, e := range page {
				seqs, after = append(seqs, e.Seq), e.Seq
			}
			more = len(page) == eventPage
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

// eventPage is how many events are read at once.
const eventPage = 1000

// latest returns the time of the latest event of the run, or of its latest task without events, to the second.
func (x *exporter) latest(lines []event) (at time.Time) {
	for _, row := range x.rows {
		at = later(at, row.Received)
	}
	for _, e := range lines {
		if e.Hash == nil {
			at = later(at, time.UnixMicro(e.Time))
		}
	}
	return at.UTC().Truncate(time.Second)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// eventLines returns the lines for stored events: those of the run whole, unless their texts are redacted, and of the
// others the hashes.
func (x *exporter) eventLines(stored []ledger.StoredEvent, own map[int64]bool) []event {
	all := make([]event, len(stored))
	for i, e := range stored {
		all[i] = event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Task: e.Task, Revision: e.Revision, Data: string(e.Data)}
		if hash := e.Hash; e.Pruned || !own[e.Of] || !utf8.Valid(e.Data) || x.redacts(e) {
			all[i] = event{Seq: e.Seq, Hash: &hash}
		}
	}
	return all
}

// kept are the kinds of events whose data have no text of a request or an answer.
var kept = []task.Kind{
	task.KindTaskQueued, task.KindTaskStarted, task.KindTaskWaiting, task.KindTaskClaimed, task.KindBudgetReserved, task.KindBudgetSettled,
	task.KindApprovalAsked, task.KindApprovalApproved, task.KindApprovalDenied, task.KindApprovalExpired,
}

// redacts reports whether an event may have text that is left out. Of the ends of runs, those that went well have none.
func (x *exporter) redacts(e ledger.StoredEvent) bool {
	if len(x.leaveOut) == 0 || slices.Contains(kept, task.Kind(e.Kind)) {
		return false
	}
	var data struct {
		Message string `json:"message"`
	}
	return task.Kind(e.Kind) != task.KindTaskFinished || json.Unmarshal(e.Data, &data) != nil || data.Message != ""
}

// A message is a line of messages.jsonl.
type message struct {
	Seq      int64            `json:"seq"`
	Time     time.Time        `json:"time"`
	Dialect  envelope.Dialect `json:"dialect"`
	Act      envelope.Act     `json:"act"`
	ID       string           `json:"id,omitempty"`
	Cause    string           `json:"cause,omitempty"`
	Task     envelope.ID      `json:"task_id"`
	Revision int              `json:"revision"`
	Thread   string           `json:"thread,omitempty"`
	From     string           `json:"from"`
	To       string           `json:"to"`
	Via      task.Via         `json:"via"`
	Body     string           `json:"body,omitempty"`
	Redacted *redacted        `json:"redacted,omitempty"` // instead of the body
}

// addMessages adds the messages about the tasks of the run.
func (x *exporter) addMessages(ctx context.Context) error {
	var all []message
	for _, row := range x.rows {
		list, err := x.Ledger.About(ctx, row.Seq)
		if err != nil {
			return err
		}
		for _, m := range list {
			line := message{m.Seq, m.Time, m.Dialect, m.Act, m.ID, m.Cause, row.ID, row.Revision, m.Thread, m.From, m.To, m.Via, string(m.Body), nil}
			if len(x.leaveOut) > 0 || !utf8.Valid(m.Body) {
				line.Body, line.Redacted = "", &redacted{hexOf(sha256.Sum256(m.Body)), len(m.Body)}
			}
			all = append(all, line)
		}
	}
	slices.SortFunc(all, func(a, b message) int { return cmp.Compare(a.Seq, b.Seq) })
	return addLines(x.spool, messagesName, x.time, all)
}
