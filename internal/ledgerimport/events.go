package ledgerimport

import (
	"cmp"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/index"
	"mailboxd/internal/journal"
)

const (
	taskColumns = "t.seq, t.id, t.revision, t.latest, t.hash, t.dialect, t.state, t.attempt, t.reasons, t.until, t.agent, t.requester, t.type, " +
		"t.deadline, t.received, t.finished, t.file, t.offset, t.status, t.kind, t.result_sum, t.put, t.delivered, t.replaces, t.parent, t.depth"
	runColumns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
		"reserved_tokens, reserved_cents, lender, lender_attempt, settled"
	approvalColumns = "seq, task, stage, digest, plan, approver, asked, expires, decision, decided, decider, note, answer"
	messageColumns  = "seq, time, dialect, act, message, cause, task, thread, trace, sender, recipient, via, hash, lost, inbox, posted AS delivered, body"
	talkColumns     = "k.task, k.message, k.thread, k.trace, k.tie, k.told AS notified, k.open, k.rounds"
)

// A part is rows of one kind of event. Its query has the Seq of the task before the columns
// of the row, and the time by which the row stands between the others; NULL is the end.
type part struct{ kind, query string }

// ofTask are the parts of a task, the first one its own row. Parts of the same time are in
// this order.
var ofTask = []part{
	{"row.tasks", "SELECT t.seq, t.received, " + taskColumns + ", r.body AS request FROM tasks t LEFT JOIN requests r ON r.task = t.seq ORDER BY t.seq"},
	{"row.conversations", "SELECT k.task, t.received, " + talkColumns + " FROM talks k LEFT JOIN tasks t ON t.seq = k.task ORDER BY k.task"},
	{"row.messages", "SELECT task, time, " + messageColumns + " FROM messages WHERE task <> 0 ORDER BY task, seq"},
	{"row.approvals", "SELECT task, asked, " + approvalColumns + " FROM approvals ORDER BY task, seq"},
	{"row.runs", "SELECT task, intent, " + runColumns + " FROM runs ORDER BY task, attempt"},
	{"row.deliveries", "SELECT task, coalesce(claimed, appended), task, appended, claimed, lease FROM deliveries ORDER BY task"},
	{"row.tasks", "SELECT r.task, t.finished, " + taskColumns + ", r.body AS result FROM results r JOIN tasks t ON t.seq = r.task ORDER BY r.task"},
	{kindEvents, "SELECT task, time, seq, time, kind, task, data FROM events WHERE task IS NOT NULL ORDER BY task, seq"},
}

const kindEvents = "row.events"

// others are the parts that belong to no task.
var others = []part{
	{"row.messages", "SELECT 0, time, " + messageColumns + " FROM messages WHERE task = 0 ORDER BY seq"},
	{kindEvents, "SELECT 0, time, seq, time, kind, task, data FROM events WHERE task IS NULL ORDER BY seq"},
	{"row.losses", "SELECT 0, at, aside, at, over FROM losses ORDER BY at"},
	{"row.announcements", "SELECT 0, since, name, supports, since FROM speakers ORDER BY name"},
	{"row.pauses", "SELECT 0, since, agent, since FROM pauses ORDER BY agent"},
	{"row.accounts", "SELECT 0, NULL, * FROM accounts ORDER BY day, owner"},
	{"row.files", "SELECT 0, NULL, * FROM files ORDER BY path"},
	{"row.dead_letters", "SELECT 0, NULL, * FROM dead_letters ORDER BY seq"},
}

// bodies are the columns that the journal has as bodies.
var bodies = []string{"request", "result", "answer", "body"}

// Size returns how many tasks there are, and the highest number that an event has had.
func (l *Ledger) Size() (tasks int, lastEvent uint64, err error) {
	err = l.db.QueryRow("SELECT (SELECT count(*) FROM tasks), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)").Scan(&tasks, &lastEvent)
	return tasks, lastEvent, unreadable(err)
}

// Events hands everything to each as events of the journal without numbers: first what each
// task has, in order, one task at a time, and then the rest. A row comes as it is now, at the
// time when it began, and the row of a task once more at its end, with the result. The time
// of an event is zero if it is not known.
func (l *Ledger) Events(each func([]journal.Event) error) (err error) {
	var open cursors
	defer func() { err = errors.Join(unreadable(err), open.close()) }()
	for _, p := range ofTask {
		if err := open.add(l.db, p); err != nil {
			return err
		}
	}
	for tasks := open[0]; tasks.more; {
		events, err := open.take(tasks.task)
		if err == nil {
			err = each(events)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range others {
		if err := open.add(l.db, p); err != nil {
			return err
		}
	}
	for _, c := range open {
		for c.more {
			e, err := c.next()
			if err == nil {
				err = each([]journal.Event{e.Event})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// cursors are the parts that are read.
type cursors []*cursor

func (all *cursors) add(db *sql.DB, p part) error {
	rows, err := db.Query(p.query)
	if err != nil {
		return err
	}
	c := &cursor{kind: p.kind, rows: rows}
	*all = append(*all, c)
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	c.names = names[2:]
	c.values = make([]any, len(names))
	return c.read()
}

func (all cursors) close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.rows.Close())
	}
	return err
}

// take returns the events of a task, and those before it, whose tasks are not there.
func (all cursors) take(seq int64) ([]journal.Event, error) {
	var list []timed
	var name journal.Event
	for i, c := range all {
		latest := int64(math.MinInt64)
		for c.more && c.task <= seq {
			own := c.task == seq
			if own && i == 0 {
				id, _ := c.values[3].(string)
				revision, _ := c.values[4].(int64)
				name = journal.Event{Task: id, Revision: uint64(revision)}
			}
			e, err := c.next()
			if err != nil {
				return nil, err
			}
			if own {
				e.Task, e.Revision = name.Task, name.Revision
			}
			if c.kind == kindEvents { // their numbers are right, their times need not be
				e.key = max(e.key, latest)
				latest = e.key
			}
			if i == 0 {
				e.key = math.MinInt64
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b timed) int { return cmp.Compare(a.key, b.key) })
	events := make([]journal.Event, len(list))
	for i, e := range list {
		events[i] = e.Event
	}
	return events, nil
}

// A cursor reads a part.
type cursor struct {
	kind   string
	rows   *sql.Rows
	names  []string // of the columns of the row
	values []any    // the task, the time, and the row
	task   int64
	more   bool // there is a row
}

// A timed event has the time that it is sorted by.
type timed struct {
	journal.Event
	key int64
}

func (c *cursor) read() error {
	into := make([]any, len(c.values))
	for i := range into {
		into[i] = &c.values[i]
	}
	if c.more = c.rows.Next(); !c.more {
		return c.rows.Err()
	}
	err := c.rows.Scan(into...)
	c.task, _ = c.values[0].(int64)
	return err
}

// next makes an event of the row, and reads the next one.
func (c *cursor) next() (timed, error) {
	e := timed{Event: journal.Event{Kind: c.kind, Data: append(make([]byte, 0, 512), '{')}, key: math.MaxInt64}
	if at, ok := c.values[1].(int64); ok {
		e.key, e.At = at, time.UnixMicro(at).UTC()
	}
	for i, v := range c.values[2:] {
		name := c.names[i]
		if body, ok := v.([]byte); ok && slices.Contains(bodies, name) {
			e.Bodies = append(e.Bodies, index.NewBody(name, body))
			continue
		}
		if v == nil || v == "" {
			continue
		}
		if len(e.Data) > 1 {
			e.Data = append(e.Data, ',')
		}
		e.Data = append(append(append(e.Data, '"'), name...), '"', ':')
		switch v := v.(type) {
		case int64:
			e.Data = strconv.AppendInt(e.Data, v, 10)
		case string:
			e.Data, _ = jsontext.AppendQuote(e.Data, v) // bytes that are not UTF-8 are replaced
		case []byte:
			e.Data = append(base64.StdEncoding.AppendEncode(append(e.Data, '"'), v), '"')
		default:
			return e, fmt.Errorf("%s of %s is a %T", name, c.kind, v)
		}
	}
	e.Data = append(e.Data, '}')
	return e, c.read()
}
