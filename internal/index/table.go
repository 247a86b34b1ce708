package index

import (
	"fmt"
	"strings"

	"mailboxd/internal/journal"
)

// A table is a kind of row.
type table byte

const (
	tasks table = iota
	runs
	approvals
	deliveries
	conversations
	messages
	announcements
	accounts
	pauses
	files
	deadLetters
	losses
	events
	tableCount
)

// A definition is what there is to know of a table. The first columns are its key.
type definition struct {
	name    string
	keys    int
	columns []column
}

// A column has a kind, and may be NULL. A place is kept by an upsert that has none.
type column struct {
	name     string
	kind     kind
	nullable bool
	place    bool
}

// definitions spell a column as name:kind, with ? for one that may be NULL. The names are
// those of the journal too, so they never change.
var definitions = [tableCount]definition{
	tasks: define("tasks", 1, "seq:i id:t revision:i latest:i hash:t dialect:t state:t attempt:i reasons:t until:i? agent:t requester:t type:t "+
		"deadline:i? received:i? finished:i? file:t offset:i status:t kind:t result_sum:t put:i delivered:i replaces:i parent:i depth:i request:p result:p"),
	runs: define("runs", 2, "task:i attempt:i run_id:t intent:i? pid:i pid_start:i boot:t started:i? finished:i? exit_code:i signal:t cause:t "+
		"tokens:i? usd_cents:i? terms:t reserved_tokens:i? reserved_cents:i? lender:i lender_attempt:i settled:i"),
	approvals:     define("approvals", 1, "seq:i task:i stage:t digest:t plan:t approver:t asked:i? expires:i? decision:t decided:i? decider:t note:t answer:p"),
	deliveries:    define("deliveries", 1, "task:i appended:i? claimed:i? lease:t"),
	conversations: define("conversations", 1, "task:i message:t thread:t trace:t tie:t notified:i open:i rounds:i"),
	messages: define("messages", 1, "seq:i time:i? dialect:t act:t message:t cause:t task:i thread:t trace:t sender:t recipient:t via:t hash:t lost:t "+
		"inbox:t delivered:i? body:p"),
	announcements: define("announcements", 1, "name:t supports:t since:i?"),
	accounts: define("accounts", 2, "owner:t day:t limit_tokens:i? limit_cents:i? reserved_tokens:i reserved_cents:i spent_tokens:i spent_cents:i "+
		"unknown:i"),
	pauses:      define("pauses", 1, "agent:t since:i?"),
	files:       define("files", 1, "path:t dev:i inode:i offset:i replay:i head:b? tail:b?"),
	deadLetters: define("dead_letters", 1, "seq:i line:b?"),
	losses:      define("losses", 1, "aside:t at:i? over:i?"),
	events:      define("events", 1, "seq:i time:i? kind:t task:i? data:t"),
}

func define(name string, keys int, columns string) (d definition) {
	d = definition{name: name, keys: keys}
	for spelled := range strings.FieldsSeq(columns) {
		own, is, _ := strings.Cut(spelled, ":")
		c := column{name: own, kind: map[byte]kind{'i': number, 't': text, 'b': blob, 'p': text}[is[0]], place: is[0] == 'p'}
		c.nullable = strings.HasSuffix(is, "?") || c.place
		d.columns = append(d.columns, c)
	}
	return d
}

// names lists the columns, each with a prefix.
func (d definition) names(prefix string) string {
	list := make([]string, len(d.columns))
	for i, c := range d.columns {
		list[i] = prefix + c.name
	}
	return strings.Join(list, ", ")
}

// upsert is the statement that writes n rows.
func (d definition) upsert(n int) string {
	var b strings.Builder
	row := "(" + strings.Repeat("?, ", len(d.columns)-1) + "?)"
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES %s%s ON CONFLICT DO UPDATE SET ", d.name, d.names(""), strings.Repeat(row+", ", n-1), row)
	for i, c := range d.columns[d.keys:] {
		if i > 0 {
			b.WriteString(", ")
		}
		if c.place {
			fmt.Fprintf(&b, "%s = coalesce(excluded.%s, %s)", c.name, c.name, c.name)
		} else {
			fmt.Fprintf(&b, "%s = excluded.%s", c.name, c.name)
		}
	}
	return b.String()
}

// remove is the statement that deletes the row of a key.
func (d definition) remove() string {
	where := make([]string, d.keys)
	for i := range where {
		where[i] = d.columns[i].name + " = ?"
	}
	return "DELETE FROM " + d.name + " WHERE " + strings.Join(where, " AND ")
}

// A Change is a row as it is now, or the key of a row that is gone. It may be applied twice.
type Change struct {
	of     table
	values []value // of all columns, or of the key alone: the row is gone
}

// A Key names the row of a change.
type Key struct {
	of      table
	numbers [2]int64
	texts   [2]string
}

// Key returns the key of the row.
func (c Change) Key() Key {
	k := Key{of: c.of}
	for i, v := range c.values[:definitions[c.of].keys] {
		k.numbers[i], k.texts[i] = v.number, v.text
	}
	return k
}

// gone reports whether the row is deleted.
func (c Change) gone() bool { return len(c.values) == definitions[c.of].keys }

// Locate sets the places of the row from the bodies of its event.
func (c *Change) Locate(e *journal.Event) {
	at := bodyPlaces(e)
	for i, column := range definitions[c.of].columns {
		if p, ok := at(column.name); column.place && ok {
			c.values[i] = place(p)
		}
	}
}

// Over returns the row in the place of an earlier one of its key, whose places it keeps where
// it has none.
func (c Change) Over(earlier Change) Change {
	if c.gone() || earlier.gone() {
		return c
	}
	for i, column := range definitions[c.of].columns {
		if column.place && c.values[i].kind == null {
			c.values[i] = earlier.values[i]
		}
	}
	return c
}
