package index

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mailboxd/internal/task"
)

// A Task is a revision with the places of its bodies.
type Task struct {
	task.Task
	Request, Result Place
}

// TaskRow is the row of a revision. A zero place keeps the one that the index has.
func TaskRow(t *task.Task, request, result Place) Change {
	return Change{tasks, appendTask(nil, t, request, result)}
}

// AppendTask appends TaskRow as JSON, which has no places.
func AppendTask(b []byte, t *task.Task) []byte {
	var room [mostColumns]value
	return Change{tasks, appendTask(room[:0], t, Place{}, Place{})}.AppendJSON(b)
}

// TaskKind is the kind of the event that has a TaskRow.
var TaskKind = kinds[tasks]

// mostColumns are as many as a table has.
const mostColumns = 28

func appendTask(values []value, t *task.Task, request, result Place) []value {
	return append(values,
		integer(t.Seq), word(t.ID), integer(t.Revision), truth(t.Latest), word(t.Hash), word(t.Dialect), word(t.State),
		integer(t.Attempt), word(joinReasons(t.Reasons)), moment(t.Until), word(t.Agent), word(t.Requester), word(t.Type),
		moment(t.Deadline), moment(t.Received), moment(t.Finished), word(t.File), integer(t.Offset), word(t.Status), word(t.Kind),
		word(t.ResultSum), truth(t.Put), truth(t.Delivered), truth(t.Replaces), integer(t.Parent), integer(t.Depth),
		place(request), place(result))
}

// taskColumns are those scanTask reads.
const taskColumns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
	"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"

func scanTask(r row) (t task.Task, err error) {
	var reasons string
	err = r.Scan(taskInto(&t, &reasons)...)
	t.Reasons = splitReasons(reasons)
	return t, err
}

func taskInto(t *task.Task, reasons *string) []any {
	return []any{
		&t.Seq, &t.ID, &t.Revision, &t.Latest, &t.Hash, &t.Dialect, &t.State, &t.Attempt, reasons,
		stamp{&t.Until}, &t.Agent, &t.Requester, &t.Type, stamp{&t.Deadline}, stamp{&t.Received}, stamp{&t.Finished},
		&t.File, &t.Offset, &t.Status, &t.Kind, &t.ResultSum, &t.Put, &t.Delivered, &t.Replaces, &t.Parent, &t.Depth,
	}
}

const storedColumns = taskColumns + ", request, result"

func scanStored(r row) (t Task, err error) {
	var reasons string
	err = r.Scan(append(taskInto(&t.Task, &reasons), scanPlace{&t.Request}, scanPlace{&t.Result})...)
	t.Reasons = splitReasons(reasons)
	return t, err
}

func joinReasons(reasons []task.Reason) string {
	switch len(reasons) {
	case 0:
		return ""
	case 1:
		return string(reasons[0])
	}
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

func splitReasons(column string) (reasons []task.Reason) {
	if column == "" {
		return nil
	}
	for word := range strings.SplitSeq(column, ",") {
		reasons = append(reasons, task.Reason(word))
	}
	return reasons
}

// A Run is a run with its terms as they are kept. Those of the task.Run are zero until
// Decode.
type Run struct {
	task.Run
	Encoded string
}

// EncodeTerms returns the terms of a run as they are kept.
func EncodeTerms(t task.Terms) (string, error) {
	text, err := json.Marshal(t)
	return string(text), err
}

// Decode returns the run with its terms.
func (r *Run) Decode() (task.Run, error) {
	run := r.Run
	if r.Encoded == "" {
		return run, nil
	}
	if err := json.Unmarshal([]byte(r.Encoded), &run.Terms); err != nil {
		return run, fmt.Errorf("read terms of run %d of task %d: %w", r.Attempt, r.Task, err)
	}
	return run, nil
}

// RunRow is the row of a run.
func RunRow(r *Run) Change {
	return Change{runs, []value{
		integer(r.Task), integer(r.Attempt), word(r.ID), moment(r.Intent), integer(r.PID), {kind: number, number: int64(r.PIDStart)},
		word(r.Boot), moment(r.Started), moment(r.Finished), integer(r.ExitCode), word(r.Signal), word(r.Cause),
		amount(r.Tokens), amount(r.USDCents), word(r.Encoded), amount(r.Reserved.Tokens), amount(r.Reserved.USDCents),
		integer(r.Lender.Task), integer(r.Lender.Attempt), truth(r.Settled),
	}}
}

// RunGone deletes the row of a run.
func RunGone(name task.RunName) Change {
	return Change{runs, []value{integer(name.Task), integer(name.Attempt)}}
}

const runColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
	"reserved_tokens, reserved_cents, lender, lender_attempt, settled"

func scanRun(r row) (run Run, err error) {
	var ticks int64
	err = r.Scan(&run.Task, &run.Attempt, &run.ID, stamp{&run.Intent}, &run.PID, &ticks, &run.Boot,
		stamp{&run.Started}, stamp{&run.Finished}, &run.ExitCode, &run.Signal, &run.Cause, &run.Tokens, &run.USDCents, &run.Encoded,
		&run.Reserved.Tokens, &run.Reserved.USDCents, &run.Lender.Task, &run.Lender.Attempt, &run.Settled)
	run.PIDStart = uint64(ticks)
	return run, err
}

// ApprovalRow is the row of an approval. The answer is the place of a result that is not
// shown; zero keeps the one that the index has.
func ApprovalRow(c task.Consent, answer Place) Change {
	return Change{approvals, []value{
		integer(c.Seq), integer(c.Task), word(c.Stage), word(c.Digest), {kind: text, text: string(c.Plan)}, word(c.Approver),
		moment(c.Asked), moment(c.Expires), word(c.Decision), moment(c.Decided), word(c.Decider), word(c.Note), place(answer),
	}}
}

const approvalColumns = "seq, task, stage, digest, plan, approver, asked, expires, decision, decided, decider, note"

func scanApproval(r row) (c task.Consent, err error) {
	err = r.Scan(&c.Seq, &c.Task, &c.Stage, &c.Digest, (*[]byte)(&c.Plan), &c.Approver, stamp{&c.Asked}, stamp{&c.Expires},
		&c.Decision, stamp{&c.Decided}, &c.Decider, &c.Note)
	if len(c.Plan) == 0 {
		c.Plan = nil
	}
	return c, err
}

// DeliveryRow is the row of the delivery of a task to an inbox.
func DeliveryRow(seq int64, d task.Delivery) Change {
	return Change{deliveries, []value{integer(seq), moment(d.Appended), moment(d.Claimed), word(d.Lease)}}
}

func scanDelivery(r row) (d task.Delivery, err error) {
	err = r.Scan(stamp{&d.Appended}, stamp{&d.Claimed}, &d.Lease)
	return d, err
}

// ConversationRow is the row of a task's conversation.
func ConversationRow(c task.Conversation) Change {
	return Change{conversations, []value{
		integer(c.Task), word(c.Message), word(c.Thread), word(c.Trace), word(c.Tie), integer(c.Notified), truth(c.Open), integer(c.Rounds),
	}}
}

const conversationColumns = "task, message, thread, trace, tie, notified, open, rounds"

func scanConversation(r row) (c task.Conversation, err error) {
	err = r.Scan(&c.Task, &c.Message, &c.Thread, &c.Trace, &c.Tie, &c.Notified, &c.Open, &c.Rounds)
	return c, err
}

// A Message is a message with the place of its body. The Body of the task.Message is nil
// until somebody reads it.
type Message struct {
	task.Message
	Place Place
}

// MessageRow is the row of a message. A zero place keeps the one that the index has.
func MessageRow(m *task.Message, body Place) Change {
	return Change{messages, []value{
		integer(m.Seq), moment(m.Time), word(m.Dialect), word(m.Act), word(m.ID), word(m.Cause), integer(m.Task), word(m.Thread), word(m.Trace),
		word(m.From), word(m.To), word(m.Via), word(m.Hash), word(strings.Join(m.Lost, ",")), word(m.Inbox), moment(m.Delivered), place(body),
	}}
}

const messageColumns = "seq, time, dialect, act, message, cause, task, thread, trace, sender, recipient, via, hash, lost, inbox, delivered, body"

func scanMessage(r row) (m Message, err error) {
	var lost string
	err = r.Scan(&m.Seq, stamp{&m.Time}, &m.Dialect, &m.Act, &m.ID, &m.Cause, &m.Task, &m.Thread, &m.Trace, &m.From, &m.To,
		&m.Via, &m.Hash, &lost, &m.Inbox, stamp{&m.Delivered}, scanPlace{&m.Place})
	if lost != "" {
		m.Lost = strings.Split(lost, ",")
	}
	return m, err
}

// AnnouncementRow is the row of an announcement.
func AnnouncementRow(a task.Announcement) (Change, error) {
	supports, err := json.Marshal(a.Supports)
	return Change{announcements, []value{word(a.Name), {kind: text, text: string(supports)}, moment(a.Since)}}, err
}

func scanAnnouncement(r row) (a task.Announcement, err error) {
	var supports []byte
	if err = r.Scan(&a.Name, &supports, stamp{&a.Since}); err == nil {
		err = json.Unmarshal(supports, &a.Supports)
	}
	return a, err
}

// AccountRow is the row of an account on a day.
func AccountRow(b task.Balance) Change {
	return Change{accounts, []value{
		word(b.Owner), word(b.Day), amount(b.Limit.Tokens), amount(b.Limit.USDCents),
		integer(b.Reserved.Tokens), integer(b.Reserved.USDCents), integer(b.Spent.Tokens), integer(b.Spent.USDCents), integer(b.Unknown),
	}}
}

const accountColumns = "owner, day, limit_tokens, limit_cents, reserved_tokens, reserved_cents, spent_tokens, spent_cents, unknown"

func scanAccount(r row) (b task.Balance, err error) {
	err = r.Scan(&b.Owner, &b.Day, &b.Limit.Tokens, &b.Limit.USDCents,
		&b.Reserved.Tokens, &b.Reserved.USDCents, &b.Spent.Tokens, &b.Spent.USDCents, &b.Unknown)
	return b, err
}

// PauseRow is the row of a pause: of an agent, or of all agents for "".
func PauseRow(agent string, since time.Time) Change {
	return Change{pauses, []value{word(agent), moment(since)}}
}

// PauseGone deletes the row of a pause.
func PauseGone(agent string) Change { return Change{pauses, []value{word(agent)}} }

// A File is how far one task file was read. It has the fields of mailbox.Cursor, so that
// the one converts into the other.
type File struct {
	Path       string // the key: relative to the root, "tasks/x.jsonl"
	Dev, Inode uint64
	Offset     int64
	Replay     int64
	Head, Tail []byte
}

// FileRow is the row of a file. SQLite has large numbers as signed ones.
func FileRow(f File) Change {
	return Change{files, []value{
		word(f.Path), integer(int64(f.Dev)), integer(int64(f.Inode)), integer(f.Offset), integer(f.Replay), bytesOf(f.Head), bytesOf(f.Tail),
	}}
}

func scanFile(r row) (f File, err error) {
	var dev, inode int64
	err = r.Scan(&f.Path, &dev, &inode, &f.Offset, &f.Replay, &f.Head, &f.Tail)
	f.Dev, f.Inode = uint64(dev), uint64(inode)
	return f, err
}

// A DeadLetter is a line that was not appended to a file of dead letters yet.
type DeadLetter struct {
	Seq  int64  // the order in which they came
	Line []byte // without its end
}

// DeadLetterRow is the row of a dead letter.
func DeadLetterRow(d DeadLetter) Change {
	return Change{deadLetters, []value{integer(d.Seq), bytesOf(d.Line)}}
}

// DeadLetterGone deletes the row of a dead letter.
func DeadLetterGone(seq int64) Change { return Change{deadLetters, []value{integer(seq)}} }

// LossRow is the row of a ledger that was lost: where it was moved, and when all lines of its
// time were read again; zero before.
func LossRow(aside string, at, over time.Time) Change {
	return Change{losses, []value{word(aside), moment(at), moment(over)}}
}

// EventRow is the row of an event with a number.
func EventRow(e *task.Event) Change {
	of := value{}
	if e.Of != 0 {
		of = integer(e.Of)
	}
	return Change{events, []value{integer(e.Seq), moment(e.Time), word(e.Kind), of, {kind: text, text: string(e.Data)}}}
}

// EventGone deletes the row of an event.
func EventGone(seq int64) Change { return Change{events, []value{integer(seq)}} }

// MessageGone deletes the row of a message.
func MessageGone(seq int64) Change { return Change{messages, []value{integer(seq)}} }

// BodiesGone is the row of a revision without bodies.
func BodiesGone(t *task.Task) Change {
	c := TaskRow(t, Place{}, Place{})
	n := len(c.values)
	c.values[n-1], c.values[n-2] = value{kind: text}, value{kind: text}
	return c
}
