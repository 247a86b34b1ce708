package mailbox_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

func TestACallbackIsALineOfItsOwn(t *testing.T) {
	box := open(t)
	path := box.Path() + "/out/deep/log.jsonl"
	must(t, box.AppendCallback("out/deep/log.jsonl", []byte(`{"n":1}`)))
	add(t, path, "torn")
	must(t, box.AppendCallback("out/deep/log.jsonl", []byte(`{"n":2}`)))
	if got, want := read(t, path), "{\"n\":1}\ntorn\n{\"n\":2}\n"; got != want {
		t.Errorf("file = %q, want %q", got, want)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want mode %v", path, info.Mode(), err, want)
		}
	}
	must(t, box.AppendQueue("q.1", []byte("{}")))
	if got := read(t, box.Path()+"/queues/q.1.jsonl"); got != "{}\n" {
		t.Errorf("queue = %q, want one line", got)
	}
}

func TestACallbackStaysInTheMailbox(t *testing.T) { // rows 15, 17 and 29
	outside := t.TempDir()
	box := open(t)
	root := box.Path()
	must(t, os.Mkdir(root+"/dir", 0o700))
	must(t, os.Symlink(outside, root+"/out"))
	must(t, os.Symlink("dir", root+"/in"))
	must(t, os.Symlink("tasks/x.jsonl", root+"/loop"))
	must(t, os.Symlink(outside+"/new", root+"/dangling"))
	must(t, unix.Mkfifo(root+"/fifo", 0o600))
	must(t, os.Symlink("/proc/self/fd", root+"/magic"))
	must(t, os.MkdirAll(root+"/agents/bob", 0o700))
	must(t, os.WriteFile(root+"/agents/bob/inbox.jsonl", nil, 0o600))
	must(t, os.Link(root+"/agents/bob/inbox.jsonl", root+"/agents/linked.jsonl"))
	before := tree(t, root) + tree(t, outside)
	for _, path := range []string{
		"../../x", "/etc/x", "a/../../x", "a/../b", "..", ".", "", "./a", "a//b", "a/", "a\x00b",
		"tasks/openclaw_agent_tasks.jsonl", "tasks/new.jsonl", "tasks", "results/other.json", "rejected/x", ".mailboxd/x", ".mailboxd/tmp/x",
		"agents/bob/inbox.jsonl", "agents/alice/inbox.jsonl", "AGENTS/bob/Inbox.jsonl", "agents/linked.jsonl",
		"out/x", "in/x", "loop", "dangling", "fifo", "fifo/x", "dir", "magic/1", strings.Repeat("n", 256),
	} {
		if err := box.AppendCallback(path, []byte("{}")); err == nil {
			t.Errorf("AppendCallback(%q) = nil, want an error", path)
		}
	}
	for _, name := range []string{"", "a/b", "../x", "a b", "é", strings.Repeat("n", 65), "a\n"} {
		if err := box.AppendQueue(name, []byte("{}")); err == nil {
			t.Errorf("AppendQueue(%q) = nil, want an error", name)
		}
	}
	if after := tree(t, root) + tree(t, outside); after != before {
		t.Errorf("refused callbacks left\n%s\nwant\n%s", after, before)
	}
}

// tree lists the content of a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		names.WriteString(path + "\n")
		return err
	}))
	return names.String()
}

func FuzzACallbackPathStaysInTheMailbox(f *testing.F) {
	for _, path := range []string{"a", "a/b", "../a", "tasks/a", "/a", "a/../../b", "a\x00", ".", "a\\..\\b"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		dir := t.TempDir()
		box := openAt(t, dir+"/box")
		before := tree(t, dir)
		err := box.AppendCallback(path, []byte("line"))
		if (mailbox.CheckCallback(path) != nil) && err == nil {
			t.Fatalf("AppendCallback(%q) = nil, CheckCallback refuses", path)
		}
		if err != nil {
			if after := tree(t, dir); after != before && mailbox.CheckCallback(path) != nil {
				t.Errorf("a refused %q left\n%s", path, after)
			}
			return
		}
		if got := read(t, box.Path()+"/"+path); got != "line\n" {
			t.Errorf("%q holds %q, want the line", path, got)
		}
		for _, kept := range []string{"tasks", "results"} {
			if entries, _ := os.ReadDir(box.Path() + "/" + kept); len(entries) > 0 {
				t.Errorf("%q put something into %s", path, kept)
			}
		}
	})
}

func TestSendersAppendWholeLines(t *testing.T) { // row 13
	root := filepath.Join(t.TempDir(), "new", "box")
	line := []byte(strings.Repeat("x", 9999))
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 20 {
				if _, _, err := mailbox.Append(root, line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	lines := tail(t, openAt(t, root), mailbox.TailOptions{}).rest()
	for _, got := range lines {
		if len(got.Raw) != len(line) {
			t.Errorf("a line of %d bytes, want %d", len(got.Raw), len(line))
		}
	}
	if len(lines) != 160 {
		t.Errorf("%d lines, want 160", len(lines))
	}
}

func TestAppendReturnsTheOffsetOfTheLine(t *testing.T) {
	root := open(t).Path()
	for _, before := range []string{"", "a line\n", "torn"} {
		add(t, root+"/tasks/mailboxd.jsonl", before)
		file, offset, err := mailbox.Append(root, []byte("{}"))
		must(t, err)
		text := read(t, filepath.Join(root, file))
		if file != "tasks/mailboxd.jsonl" || text[offset:] != "{}\n" || offset > 0 && text[offset-1] != '\n' {
			t.Errorf("Append = %s, %d in %q; want the offset of {}, at the start of a line", file, offset, text)
		}
	}
}

func TestADeadLetterHasTheExactBytes(t *testing.T) {
	box := open(t)
	now := time.Date(2026, 3, 9, 23, 30, 0, 0, time.FixedZone("", -3600))
	reasons := []mailbox.Reason{{Field: "task_id", Message: "must be a string"}}
	must(t, box.AppendDeadLetters(now, [][]byte{
		mailbox.DeadLetter{Time: now, File: "tasks/x.jsonl", Offset: 7, Length: 9, TaskID: "../x", Kind: envelope.InvalidEnvelope, Reasons: reasons, Raw: []byte("{\"a\":\n")}.Line(),
		mailbox.DeadLetter{File: "tasks/\xff.jsonl", Raw: []byte("\xff\x00"), Kind: envelope.InvalidJSON}.Line(),
	}))
	must(t, box.AppendDeadLetters(now, nil))
	lines := strings.Split(read(t, box.Path()+"/rejected/2026-03-10.jsonl"), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("dead letters = %q, want two lines", lines)
	}
	var got [2]map[string]any
	for i := range got {
		must(t, json.Unmarshal([]byte(lines[i]), &got[i]))
	}
	if got[0]["raw"] != "{\"a\":\n" || got[0]["task_id"] != "../x" || got[0]["time"] != "2026-03-10T00:30:00Z" || got[0]["offset"] != 7.0 {
		t.Errorf("text = %v", got[0])
	}
	if raw, err := base64.StdEncoding.DecodeString(got[1]["raw_base64"].(string)); string(raw) != "\xff\x00" || err != nil {
		t.Errorf("not text = %v", got[1])
	}
	if sum := got[1]["sha256"].(string); len(sum) != 64 {
		t.Errorf("sha256 = %q, want 64 digits", sum)
	}
}
