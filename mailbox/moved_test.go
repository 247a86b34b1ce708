package mailbox_test

import (
	"fmt"
	"os"
	"testing"

	"mailboxd/mailbox"
)

func TestAFileThatIsNotKeptOpenIsReadToItsEndUnderItsNewName(t *testing.T) {
	box := open(t)
	const files = 300 // more than are kept open
	for n := range files {
		write(t, fmt.Sprintf("%s/%03d.jsonl", box.TasksDir(), n), fmt.Sprintln(n))
	}
	r := tail(t, box, mailbox.TailOptions{})
	r.rest()
	first := box.TasksDir() + "/000.jsonl"
	add(t, first, "late\n")
	must(t, os.Rename(first, first+".1"))
	write(t, first, "after it\n")
	r.want("late", "after it")
	must(t, os.Remove(first+".1"))
	r.want()
}

func TestAFileThatIsGoneAtAStartIsReportedOnce(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	must(t, os.Remove(box.TasksDir()+"/x.jsonl"))
	r = r.again(box, mailbox.TailOptions{})
	batch, err := r.Next()
	if err != nil || !batch.Gone || batch.Cursor.Path != "tasks/x.jsonl" || batch.Cursor.Offset != 2 {
		t.Errorf("Next = %+v, %v; want the end of tasks/x.jsonl at 2", batch, err)
	}
	r.want()
	r = r.again(box, mailbox.TailOptions{})
	if batch, err = r.Next(); err != nil || !batch.Empty() {
		t.Errorf("Next after another start = %+v, %v; want nothing", batch, err)
	}
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	if lines := r.want("a"); len(lines) != 1 || !lines[0].Replayed {
		t.Errorf("lines = %+v; want one that may have been read before", lines)
	}
}

// Another file may have the inode number of one that is gone.
func TestAnotherFileThatIsNoTaskFileIsNotRead(t *testing.T) {
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	write(t, path, "b\nc\n")
	must(t, os.Rename(path, box.TasksDir()+"/notes"))
	r = r.again(box, mailbox.TailOptions{})
	r.want()
}
