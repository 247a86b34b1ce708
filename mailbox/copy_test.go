package mailbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mailboxd/mailbox"
)

func TestANewFileIsARepetitionOnlyWhenItIsACopyOrReplacesOne(t *testing.T) {
	for _, test := range []struct {
		name, file, text string
		change           func(path string) error // of x.jsonl, which was read: "a\nb\n"
		want             bool
	}{
		{"another file that says something again", "y", "a\n", nil, false},
		{"a copy", "y", "a\nb\n", nil, true},
		{"a copy that says more", "y", "a\nb\nc\n", nil, true},
		{"another beginning", "y", "b\na\n", nil, false},
		{"a removed name", "x", "a\n", os.Remove, true},
		{"the name of a renamed file", "x", "a\n", func(path string) error { return os.Rename(path, path+".1") }, true},
	} {
		for _, restart := range []bool{false, true} {
			box := open(t)
			path := box.TasksDir() + "/x.jsonl"
			write(t, path, "a\n")
			r := tail(t, box, mailbox.TailOptions{})
			r.want("a")
			add(t, path, "b\n")
			r.want("b")
			if test.change != nil {
				must(t, test.change(path))
				if !restart {
					r.want()
				}
			}
			if restart {
				r = r.again(box, mailbox.TailOptions{})
			}
			write(t, box.TasksDir()+"/"+test.file+".jsonl", test.text)
			for _, line := range r.rest() {
				if line.Replayed != test.want {
					t.Errorf("%s, restart %v: Replayed = %v for %q, want %v", test.name, restart, line.Replayed, line.Raw, test.want)
				}
			}
			add(t, box.TasksDir()+"/"+test.file+".jsonl", "a\n")
			if lines := r.want("a"); lines[0].Replayed {
				t.Errorf("%s, restart %v: a line appended afterwards is Replayed", test.name, restart)
			}
		}
	}
}

func TestACopyIsKnownAmongFilesOfManyLengths(t *testing.T) {
	box := open(t)
	r := tail(t, box, mailbox.TailOptions{})
	for n := range 200 {
		write(t, fmt.Sprintf("%s/%d.jsonl", box.TasksDir(), n), strings.Repeat("x", n)+"\n")
	}
	r.rest()
	for _, n := range []int{1, 10, 199} {
		write(t, fmt.Sprintf("%s/copy%d.jsonl", box.TasksDir(), n), strings.Repeat("x", n)+"\n")
		if lines := r.rest(); len(lines) != 1 || !lines[0].Replayed {
			t.Errorf("the copy of a file of %d bytes is not Replayed: %+v", n+1, lines)
		}
	}
}
