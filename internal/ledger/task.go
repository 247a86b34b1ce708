package ledger

import (
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
)

// A State is where a task stands. The zero value is none.
type State string

// The states, in the order in which a task goes through them.
const (
	Received State = "received" // accepted; an earlier revision has to end first
	Held     State = "held"     // must not start yet, for its Reasons
	Queued   State = "queued"   // may start
	Running  State = "running"  // an agent has it, or is about to
	Waiting  State = "waiting"  // in the inbox of an agent that fetches its tasks
	Review   State = "review"   // answered; a person must agree before the answer is shown
	Done     State = "done"     // over: nothing moves it any more
)

// States lists every State, in the order in which a task goes through them.
func States() []State {
	return []State{Received, Held, Queued, Running, Waiting, Review, Done}
}

// A Reason is why a task is held.
type Reason string

// The reasons. The comment says what ends the hold.
const (
	Approval      Reason = "approval"       // an approver's word
	ChangeWindow  Reason = "change_window"  // the window's start
	Capacity      Reason = "capacity"       // room, or the end of a pause before another attempt
	Paused        Reason = "paused"         // resume
	Operator      Reason = "operator"       // release
	Recovered     Reason = "recovered"      // release: the ledger was lost, so it may have run
	AuthRequired  Reason = "auth_required"  // the agent's login
	AnswerUnread  Reason = "answer_unread"  // release: what its agent answered is read again
	ResultInvalid Reason = "result_invalid" // the removal of a result file that is none
	Children      Reason = "children"       // the end of the tasks that it needs the answers of
	Reply         Reason = "reply"          // a message to its agent
)

// A Task is what is remembered of one revision of one task, without the
// bodies: Raw and Result read those. Times are in UTC, to the microsecond.
type Task struct {
	Seq      int64 // the order in which revisions were accepted; Add gives it
	ID       envelope.ID
	Revision int              // 1 for the first content that had the id
	Latest   bool             // no later revision of the id is there; Add sets it
	Hash     string           // envelope.Task.Hash: names the content
	Dialect  envelope.Dialect // how the line said it

	State   State
	Attempt int       // the number of the run it has or had; 0 before the first
	Reasons []Reason  // why it is held
	Until   time.Time // when the hold ends by itself; zero: it does not

	Agent     string
	Requester string
	Type      string
	Deadline  time.Time // zero: none
	Received  time.Time
	Finished  time.Time // when it became Done; zero before

	File   string // which line it was: the task file, relative to the root
	Offset int64  // and where in it

	Status    envelope.Status // how it ended; "" before
	Kind      envelope.Kind   // what went wrong; "" for nothing
	ResultSum string          // hex SHA-256 of the result's bytes; "" for none
	Put       bool            // its result file is in place, or none is to be
	Delivered bool            // its callbacks are done, or there are none
	Replaces  bool            // the earlier revision's result still has to go to the history

	Parent int64 // the Seq of the task whose run asked for this one; 0: none (AINL-01)
	Depth  int   // how many parents are above it
}

// WaitsForBudget reports whether a task is held until others leave something of
// a budget. Nobody knows when that is: it is held until its deadline, where a
// pause between two attempts has an end of its own.
func (t Task) WaitsForBudget() bool {
	return t.State == Held && slices.Equal(t.Reasons, []Reason{Capacity}) && t.Until.Equal(t.Deadline)
}

// taskColumns are those scanTask reads.
const taskColumns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, " +
	"deadline, received, finished, file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"

func scanTask(r row) (t Task, err error) {
	var reasons string
	err = r.Scan(&t.Seq, &t.ID, &t.Revision, &t.Latest, &t.Hash, &t.Dialect, &t.State, &t.Attempt, &reasons,
		stamp{&t.Until}, &t.Agent, &t.Requester, &t.Type, stamp{&t.Deadline}, stamp{&t.Received}, stamp{&t.Finished},
		&t.File, &t.Offset, &t.Status, &t.Kind, &t.ResultSum, &t.Put, &t.Delivered, &t.Replaces, &t.Parent, &t.Depth)
	t.Reasons = splitReasons(reasons)
	return t, err
}

func joinReasons(reasons []Reason) string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

func splitReasons(column string) (reasons []Reason) {
	if column == "" {
		return nil
	}
	for word := range strings.SplitSeq(column, ",") {
		reasons = append(reasons, Reason(word))
	}
	return reasons
}
