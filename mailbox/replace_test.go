package mailbox_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

// The changes of a file while it is followed, and while it is not.

var long = strings.Repeat("a line that is longer than a block when repeated\n", 200)

func TestAFileThatShrankIsReadAnew(t *testing.T) {
	for _, restart := range []bool{false, true} {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		write(t, path, "a\nb\n")
		r := tail(t, box, mailbox.TailOptions{})
		r.want("a", "b")
		write(t, path, "c\n")
		if restart {
			r = r.again(box, mailbox.TailOptions{})
		}
		if lines := r.want("c"); !lines[0].Replayed {
			t.Error("a line of a file that is read anew is not Replayed")
		}
		add(t, path, "d\n")
		if lines := r.want("d"); lines[0].Replayed {
			t.Error("a line appended afterwards is Replayed")
		}
	}
}

func TestAFileThatWasEmptiedIsReadFromItsStart(t *testing.T) {
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, long)
	r := tail(t, box, mailbox.TailOptions{})
	r.rest()
	must(t, os.Truncate(path, 0))
	r.want()
	add(t, path, "a\n")
	if lines := r.want("a"); lines[0].Replayed {
		t.Error("a line appended to the emptied file is Replayed")
	}
	r.again(box, mailbox.TailOptions{}).want()
}

func TestAFileWithOtherBytesIsReadAnew(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"same size", "a\nb\n", "c\nd\n"},
		{"larger", "a\nb\n", "c\nd\ne\n"},
		{"same end, other beginning", long, "A" + long[1:]},
		{"same beginning, other end", long, long[:len(long)-2] + "X\n"},
		{"same beginning, larger, other end", long, long[:len(long)-2] + "X\n" + long},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				box := open(t)
				path := box.TasksDir() + "/x.jsonl"
				write(t, path, test.before)
				r := tail(t, box, mailbox.TailOptions{})
				r.rest()
				write(t, path, test.after)
				if restart {
					r = r.again(box, mailbox.TailOptions{})
				}
				lines := r.rest()
				if got := strings.Join(raws(lines), "\n") + "\n"; got != test.after {
					t.Errorf("read %d bytes anew, want all %d", len(got), len(test.after))
				}
				if last := lines[len(lines)-1]; !last.Replayed {
					t.Error("the last line is not Replayed")
				}
			})
		}
	}
}

func TestAReplacedFileIsReadToItsEndFirst(t *testing.T) {
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, "a\n")
	r := tail(t, box, mailbox.TailOptions{BatchLines: 1})
	r.want("a")
	add(t, path, "b\nc\nd\n")
	write(t, box.Path()+"/new", "e\nf\n")
	must(t, os.Rename(box.Path()+"/new", path))
	lines := r.want("b", "c", "d", "e", "f")
	if lines[0].Replayed || !lines[3].Replayed {
		t.Errorf("Replayed = %v for the old file's lines and %v for the new one's; want false, true", lines[0].Replayed, lines[3].Replayed)
	}
	r.again(box, mailbox.TailOptions{}).want()
}

func TestTheRestOfAReplacedFileIsReadOnce(t *testing.T) { // row 12
	synctest.Test(t, func(t *testing.T) {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		write(t, path, "a\n")
		r := tail(t, box, mailbox.TailOptions{})
		r.want("a")
		add(t, path, "torn")
		must(t, os.Remove(path))
		write(t, path, "b\n")
		r.want("b") // the writer may be about to finish its line
		time.Sleep(3 * time.Second)
		lines := r.want("torn")
		if line := lines[0]; !line.Unterminated || line.Offset != 2 || line.End != 6 || line.File != "tasks/x.jsonl" {
			t.Errorf("last words = %+v; want Unterminated, [2, 6) of tasks/x.jsonl", line)
		}
		time.Sleep(time.Hour)
		r.want()
		r.again(box, mailbox.TailOptions{}).want()
	})
}

func TestLinesOfAWriterThatHoldsAReplacedFileAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		write(t, path, "a\n")
		writer, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		defer writer.Close()
		r := tail(t, box, mailbox.TailOptions{})
		r.want("a")
		must(t, os.Rename(path, path+".1")) // as logrotate does
		write(t, path, "b\n")
		r.want("b")
		for range 3 {
			time.Sleep(9 * time.Minute)
			writer.WriteString("late\n")
			r.want("late")
		}
		r = r.again(box, mailbox.TailOptions{})
		r.want() // the late lines do not change the known end of b
	})
}

func TestAForgottenFileIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		r := tail(t, box, mailbox.TailOptions{})
		before := files(t)
		for range 40 {
			write(t, path, "a\n")
			r.want("a")
			must(t, os.Remove(path))
		}
		r.want()
		if got := files(t) - before; got > 18 { // 16 files and tasks/
			t.Errorf("%d more files are open after 40 replacements, want at most 18", got)
		}
		time.Sleep(11 * time.Minute)
		r.want()
		if got := files(t) - before; got > 1 {
			t.Errorf("%d more files are open ten minutes later, want only tasks/", got)
		}
	})
}

func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

func TestARenamedFileIsReadOn(t *testing.T) {
	for _, restart := range []bool{false, true} {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		write(t, path, "a\n")
		r := tail(t, box, mailbox.TailOptions{})
		r.want("a")
		must(t, os.Rename(path, box.TasksDir()+"/w.jsonl"))
		write(t, path, "b\n")
		add(t, box.TasksDir()+"/w.jsonl", "c\n")
		if restart {
			r = r.again(box, mailbox.TailOptions{})
		}
		lines := r.rest()
		got := map[string]string{}
		for _, line := range lines {
			got[line.File] += string(line.Raw)
		}
		if len(lines) != 2 || got["tasks/x.jsonl"] != "b" || got["tasks/w.jsonl"] != "c" {
			t.Errorf("restart %v: lines %v, want b of x and c of w", restart, got)
		}
		r.again(box, mailbox.TailOptions{}).want()
	}
}

func TestARenameWithoutALineIsRecorded(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	must(t, os.Rename(box.TasksDir()+"/x.jsonl", box.TasksDir()+"/y.jsonl"))
	r.want()
	if got := r.cursors["tasks/y.jsonl"].Offset; got != 2 {
		t.Errorf("cursor of the new name at %d, want 2", got)
	}
}

func TestAFileOfSeveralNamesIsReadOnce(t *testing.T) { // row 33
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	must(t, os.Link(box.TasksDir()+"/x.jsonl", box.TasksDir()+"/y.jsonl"))
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	must(t, os.Remove(box.TasksDir()+"/x.jsonl"))
	add(t, box.TasksDir()+"/y.jsonl", "b\n")
	r.want("b")
}

func TestARemovedFileIsReadToItsEnd(t *testing.T) {
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	add(t, path, "b\n")
	must(t, os.Remove(path))
	r.want("b")
}

func TestARemovedMailboxIsFollowedWhenItIsBack(t *testing.T) {
	box := open(t)
	must(t, box.Lock())
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	must(t, os.RemoveAll(box.Path()))
	r.want()
	if replaced, err := box.Refresh(); !replaced || err != nil {
		t.Fatalf("Refresh = %v, %v; want true, nil", replaced, err)
	}
	write(t, box.TasksDir()+"/x.jsonl", "b\n")
	r.want("b")
}

func TestOtherFilesThanTaskFilesAreIgnored(t *testing.T) { // row 33
	box := open(t)
	dir := box.TasksDir()
	write(t, box.Path()+"/elsewhere", "secret\n")
	must(t, os.Symlink("../elsewhere", dir+"/link.jsonl"))
	must(t, os.Symlink("/etc/passwd", dir+"/passwd.jsonl"))
	must(t, unix.Mkfifo(dir+"/fifo.jsonl", 0o600))
	must(t, os.Mkdir(dir+"/dir.jsonl", 0o700))
	for _, name := range []string{"x.jsonl~", ".x.jsonl.swp", ".hidden.jsonl", "x.json", "x.JSONL"} {
		write(t, dir+"/"+name, "no\n")
	}
	write(t, dir+"/x.jsonl", "yes\n")
	notified := map[string]int{}
	r := tail(t, box, mailbox.TailOptions{Notice: func(path string, err error) { notified[path]++ }})
	r.want("yes")
	r.want()
	for _, name := range []string{"link", "passwd", "fifo", "dir"} {
		if got := notified["tasks/"+name+".jsonl"]; got != 1 {
			t.Errorf("told %d times of %s, want once", got, name)
		}
	}
	if len(notified) != 4 {
		t.Errorf("told of %v, want four", notified)
	}
}

func TestAnUnfinishedLineIsReportedOnce(t *testing.T) { // row 12
	synctest.Test(t, func(t *testing.T) {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		notified := 0
		r := tail(t, box, mailbox.TailOptions{Notice: func(string, error) { notified++ }})
		write(t, path, `{"whole":"but without a newline"}`)
		r.want()
		time.Sleep(time.Minute)
		r.want()
		time.Sleep(time.Hour)
		r.want()
		if notified != 1 {
			t.Errorf("told %d times, want once", notified)
		}
		add(t, path, "\n")
		r.want(`{"whole":"but without a newline"}`)
	})
}
