package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts of the page call curl as ntfy and Slack want it. A stand-in writes down how.
func TestTheScriptsOfThePageAboutNoticesCallTheirPrograms(t *testing.T) {
	home := t.TempDir()
	v := openVisit(t, home)
	for _, name := range []string{"curl", "notify-send"} {
		stand := "#!/bin/sh\n(printf '%s|' " + name + " \"$@\"; echo) >>" + home + "/called\n"
		if err := os.WriteFile(filepath.Join(home, "bin", name), []byte(stand), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v.must("mailboxd init >init.log; echo https://hooks.example/x >~/.config/mailboxd/slack-webhook")
	for _, b := range section(t, "operations.md", "Monitoring") {
		if strings.Contains(b.commands[0].text, "ntfy.sh") {
			for _, c := range b.commands {
				v.must(c.text)
			}
		}
	}
	v.must("cat notify.yaml >>~/.config/mailboxd/config.yaml && mailboxd config check >check.txt")
	for _, flags := range []string{"--id good", "--id asked --approval pre", "--id bad --role reviewer"} {
		v.must("mailboxd send --agent hello --type greeting " + flags + " >sent.txt || true")
	}
	v.must("echo '{\"schema_version\":\"1.0\",\"task_id\":\"bad\",\"requester_id\":\"a\",\"target_agent\":\"nobody\",\"target_role\":\"executor\",\"task_type\":\"t\",\"description\":\"\",\"input\":{\"refs\":[],\"payload\":{}}}' >>~/.local/state/ainl_agents/tasks/other.jsonl")
	v.must("export DBUS_SESSION_BUS_ADDRESS=stand-in; mailboxd serve 2>serve.log &")
	for _, want := range []string{
		"notify-send|--app-name=mailboxd|A task waits for a person|Task asked: it needs an approval. See: mailboxd show asked|",
		"curl|-fsS|-H|Title: A task finished|-d|Task good: ok. See: mailboxd result good|https://ntfy.sh/your-topic|",
		`curl|-fsS|-H|Content-Type: application/json|-d|{"text": "A task failed: Task bad: rejected`,
		`See: mailboxd show bad"}|https://hooks.example/x|`,
	} {
		v.must("for i in $(seq 1200); do grep -qF -- '" + want + "' called && break; sleep 0.1; done; grep -qF -- '" + want + "' called || { cat called serve.log; false; }")
	}
}
