package ledger

import (
	"slices"
	"strconv"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// arrival is the row of a task that has come in and waits: most have these in all
// columns but a few of their own. Those rows have a statement that says the rest by
// itself, which takes a tenth less of what a line costs here than binding it.
var arrival = (&taskChange{Task: task.Task{Revision: 1, Latest: true, Dialect: envelope.AINL, State: task.Queued}, added: true}).row(nil).values

// ownOfArrival are the columns in which arrivals differ.
var ownOfArrival = func() (own []bool) {
	names := strings.Split("seq, id, hash, agent, requester, type, deadline, received, file, offset", ", ")
	for column := range strings.SplitSeq(plainColumns, ", ") {
		own = append(own, slices.Contains(names, column))
	}
	return own
}()

// asArrival returns what a row of a task has of its own, if it is an arrival.
func asArrival(values []value) (own []value, ok bool) {
	for i, v := range values {
		if !ownOfArrival[i] && !v.same(arrival[i]) {
			return nil, false
		}
	}
	own = values[:0]
	for i, v := range values {
		if ownOfArrival[i] {
			own = append(own, v)
		}
	}
	return own, true
}

// arrivalRow is an arrival in a statement.
func arrivalRow() string {
	words := make([]string, len(arrival))
	for i, v := range arrival {
		switch {
		case ownOfArrival[i]:
			words[i] = "?"
		case v.kind == intValue:
			words[i] = strconv.FormatInt(v.number, 10)
		case v.kind == textValue:
			words[i] = "'" + v.text + "'" // none has a quote
		default:
			words[i] = "NULL"
		}
	}
	return "(" + strings.Join(words, ", ") + ")"
}
