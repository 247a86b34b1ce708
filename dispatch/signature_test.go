package dispatch_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/sign"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

func seedKey(letter string) seal.PrivateKey {
	return seal.PrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(letter, ed25519.SeedSize))))
}

// daemonKey signs the messages of the daemon, and senderKey those of senders.
var daemonKey, senderKey = seedKey("d"), seedKey("s")

// mustSign has senders sign from now on, with senderKey.
func (e *engine) mustSign(senders ...string) {
	rules := sign.Rules{Keys: map[string][]sign.Key{}}
	for _, name := range senders {
		rules.Keys[name] = []sign.Key{{ID: senderKey.Key(), Public: senderKey.Public()}}
		rules.Rules = append(rules.Rules, sign.Rule{Sender: name, Require: true})
	}
	e.signatures.Store(&rules)
}

func signed(t *testing.T, line string) string {
	t.Helper()
	text, err := sign.Line([]byte(line), senderKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// clutchWord is a message of Clutch about the task t1 of the run run_1.
func clutchWord(id, kind, from, to string) string {
	return fmt.Sprintf(`{"v":"clutch/0.1","id":%q,"ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"t1",`+
		`"from":{"agent_id":"agent:%s"},"to":[{"agent_id":"agent:%s"}],"type":%q,"payload":{"text":"hello"}}`, id, from, to, kind)
}

// A file that a run writes belongs to that run, so that it proves the agent as its author.
func TestALineInTheTaskFileOfARunNeedsNoSignature(t *testing.T) {
	e, letGo := inRun(t)
	e.mustSign("chief")
	e.say(strings.TrimSuffix(clutchChild("outside", "own", "own"), "\n"))
	e.write(clutchChild("inside", "own", "own"))
	e.Look(t.Context())
	if row := e.row("inside"); row.Kind != "" {
		t.Errorf("the line of the run is refused: %s", row.Kind)
	}
	if rows, err := e.parts.Ledger.Revisions(t.Context(), "outside"); len(rows) > 0 || err != nil {
		t.Errorf("the line in the mailbox has %d tasks, %v; want none", len(rows), err)
	}
	if n := e.events(task.KindSignatureRefused); n != 1 {
		t.Errorf("%d events of a refused signature; want 1", n)
	}
	letGo()
}

// The rule came after the line was accepted.
func TestALineThatWasAcceptedBeforeStaysADuplicate(t *testing.T) {
	e := startEngine(t)
	plain, word := request("t0", "quick"), clutchWord("m1", "task.request", "ann", "quick")
	e.say(plain, word)
	e.await("t0", task.Done)
	e.await("t1", task.Done)
	e.mustSign("ann", "tester")
	e.say(plain, word)
	if n := e.events(task.KindSignatureRefused); n != 0 {
		t.Errorf("%d events of a refused signature; want none", n)
	}
	if n := e.events(task.KindTaskDuplicate) + e.events(task.KindMessageDuplicate); n != 2 {
		t.Errorf("%d events of duplicates; want 2", n)
	}
}

func TestASenderWithAVerifiedSignatureIsKnownAndNeedsNoSecret(t *testing.T) {
	e := newEngine(t)
	e.secrets = map[string]string{"ann": "in CLowl alone"}
	e.start()
	e.mustSign("ann")
	e.say(clutchWord("m1", "chat.message", "bob", "carl"), signed(t, clutchWord("m2", "chat.message", "ann", "carl")))
	e.until("carl has a letter", func() bool { return len(e.letters("carl")) == 1 })
	if letter := e.letters("carl")[0]; !strings.Contains(letter, `"id":"m2"`) {
		t.Errorf("carl has %s; want the message of ann", letter)
	}
}

// A message that cancels a task is refused like one that requests it.
func TestACancellationWithoutASignatureCancelsNothing(t *testing.T) {
	e := startEngine(t)
	e.mustSign("ann")
	e.say(signed(t, clutchWord("m1", "task.request", "ann", "slow")))
	e.await("t1", task.Running)
	e.say(clutchWord("m2", "task.cancel", "ann", "slow"))
	if row := e.row("t1"); row.State != task.Running {
		t.Errorf("the task is %s", row.State)
	}
	e.say(signed(t, clutchWord("m3", "task.cancel", "ann", "slow")))
	e.await("t1", task.Done)
	e.until("ann has the end", func() bool { return strings.Contains(strings.Join(e.letters("ann"), ""), `"type":"task.cancel"`) })
	for _, letter := range e.letters("ann") {
		ends := strings.Contains(letter, `"type":"task.cancel"`) || strings.Contains(letter, "UNAUTHORIZED")
		if ends != strings.Contains(letter, daemonKey.Key()) {
			t.Errorf("%s: signed %t", letter, !ends)
		}
	}
}

// A number of an answer that has no canonical form can't be signed: the answer goes out as it is.
func TestAnAnswerThatCannotBeSignedGoesOutUnsigned(t *testing.T) {
	e := newEngine(t)
	e.plays["quick"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "done")
		o.Result.Output.Extra = jsontext.Value(`{"n":9007199254740993}`)
		return o
	}
	e.start()
	e.mustSign("ann")
	e.say(signed(t, clutchWord("m1", "task.request", "ann", "quick")))
	e.until("ann has the result", func() bool { return strings.Contains(strings.Join(e.letters("ann"), ""), `"type":"task.result"`) })
	result := e.letters("ann")[len(e.letters("ann"))-1]
	if !strings.Contains(result, "9007199254740993") || strings.Contains(result, `"sig"`) {
		t.Errorf("the result is %s; want the number, and no signature", result)
	}
	if !strings.Contains(e.log.String(), "message not signed") {
		t.Error("the log says nothing about it")
	}
}
