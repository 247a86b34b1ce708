package core_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

var update = flag.Bool("update", false, "write what happens into testdata")

// Each file of testdata is a scenario: commands, each with its events below it. The commands
// are those of scenario.run.
func TestEveryScenarioHasTheEventsOfItsFile(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := retell(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s is not what happens (go test -update writes that):\n%s", file, got)
			}
		})
	}
}

// retell runs the commands of a scenario, and returns its text with what happens.
func retell(t *testing.T, text string) string {
	w := newWorld(func(n int) int { return n - 1 }) // no crash, no delay
	w.tell = true
	s := scenario{w}
	var b strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		switch {
		case ok:
			w.log = nil
			if err := s.run(strings.Fields(command)); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			fmt.Fprintf(&b, "> %s\n", command)
			for _, note := range w.log {
				fmt.Fprintf(&b, "    %s\n", note)
			}
		case strings.HasPrefix(line, "    "): // what happened when the file was written
		default:
			b.WriteString(line)
		}
		if w.err != nil {
			t.Fatalf("%s: %v", command, w.err)
		}
	}
	return b.String()
}

type scenario struct{ w *world }

// run does one command: its name, the id of a task where it is about one, and more
// words.
//
//	line ID AGENT [CONTENT]    a line in a task file, which is accepted
//	ask PARENT ID AGENT        the run of a task asks for another one
//	says ID TOKENS             a run says what it has spent
//	look ID                    what the daemon does for the task as it stands
//	begin, crash, rules        a run begins, the daemon is killed, the rules change
//	end ID ok|failed|again     its run ends
//	approve|deny ID NAME       a person decides
//	hold|release|cancel|retry ID
//	claim|renew|answer ID [TOKEN]
//	place ID placed|bad        another program writes the result file
//	lost|found|void ID         its runner can't be reached, can be again, or never began the run
//	callbackfails ID           its result file is in place, and its callback fails
//	reply ID                   somebody replies to the agent
//	overseer ID rejects|asks|approves
//	wait DURATION              time passes
func (s scenario) run(words []string) error {
	w, verb, rest := s.w, words[0], words[1:]
	switch verb {
	case "begin":
		w.begin()
		return nil
	case "crash":
		w.crash()
		return nil
	case "rules":
		w.changeRules()
		return nil
	case "wait":
		pause, err := time.ParseDuration(rest[0])
		w.now = w.now.Add(pause)
		return err
	case "line":
		l := line{id: envelope.ID(rest[0]), agent: rest[1]}
		if len(rest) > 2 {
			l.content = int(rest[2][0] - '0')
		}
		w.lines = append(w.lines, l)
		w.takeLines()
		return nil
	}
	t := w.state.Latest(envelope.ID(rest[0]))
	switch {
	case t == nil:
		return fmt.Errorf("there is no task %s", rest[0])
	case verb == "ask":
		w.lines = append(w.lines, line{id: envelope.ID(rest[1]), agent: rest[2], parent: t.Seq})
		w.takeLines()
		return nil
	}
	if len(rest) > 1 {
		return s.about(verb, t, rest[1])
	}
	return s.about(verb, t, "")
}

// about does a command about a task.
func (s scenario) about(verb string, t *core.Task, word string) error {
	w, by, seen, request := s.w, core.By{Who: "root"}, core.See(t.Task), s.w.seen(t).request()
	switch verb {
	case "look":
		w.look(t)
	case "end":
		s.end(t, word)
	case "says":
		n, err := strconv.ParseInt(word, 10, 64)
		w.runs[task.RunName{Task: t.Seq, Attempt: t.Attempt}].said = n
		return err
	case "approve", "deny":
		c := &core.Answer{
			Task: t.Seq, Seen: seen, Decision: task.Approved, Person: core.Person{Names: []string{word}}, Digest: digestAsked(t),
			Request: request, Verdict: w.verdict(w.seen(t)), Result: w.results[t.Seq],
		}
		if verb == "deny" {
			c.Decision = task.Denied
		}
		w.do(c)
	case "hold":
		w.do(&core.Hold{Task: t.Seq, Seen: seen, By: by})
	case "release":
		w.release(t)
	case "cancel":
		w.do(&core.Cancel{Task: t.Seq, Seen: seen, By: by, Request: request, Result: w.results[t.Seq]})
	case "retry":
		events := w.decide(&core.Resubmit{Task: t.Seq, By: by, Verdict: w.admit(w.seen(t), 0)})
		core.Number(events, w.next())
		w.commit(events, w.offset)
	case "claim":
		w.do(&core.Claim{Task: t.Seq, By: core.By{Who: "editor"}, Token: word, Lasts: 20 * time.Second})
	case "renew":
		w.do(&core.Renew{Task: t.Seq, Attempt: t.Attempt, Token: word, Lasts: 20 * time.Second})
	case "answer":
		if err := core.CheckToken(t, t.Attempt, word, w.now); err != nil {
			w.note("answer -> %v", err)
			return nil
		}
		w.finish(t, task.Run{Task: t.Seq, Attempt: t.Attempt, Started: w.now, Finished: w.now}, envelope.OK, "", []byte("fetched"))
	case "reply":
		w.do(&core.Wake{Task: t.Seq, Attempt: t.Attempt, Data: map[string]any{"from": "ann"}})
	case "overseer":
		w.oversee(t, slices.Index([]string{"rejects", "asks", "approves"}, word))
	case "lost", "found":
		w.do(&core.NoteReach{Task: t.Seq, Attempt: t.Attempt, Reachable: verb == "found", Until: w.now.Add(24 * time.Hour)})
	case "void":
		w.do(&core.Void{Task: t.Seq, Attempt: t.Attempt, Keep: true, Show: true})
	case "callbackfails":
		t.Put = true
	case "place":
		w.files[t.ID] = resultFile{body: word}
	default:
		return fmt.Errorf("%s is no command", verb)
	}
	return nil
}

// end ends the run of the oldest revision of a task that runs.
func (s scenario) end(t *core.Task, how string) {
	for _, one := range s.w.state.Revisions(t.ID) {
		name := task.RunName{Task: one.Seq, Attempt: one.Attempt}
		if r := s.w.runs[name]; r != nil && !r.ended {
			r.ended, r.final, r.ok, r.again = true, true, how == "ok", how == "again"
			s.w.received(name)
			return
		}
	}
}
