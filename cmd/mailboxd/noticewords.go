package main

import (
	"fmt"

	"mailboxd/internal/ledger"
)

// needsPerson is what a task can wait for that only a person can give, in the
// words of a notice. An operator's hold is a person's own doing.
var needsPerson = map[ledger.Reason]string{
	ledger.Approval:      "a person has to approve it",
	ledger.AuthRequired:  "its agent has to be logged in",
	ledger.Recovered:     "it may have run before the ledger was lost",
	ledger.AnswerUnread:  "the answer of its agent cannot be read",
	ledger.ResultInvalid: "a file that is no result is in the place of its result",
	inReview:             "a person has to agree with its answer",
}

// inReview stands for the state of that name among the reasons.
const inReview = ledger.Reason(ledger.Review)

// waitsFor returns what a task waits for that only a person can give.
func waitsFor(row ledger.Task) (waits []ledger.Reason) {
	if row.State == ledger.Review {
		return []ledger.Reason{inReview}
	}
	for _, r := range row.Reasons {
		if row.State == ledger.Held && needsPerson[r] != "" {
			waits = append(waits, r)
		}
	}
	return waits
}

// words say in a title and a text which tasks wait. None of them is a
// requester's but an id of plain characters: a desktop may take others for markup.
func words(rows []ledger.Task) (title, text string) {
	if len(rows) == 1 && !typed(rows[0].ID) {
		return "A task waits for a person", "One with an odd id: " + needsPerson[waitsFor(rows[0])[0]] + ". See: mailboxd ps --state held,review"
	}
	if len(rows) > 1 {
		return fmt.Sprintf("%d tasks wait for a person", len(rows)), "See: mailboxd ps --state held,review"
	}
	row := rows[0]
	return "A task waits for a person", fmt.Sprintf("Task %s: %s. See: %s", row.ID, needsPerson[waitsFor(row)[0]], advise("show", row.ID))
}
