package realagents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// unserved are the answers of a provider that doesn't serve, and what a person is told while
// the program tries again.
var unserved = map[string]struct {
	script []fakemodel.Reply
	again  string // in ps while the program tries again; "" where that is too short
	reason string // of the hold
	after  [2]time.Duration
}{
	// Claude Code tries again for minutes after 503, and three times after 529.
	"claude": {
		[]fakemodel.Reply{
			fakemodel.Fails(fakemodel.Unavailable, 0), fakemodel.Fails(fakemodel.Unavailable, 0), fakemodel.Fails(fakemodel.Unavailable, 0),
			fakemodel.Fails(fakemodel.Unavailable, 0), fakemodel.Fails(fakemodel.Overloaded, 0),
		},
		"the provider is overloaded; attempt ", "provider_limit", [2]time.Duration{0, 31 * time.Second},
	},
	"codex": {
		[]fakemodel.Reply{fakemodel.Fails(fakemodel.RateLimited, time.Second)},
		"", "provider_limit", [2]time.Duration{0, 31 * time.Second},
	},
	"gemini": {
		[]fakemodel.Reply{fakemodel.Fails(fakemodel.Overloaded, 0), fakemodel.Fails(fakemodel.RateLimited, time.Hour)},
		"the provider is overloaded; attempt ", "provider_limit", [2]time.Duration{59 * time.Minute, time.Hour},
	},
	"opencode": {
		[]fakemodel.Reply{fakemodel.Fails(fakemodel.Overloaded, 0), fakemodel.Fails(fakemodel.Unauthorized, 0)},
		"", "auth_required", [2]time.Duration{},
	},
}

func TestAProviderThatDoesNotServeIsSaidAndTheTaskRunsLater(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		want := unserved[b.program.name]
		b.plain()
		b.serve()
		b.model.Script(want.script...)
		id := strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", b.program.name, "What is the answer?")).out)
		seen, held := b.awaitHold(id, want.again)
		if want.again != "" && !seen {
			t.Errorf("ps never said %q", want.again)
		}
		if len(held.Held) != 1 || held.Held[0] != want.reason {
			t.Fatalf("the task is held for %v; want %s", held.Held, want.reason)
		}
		if in := time.Until(held.Until); want.reason == "provider_limit" && (in < want.after[0] || in > want.after[1]) {
			t.Errorf("it is tried again in %v; want %v to %v", in, want.after[0], want.after[1])
		}
		b.golden("unserved."+b.program.name, b.screen("logs", id)+"--------\n"+b.screen("ps"))

		b.model.Script(fakemodel.Text("The answer is 42."))
		b.must(b.mailboxd(b.work, "release", id))
		b.must(b.mailboxd(b.work, "wait", id, "--timeout", "80s"))
		if r := b.result(); r.Status != "ok" || r.Output.Summary != "The answer is 42." {
			t.Errorf("result = %+v; want the answer", r)
		}
	})
}

// refusals are answers of a provider at which a task waits, and what a person is told.
var refusals = map[string]struct {
	program string
	script  []fakemodel.Reply
	reason  string // of the hold
	after   [2]time.Duration
	says    []string // of show
}{
	"a refused key": {
		"gemini", []fakemodel.Reply{fakemodel.Fails(fakemodel.Unauthorized, 0)}, "auth_required", [2]time.Duration{},
		[]string{loginCommands["gemini"], "API key not valid"},
	},
	"a used-up quota": {
		"opencode", again(fakemodel.QuotaUsedUp), "provider_limit", [2]time.Duration{28 * time.Minute, 30 * time.Minute},
		[]string{"a limit of its provider", "The usage limit has been reached"},
	},
	"a limit of a minute": {
		"opencode", again(fakemodel.RateLimited), "provider_limit", [2]time.Duration{0, 31 * time.Second},
		[]string{"a limit of its provider", "Rate limit reached for the model"},
	},
}

// again has a problem so often that opencode gives up. Only the last answer names no time.
func again(p fakemodel.Problem) (script []fakemodel.Reply) {
	for range 5 {
		script = append(script, fakemodel.Fails(p, time.Second))
	}
	return append(script, fakemodel.Fails(p, 0))
}

func TestARefusedKeyAndALimitHoldTheTask(t *testing.T) {
	for name, want := range refusals {
		t.Run(name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			b := newBox(t, named(want.program))
			b.plain()
			b.serve()
			b.model.Script(want.script...)
			id := strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", want.program, "What is the answer?")).out)
			_, held := b.awaitHold(id, "")
			if len(held.Held) != 1 || held.Held[0] != want.reason {
				t.Fatalf("the task is held for %v; want %s", held.Held, want.reason)
			}
			if in := time.Until(held.Until); want.reason == "provider_limit" && (in < want.after[0] || in > want.after[1]) {
				t.Errorf("it is tried again in %v; want %v to %v", in, want.after[0], want.after[1])
			}
			shown := b.mailboxd(b.work, "show", id).out
			for _, words := range want.says {
				if !strings.Contains(shown, words) {
					t.Errorf("show prints\n%s\nwant %q", shown, words)
				}
			}
			b.golden("refused."+strings.ReplaceAll(name, " ", "-"), b.screen("logs", id)+"--------\n"+b.screen("show", id)+"--------\n"+b.screen("ps"))
		})
	}
}

// opencode itself sleeps as long as its provider names, without an event.
func TestOpenCodeDoesNotSleepUntilItsProviderServesAgain(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	b := newBox(t, named("opencode"))
	b.plain()
	b.serve()
	b.model.Script(fakemodel.Fails(fakemodel.RateLimited, time.Hour))
	id := strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", "opencode", "What is the answer?")).out)
	_, held := b.awaitHold(id, "")
	if len(held.Held) != 1 || held.Held[0] != "provider_limit" {
		t.Fatalf("the task is held for %v; want provider_limit", held.Held)
	}
	if in := time.Until(held.Until); in < 58*time.Minute || in > time.Hour {
		t.Errorf("it is tried again in %v; want an hour, as the provider says", in)
	}
	b.nothingLeft("the hold")
	b.golden("waits.opencode", b.screen("logs", id)+"--------\n"+b.screen("show", id)+"--------\n"+b.screen("ps"))

	b.model.Script(fakemodel.Text("The answer is 42."))
	b.must(b.mailboxd(b.work, "release", id))
	b.must(b.mailboxd(b.work, "wait", id, "--timeout", "80s"))
	if r := b.result(); r.Status != "ok" || r.Output.Summary != "The answer is 42." {
		t.Errorf("result = %+v; want the answer", r)
	}
}

// A shownTask is what show --json says of a task.
type shownTask struct {
	State string    `json:"state"`
	Held  []string  `json:"held"`
	Until time.Time `json:"until"`
}

// awaitHold waits until a task is held, and reports whether ps has said some words before.
func (b *box) awaitHold(id, words string) (seen bool, t shownTask) {
	b.t.Helper()
	b.awaitTask(id)
	for begun := time.Now(); time.Since(begun) < patience; {
		if words != "" && !seen {
			out := b.must(b.mailboxd(b.work, "ps")).out
			seen = strings.Contains(out, words)
			if strings.Contains(out, `{"`) {
				b.t.Errorf("ps prints a raw event:\n%s", out)
			}
		}
		if t = b.shown(id); t.State == "held" || t.State == "done" {
			return seen, t
		}
		time.Sleep(100 * time.Millisecond) // between two looks
	}
	b.t.Fatalf("the task is not held after %v", patience)
	return seen, t
}

func (b *box) shown(id string) shownTask {
	b.t.Helper()
	var file struct {
		Task shownTask `json:"task"`
	}
	out := b.must(b.mailboxd(b.work, "show", id, "--json")).out
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return file.Task
}

// The other programs end with an error of their own, or ask again.
func TestAnAnswerThatIsCutShortIsNotTheAnswerOfClaudeCode(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	b := newBox(t, all[0])
	b.plain()
	b.serve()
	b.model.Script(fakemodel.Reply{Text: "The answer is forty-two.", Usage: fakemodel.DefaultUsage, Short: true})
	r := b.ask("What is the answer?")
	if r.Status != "error" || r.Error.Message != "the agent says that it failed: the answer of the provider was cut short" {
		t.Errorf("result = %+v; want an error for the half of an answer", r)
	}
}
