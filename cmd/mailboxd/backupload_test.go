package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/operating/backup"
	"mailboxd/internal/testtools/slowtest"
)

// A daemon takes tasks, and is killed again and again, while backups are made. The last
// backup is restored in another home, where nothing runs before its release.
func TestABackupUnderLoadWithKillsIsRestoredElsewhereAndRunsNothingTwice(t *testing.T) {
	slowtest.SkipShort(t, "it kills daemons for seconds")
	base := t.TempDir()
	home, elsewhere := filepath.Join(base, "home"), filepath.Join(base, "other", "home")
	for _, dir := range []string{home, elsewhere} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v := openVisit(t, home)
	v.must("mailboxd init >init.log")
	v.must(`sed -i '1a echo $MAILBOX_TASK_ID >>$HOME/ran; sleep 1' ~/.config/mailboxd/agents/hello.sh`)
	serve := "mailboxd serve 2>>serve.log & echo $! >pid; until mailboxd agents >agents.txt 2>&1; do sleep 0.05; done"
	v.must(serve)
	v.must("mailboxd send --agent hello --type greeting --id asked --approval pre >asked.txt")
	v.must("mailboxd send --agent hello --type greeting --id before --wait >before.txt")
	v.must(`line='{"schema_version":"1.0","requester_id":"load","target_agent":"hello","target_role":"executor","task_type":"greeting","description":"","input":{"refs":[],"payload":{}},"task_id":'`)
	v.must("touch sent.txt; mkdir backups")
	v.must(`(for i in $(seq 3000); do echo "$line\"t$i\"}" >>~/.local/state/ainl_agents/tasks/load.jsonl; echo t$i >>sent.txt; sleep 0.02; done) & echo $! >producer`)
	for _, n := range []string{"1", "2", "3", "4"} {
		v.must("until test $(wc -l <sent.txt) -ge " + n + "0; do sleep 0.05; done; last=$(tail -n1 sent.txt); until mailboxd show $last >shown.txt 2>&1; do sleep 0.05; done")
		v.must("kill -9 $(cat pid); wait $(cat pid); " + serve)
		v.must("cp sent.txt known" + n + ".txt; mailboxd backup backups/" + n + " >made.txt & made=$!; sleep 0.0$RANDOM; kill -9 $(cat pid); wait $made; " + serve)
		v.must("ls backups/" + n + "/backup.json")
	}
	v.must("kill $(cat producer) || true") // on a slow machine it may be done

	other := openVisit(t, elsewhere)
	other.must("cp -r " + home + "/.config ~ && sed -i 's|" + home + "|'$HOME'|' ~/.config/mailboxd/config.yaml")
	other.must("mailboxd restore " + home + "/backups/4 --json >restored.json")
	text, err := os.ReadFile(filepath.Join(elsewhere, "restored.json"))
	var restored backup.Restoration
	if err == nil {
		err = json.Unmarshal(text, &restored)
	}
	if err != nil {
		t.Fatal(err)
	}
	other.must("mailboxd serve 2>serve.log &")
	if len(restored.Held) < 10 { // of 40 or more, which take a second each
		t.Errorf("%d tasks are held; want at least 10, or there was no load", len(restored.Held))
	}
	other.must("until mailboxd show $(tail -n1 " + home + "/known4.txt) >shown.txt 2>&1; do sleep 0.05; done") // restore names at most 100 lines; the daemon reads all
	known := map[string]bool{}
	for _, l := range restored.Later {
		known[string(l.Task)] = true
	}
	for _, id := range strings.Fields(other.must("mailboxd ps --all --json | sed 's/.*\"task_id\":\"\\([a-z0-9]*\\)\".*/\\1/'")) {
		known[id] = true
	}
	sent, err := os.ReadFile(filepath.Join(home, "known4.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range append(strings.Fields(string(sent)), "asked", "before") {
		if !known[id] {
			t.Errorf("task %s was sent before the backup; it is neither in the restored ledger nor named as later", id)
		}
	}
	if shown := other.must("mailboxd show before"); strings.Count(shown, "task.finished") != 1 {
		t.Errorf("the restored mailbox shows of a task that had ended:\n%s", shown)
	}
	if listed := other.must("mailboxd ps --state held"); !strings.Contains(listed, "asked") || !strings.Contains(listed, "approval") {
		t.Errorf("the pending approval is missing in the restored mailbox:\n%s", listed)
	}
	other.must("test -z \"$(mailboxd ps --state queued,running --json)\"")
	if ran, err := os.ReadFile(filepath.Join(elsewhere, "ran")); err == nil {
		t.Errorf("the restored daemon ran by itself:\n%s", ran)
	}
	held := other.must("mailboxd ps --state held --json")
	for _, id := range restored.Held { // of one that had its result file already, the daemon took that
		if id != "asked" && strings.Contains(held, fmt.Sprintf(`"task_id":%q`, id)) {
			other.must("mailboxd release " + string(id))
			other.must("mailboxd wait " + string(id) + " >released.txt")
			break
		}
	}
}
