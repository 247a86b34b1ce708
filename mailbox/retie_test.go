package mailbox_test

import (
	"os"
	"testing"

	"mailboxd/mailbox"
)

// A line that was read is not read again after a mailbox was copied, nor after its file was
// renamed.
func TestReadingGoesOnInACopyOfTheMailbox(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\n")
	write(t, box.TasksDir()+"/y.jsonl", "other\n")
	write(t, box.TasksDir()+"/empty.jsonl", "")
	r := tail(t, box, mailbox.TailOptions{})
	if n := len(r.rest()); n != 3 {
		t.Fatalf("%d lines were read; want 3", n)
	}
	var cursors []mailbox.Cursor
	for _, c := range r.cursors {
		cursors = append(cursors, c)
	}
	copied := open(t)
	write(t, copied.TasksDir()+"/y.jsonl", "other\n")
	write(t, copied.TasksDir()+"/x.jsonl.1", "a\nb\nc\n") // rotated since
	write(t, copied.TasksDir()+"/x.jsonl", "new\n")
	must(t, os.Symlink("y.jsonl", copied.TasksDir()+"/link.jsonl"))
	tied, err := copied.Retie(cursors)
	must(t, err)
	lines, count, err := copied.Unread(tied, mailbox.TailOptions{}, 10)
	must(t, err)
	if got := raws(lines); count != 2 || len(got) != 2 || got[0] != "new" && got[1] != "new" || got[0] != "c" && got[1] != "c" {
		t.Errorf("after the cursors there are %q; want c and new", got)
	}
	if _, count, _ := copied.Unread(tied, mailbox.TailOptions{}, 1); count != 2 {
		t.Errorf("Unread counts %d lines with a limit of 1; want 2", count)
	}
}
