package notice

import (
	"fmt"
	"slices"

	"mailboxd/internal/task"
	"mailboxd/internal/view"
)

// needsPerson are the reasons that only a person can end. An operator's hold is not
// among them, since a person made it.
var needsPerson = []task.Reason{task.Approval, task.AuthRequired, task.Recovered, task.AnswerUnread, task.ResultInvalid}

// noticeWords describes a reason in a notice.
func noticeWords(r task.Reason) string {
	switch r {
	case inReview:
		return "its answer needs an approval"
	case task.AnswerUnread:
		return "the answer of its agent cannot be read"
	}
	return r.Clause()
}

// inReview stands for the state Review among the reasons.
const inReview = task.Reason(task.Review)

// waitsFor returns the reasons that only a person can end.
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

// message returns the title and the text of a notice. It shows only ids of plain
// characters, since a desktop may take others for markup.
func message(rows []task.Task) (title, text string) {
	if len(rows) == 1 && !view.IsPlainID(rows[0].ID) {
		return "A task waits for a person", "One with an odd id: " + noticeWords(waitsFor(rows[0])[0]) + ". See: mailboxd ps --state held,review"
	}
	if len(rows) > 1 {
		return fmt.Sprintf("%d tasks wait for a person", len(rows)), "See: mailboxd ps --state held,review"
	}
	row := rows[0]
	return "A task waits for a person", fmt.Sprintf("Task %s: %s. See: %s", row.ID, noticeWords(waitsFor(row)[0]), view.Command("show", row.ID))
}
