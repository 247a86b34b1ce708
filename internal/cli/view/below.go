package view

import (
	"fmt"
	"io"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// maxBelow is how many tasks below another one are listed.
const maxBelow = 20

// PrintBelow lists the open tasks below a task, under a line that counts them.
func PrintBelow(w io.Writer, id envelope.ID, open []client.Task) {
	are := "tasks below %s are open:"
	if len(open) == 1 {
		are = "task below %s is open:"
	}
	fmt.Fprintf(w, "%d "+are+"\n", len(open), term.OneLine(string(id)))
	for i, t := range open {
		if i == maxBelow {
			fmt.Fprintf(w, "  ... and %d more\n", len(open)-maxBelow)
			return
		}
		fmt.Fprintf(w, "  %s  %s  %s\n", term.OneLine(string(t.ID)), StateWithReasons(t), term.OneLine(t.Agent))
	}
}

// PrintCancelled lists tasks that were cancelled with the task above them.
func PrintCancelled(w io.Writer, tree client.Tree) {
	for _, t := range tree.Cancelled {
		fmt.Fprintf(w, "%s  %s, below %s\n", term.OneLine(string(t.ID)), StateWithReasons(t), term.OneLine(string(tree.Task.ID)))
	}
}
