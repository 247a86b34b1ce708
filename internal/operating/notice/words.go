package notice

import (
	"fmt"

	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// inReview stands for the state Review among the reasons.
const inReview = task.Reason(task.Review)

// clause describes a reason in a notice.
func clause(r task.Reason) string {
	if r == inReview {
		return "its answer needs an approval"
	}
	return r.Facts().Notice
}

// waitsFor returns the reasons that a notice is sent about.
func waitsFor(row task.Task) (waits []task.Reason) {
	if row.State == task.Review {
		return []task.Reason{inReview}
	}
	for _, r := range row.Reasons {
		if (row.State == task.Held || row.State == task.Running) && r.Facts().Notice != "" {
			waits = append(waits, r)
		}
	}
	return waits
}

// message returns the title and the text of a notice. It shows only ids of plain
// characters, since a desktop may take others for markup.
func message(rows []task.Task) (title, text string) {
	if len(rows) == 1 && !view.IsPlainID(rows[0].ID) {
		return "A task waits for a person", "One with an odd id: " + clause(waitsFor(rows[0])[0]) + ". See: mailboxd ps --state held,review"
	}
	if len(rows) > 1 {
		return fmt.Sprintf("%d tasks wait for a person", len(rows)), "See: mailboxd ps --state held,review"
	}
	row := rows[0]
	return "A task waits for a person", fmt.Sprintf("Task %s: %s. See: %s", row.ID, clause(waitsFor(row)[0]), view.Command("show", row.ID))
}
