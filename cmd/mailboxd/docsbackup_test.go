package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

// section returns a part of a page, from its heading to the next one.
func section(t *testing.T, page, heading string) []block {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return consoleBlocks(t, page, part)
}

// must types a command that has to work, and returns what it prints.
func (v *visit) must(text string) string {
	v.t.Helper()
	printed := v.enter(command{text: text})
	if status := strings.TrimSpace(v.once("echo $?")); status != "0" {
		v.t.Fatalf("$ %s\nexits with %s:\n%s", text, status, printed)
	}
	return printed
}

// follow types the commands of a section, each of which has to work.
func (v *visit) follow(heading string) {
	v.t.Helper()
	for _, b := range section(v.t, "operations.md", heading) {
		for _, c := range b.commands {
			v.must(c.text)
		}
	}
}

// openTwoMailboxes opens a home with two mailboxes, both of which are served,
// and an agent that counts its runs in the file ran.
func openTwoMailboxes(t *testing.T) *visit {
	t.Helper()
	v := openVisit(t, t.TempDir())
	v.must("mailboxd init >init.log")
	v.must(`sed -i "1a echo \$MAILBOX_TASK_ID >>$HOME/ran" ~/.config/mailboxd/agents/hello.sh`)
	v.must(`sed "s|^root:.*|root: $HOME/second|; s|agents/hello|$HOME/.config/mailboxd/agents/hello|" ~/.config/mailboxd/config.yaml >second.yaml`)
	v.must("mailboxd serve 2>serve.log &")
	v.must("(mailboxd --config second.yaml serve >second.log 2>&1 & echo $! >second.pid)") // no job of this shell: the page counts its jobs
	t.Cleanup(func() { v.once("kill $(cat second.pid)") })
	v.must("mailboxd --config second.yaml send --agent hello --type greeting --id second-1 --wait >second.txt")
	v.must("mailboxd send --agent hello --type greeting --id before --wait >answer.txt")
	return v
}

// wantHistory looks for a task that has ended, with its events, and for the
// other mailbox, which goes on.
func (v *visit) wantHistory(id string) {
	v.t.Helper()
	for _, kind := range []string{"task.accepted", "task.started", "task.finished"} {
		if shown := v.must("mailboxd show " + id); strings.Count(shown, kind) != 1 {
			v.t.Errorf("mailboxd show %s has the event %s not once:\n%s", id, kind, shown)
		}
	}
	if logs := v.must("mailboxd logs " + id); !strings.Contains(logs, "This is task "+id) {
		v.t.Errorf("mailboxd logs %s:\n%s", id, logs)
	}
	v.must("mailboxd result " + id)
	v.must("kill -0 $(cat second.pid)")
	if shown := v.must("mailboxd --config second.yaml show second-1"); !strings.Contains(shown, "task.finished") {
		v.t.Errorf("the other mailbox says of its task:\n%s", shown)
	}
}

func (v *visit) wantRuns(want string) {
	v.t.Helper()
	ran, err := os.ReadFile(filepath.Join(v.home, "ran"))
	if err != nil || strings.Join(strings.Fields(string(ran)), " ") != want {
		v.t.Errorf("the agent ran for %q, %v; want %q", ran, err, want)
	}
}

// The page's sections about one mailbox must leave another one alone.
func TestOneOfTwoMailboxesIsRestoredAndMovedAsThePageSays(t *testing.T) {
	slowtest.SkipShort(t, "it types a section of the docs for each of two mailboxes")
	t.Run("restored", func(t *testing.T) {
		t.Parallel()
		restoreOneOfTwo(t)
	})
	t.Run("moved", func(t *testing.T) {
		t.Parallel()
		moveOneOfTwo(t)
	})
}

func restoreOneOfTwo(t *testing.T) {
	t.Helper()
	v := openTwoMailboxes(t)
	v.follow("Backup and restore")
	v.wantHistory("before")
	configs, err := filepath.Glob(filepath.Join(v.home, "backup/*/config.yaml"))
	if err != nil || len(configs) != 1 {
		t.Fatalf("the backup has the configurations %v, %v; want one", configs, err)
	}
	for _, name := range []string{"*/root", "ledger.db"} {
		if mixed, _ := filepath.Glob(filepath.Join(filepath.Dir(configs[0]), name)); len(mixed) > 0 {
			t.Errorf("the backup mixes state and configuration: %v", mixed)
		}
	}
	v.must("mailboxd send --agent hello --type greeting --id after --wait >answer.txt")
	v.wantRuns("second-1 before after")
}

func moveOneOfTwo(t *testing.T) {
	t.Helper()
	v := openTwoMailboxes(t)
	v.follow("Moving a mailbox")
	v.wantHistory("before")
	v.must("AINL_AGENT_ROOT=$HOME/mail mailboxd send --agent hello --type greeting --id after --wait >answer.txt")
	v.must("ls ~/mail/results/before.json ~/mail/results/after.json")
	v.must("test ! -e ~/.local/state/ainl_agents")
	v.wantRuns("second-1 before after")
}
