package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/testtools/fault"
	"mailboxd/internal/testtools/slowtest"
)

// failing has one read fail with an error, as long as the test runs.
func failing(t *testing.T, read string, with error) (met *bool) {
	t.Helper()
	met = new(bool)
	t.Cleanup(fault.FailReads(func(name string) error {
		if name != read {
			return nil
		}
		*met = true
		return with
	}))
	return met
}

// A readCase is one read of what a run left. Its files are those of a good run.
type readCase struct {
	read   string
	files  map[string]string
	output agent.Format
	code   int
	after  envelope.Kind // of the error, when the file is not there
	denied envelope.Kind // when it may not be read
}

const goodAnswer = `{"status":"ok","output":{"summary":"fine"}}`

func readCases() []readCase {
	file := map[string]string{"result.json": goodAnswer}
	printed := map[string]string{"stdout": goodAnswer}
	spoken := map[string]string{"stdout": `{"type":"result","subtype":"success","result":"fine"}` + "\n"}
	cut := map[string]string{"stdout": `{"type":"system"}` + "\n", "stderr": "Invalid API key"}
	progress := map[string]string{"stdout": goodAnswer, "progress.jsonl": `{"cost_used":{"tokens":1,"usd_cents":1}}` + "\n"}
	invalid, lost := envelope.OutputInvalid, envelope.RunLost
	return []readCase{
		{read: "open result.json", files: file, after: invalid, denied: invalid},
		{read: "read result.json", files: file, after: invalid, denied: invalid},
		{read: "open stdout", files: printed, after: invalid, denied: invalid},
		{read: "read stdout", files: printed, after: invalid, denied: invalid},
		{read: "open stdout", files: printed, output: agent.Text, after: invalid, denied: invalid},
		{read: "open stdout", files: spoken, output: agent.Claude, after: invalid, denied: invalid},
		{read: "read stdout", files: spoken, output: agent.Claude, after: invalid, denied: invalid},
		{read: "open stderr", files: cut, output: agent.Claude, code: 1, after: envelope.AgentCrashed, denied: envelope.AgentCrashed},
		{read: "read stderr", files: cut, output: agent.Claude, code: 1, after: envelope.AgentCrashed, denied: envelope.AgentCrashed},
		{read: "open progress.jsonl", files: progress},
		{read: "read progress.jsonl", files: progress},
		{read: "meta.json", files: file},
		{read: "exit.json", files: file, after: lost, denied: lost},
		{read: "size", files: file, after: lost, denied: lost},
	}
}

// recovered has the run of the case taken up by a later daemon.
func (c readCase) recovered(t *testing.T) task.Outcome {
	t.Helper()
	j := jobFor(t, request(""))
	said := int64(len(c.files["stdout"]) + len(c.files["result.json"]))
	record, err := json.Marshal(task.Exit{Code: c.code, PID: 1 << 30, Finished: time.Now(), OutputBytes: said})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"stdout": "", "stderr": "", "exit.json": string(record)}
	for name, text := range c.files {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := playing(t, "hang")
	b.Output = c.output
	return bound(t, b).Recover(t.Context(), j)
}

// The table of docs/answers.md, row by row.
func TestAFailureOfTheMachineIsNoAnswerAndAFactAboutTheFileIs(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	for _, c := range readCases() {
		t.Run(string(c.output)+" "+c.read, func(t *testing.T) {
			for _, errno := range []syscall.Errno{unix.EIO, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ESTALE} {
				met := failing(t, c.read, errno)
				if got := c.recovered(t); !*met || got.Unread == nil {
					t.Errorf("%v: read: %v; got %q, %+v; want that it is unread", errno, *met, got.Result.Status, got.Result.Error)
				}
			}
			for errno, want := range map[syscall.Errno]envelope.Kind{unix.ENOENT: c.after, unix.EACCES: c.denied, unix.EISDIR: c.denied, unix.ENXIO: c.denied} {
				failing(t, c.read, errno)
				if got := c.recovered(t); got.Unread != nil || got.Result.Error.Kind != want {
					t.Errorf("%v: unread: %v, got error %+v; want kind %q", errno, got.Unread, got.Result.Error, want)
				}
			}
		})
	}
}

func TestAnArtifactThatCannotBeLookedUpIsLeftOutWithTheReason(t *testing.T) {
	failing(t, "artifact", unix.EIO)
	c := readCase{files: map[string]string{"result.json": `{"status":"ok","output":{"summary":"fine"},"artifact_refs":[{"kind":"file","uri":"file:///stdout"}]}`}}
	if r := c.recovered(t).Result; r.Status != envelope.OK || !strings.Contains(r.Review.Reason, "it could not be looked up: input/output error") {
		t.Errorf("got %q, review %+v; want ok, and the error in the reason", r.Status, r.Review)
	}
}

func TestTheWordsOfAnErrorMessageAreLeftOutWhenTheyCannotBeRead(t *testing.T) {
	failing(t, "open stderr", unix.EIO)
	c := readCase{files: map[string]string{"stdout": goodAnswer, "stderr": "boom"}, code: 1}
	expect(t, "without its words", c.recovered(t), envelope.Failed, envelope.AgentCrashed)
}
