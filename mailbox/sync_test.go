package mailbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

// durable are the calls after whose return the data is on disk.
var durable = map[string]func(box *mailbox.Box, state *mailbox.State) error{
	"nameless result": func(box *mailbox.Box, _ *mailbox.State) error {
		return mailbox.PutNameless(box, "t.json", []byte("{}"), 0o600)
	},
	"named result": func(box *mailbox.Box, _ *mailbox.State) error {
		return mailbox.PutNamed(box, "t.json", []byte("{}"), 0o600)
	},
	"draft": func(box *mailbox.Box, _ *mailbox.State) error {
		draft, err := box.DraftResult([]byte("{}"), 0o600)
		if err != nil {
			return err
		}
		return draft.Put("t")
	},
	"removed result": func(box *mailbox.Box, _ *mailbox.State) error { return box.RemoveResult("old") },
	"history":        func(_ *mailbox.Box, state *mailbox.State) error { return state.PutHistory("t", 1, []byte("{}")) },
	"inbox": func(box *mailbox.Box, _ *mailbox.State) error {
		return box.AppendInbox("agents/a/inbox.jsonl", []byte("{}"))
	},
	"dead letter": func(box *mailbox.Box, _ *mailbox.State) error {
		return box.AppendDeadLetters(time.Unix(0, 0), [][]byte{[]byte("{}")})
	},
}

// A marker of internal/testtools/fault also fires where its sync is missing, so the system calls count.
func TestADurableFileIsSyncedBeforeItIsNamedAndSoIsItsDirectory(t *testing.T) {
	for what, want := range map[string][]string{
		"nameless result": {"sync box/results/*", "link"},
		"named result":    {"sync box/.mailboxd/tmp/*", "link", "unlink"},
		"draft":           {"sync box/results/*", "link"},
		"removed result":  {"unlink", "sync box/results"},
		"history":         {"sync state/history/t/*", "rename", "sync state/history/t", "sync state/history", "sync state"},
		"inbox":           {"sync box", "sync box/agents", "sync box/agents/a/inbox.jsonl", "sync box/agents/a"},
		"dead letter":     {"sync box", "sync box/rejected/1970-01-01.jsonl", "sync box/rejected"},
	} {
		if got := traced(t, what); !slices.Equal(got, want) {
			t.Errorf("%s: the system calls are %q; want %q", what, got, want)
		}
	}
}

func init() {
	cast["durable"] = func(args []string) {
		box, err := mailbox.Open(args[0])
		if err != nil {
			panic(err)
		}
		state, err := mailbox.OpenState(args[1], args[0])
		if err != nil {
			panic(err)
		}
		_ = unix.Access(mark, 0)
		err = durable[args[2]](box, state)
		_ = unix.Access(mark, 0)
		if err != nil {
			panic(err)
		}
	}
}

// mark is the file that a traced process stats before and after its work.
const mark = "/mark-of-the-test"

// traced has another process do one of durable, and returns its system calls that change names or
// sync.
func traced(t *testing.T, what string) (calls []string) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing, so system calls can't be counted")
	}
	dir := t.TempDir()
	must(t, openAt(t, dir+"/box").PutResult("old", []byte("{}"), 0o600))
	trace := filepath.Join(dir, "trace")
	play := exec.Command("strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,/^link,/^rename,/^unlink,/access", "--", os.Args[0], dir+"/box", dir+"/state", what)
	play.Env = append(os.Environ(), "MAILBOX_TEST_PLAYS=durable")
	if out, err := play.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "PTRACE") {
			t.Skipf("strace may trace nothing here: %s", out)
		}
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	parts := strings.Split(read(t, trace), mark)
	if len(parts) != 3 {
		t.Fatalf("the trace of a %s has %d marks; want 2", what, len(parts)-1)
	}
	for _, call := range traceLine.FindAllStringSubmatch(parts[1], -1) {
		verb, path := call[1], strings.TrimPrefix(call[2], dir+"/")
		switch {
		case strings.HasSuffix(verb, "sync"):
			calls = append(calls, "sync "+passing.ReplaceAllString(path, "/*"))
		case !strings.Contains(verb, "access"):
			calls = append(calls, strings.TrimSuffix(verb, "at"))
		}
	}
	return calls
}

var (
	traceLine = regexp.MustCompile(`(?m)^\d+ +(\w+)\(\d+<([^>]*)>`)
	passing   = regexp.MustCompile(`/(#\d+|\.?[A-Z2-7]{26})$`) // of a file without its name yet
)
