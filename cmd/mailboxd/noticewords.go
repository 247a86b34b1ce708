package main

import (
	"fmt"
	"slices"

	"mailboxd/internal/task"
	"mailboxd/internal/view"
)

// needsPerson is what a task can wait for that only a person can give. An
// operator's hold is a person's own doing.
var needsPerson = []task.Reason{task.Approval, task.AuthRequired, task.Recovered, task.AnswerUnread, task.ResultInvalid}

// noticeWords are the words of a notice about what a task waits for.
func noticeWords(r task.Reason) string {
	switch r {
	case inReview:
		return "a person has to agree with its answer"
	case task.AnswerUnread:
		return "the answer of its agent cannot be read"
	}
	return r.Clause()
}

// inReview stands for the state of that name among the reasons.
const inReview = task.Reason(task.Review)

// waitsFor returns what a task waits for that only a person can give.
func waitsFor(row task.Task) (waits []task.Reason) {
	if row.State == task.Review {
		return []task.Reason{inReview}
	}
	for _, r := range row.Reasons {
		if row.State == task.Held && slices.Contains(needsPerson, r) {
			waits = append(waits, r)
		}
	}
	return waits
}

// words say in a title and a text which tasks wait. None of them is a
// requester's but an id of plain characters: a desktop may take others for markup.
func words(rows []task.Task) (title, text string) {
	if len(rows) == 1 && !typed(rows[0].ID) {
		return "A task waits for a person", "One with an odd id: " + noticeWords(waitsFor(rows[0])[0]) + ". See: mailboxd ps --state held,review"
	}
	if len(rows) > 1 {
		return fmt.Sprintf("%d tasks wait for a person", len(rows)), "See: mailboxd ps --state held,review"
	}
	row := rows[0]
	return "A task waits for a person", fmt.Sprintf("Task %s: %s. See: %s", row.ID, noticeWords(waitsFor(row)[0]), view.Command("show", row.ID))
}
