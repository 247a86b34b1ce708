package bundle

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

const secretWords = "the secret words"

// recorded returns a ledger with a run of a task and a task below it, another task, and all events but the last sealed.
func recorded(t *testing.T) *ledger.Ledger {
	t.Helper()
	return recordedAt(t, filepath.Join(t.TempDir(), "ledger.db"))
}

func recordedAt(t *testing.T, path string) *ledger.Ledger {
	t.Helper()
	l, _, err := ledger.Open(path)
	try(t, err)
	t.Cleanup(func() { try(t, l.Close()) })
	signer := func() (seal.Signer, error) { return seal.PrivateKey(keyOf(1)), nil }
	try(t, l.SealWith(t.Context(), seal.Writer{Signer: signer}))
	update := func(fn func(*ledger.Tx) error) { try(t, l.Update(context.Background(), fn)) }
	result := []byte(`{"task_id":"t1","status":"ok","summary":"` + secretWords + `"}`)
	accept := func(id envelope.ID, parent int64) (seq int64) {
		update(func(tx *ledger.Tx) (err error) {
			row := task.Task{ID: id, Revision: 1, State: task.Running, Agent: "ken", Requester: "ann", Received: noon, Parent: parent}
			if seq, err = tx.Add(row, []byte(`{"task_id":"`+string(id)+`","description":"`+secretWords+`"}`)); err != nil {
				return err
			}
			return tx.Log(task.Event{Time: noon, Kind: task.KindTaskAccepted, Task: id, Revision: 1, Of: seq, Data: []byte(`{"agent":"ken"}`)})
		})
		return seq
	}
	first := accept("t1", 0)
	logged := func(tx *ledger.Tx, kind task.Kind, data string) error {
		return tx.Log(task.Event{Time: noon, Kind: kind, Task: "t1", Revision: 1, Of: first, Data: []byte(data)})
	}
	accept("other", 0)
	accept("t1.1", first)
	update(func(tx *ledger.Tx) error {
		_, err := tx.Record(task.Message{
			Time: noon, Dialect: envelope.CLowl, Act: "informs", Task: first, From: "ken", To: "ann", Via: "run", Body: []byte(secretWords),
		})
		return errors.Join(err, logged(tx, task.KindTaskProgress, `{"message":"`+secretWords+`"}`))
	})
	update(func(tx *ledger.Tx) error {
		_, err := tx.Move(first, task.Running, 0, task.Change{To: task.Done, Status: envelope.OK, Result: result})
		return errors.Join(err, logged(tx, task.KindTaskFinished, `{"status":"ok","result_sha256":"`+digestOf(string(result))+`"}`))
	})
	try(t, l.Seal(t.Context()))
	update(func(tx *ledger.Tx) error {
		return tx.Log(task.Event{Time: noon.Add(time.Minute), Kind: task.KindTaskNoticed, Task: "t1", Revision: 1, Of: first})
	})
	return l
}

func exported(t *testing.T, l *ledger.Ledger, run string, leaveOut ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.tar")
	done, err := Export(t.Context(), Source{Ledger: l.Reader, Mailbox: "box-1", Signer: seal.PrivateKey(keyOf(1))}, run, leaveOut, path)
	try(t, err)
	file, err := os.ReadFile(path)
	try(t, err)
	if done.Run != "t1" || done.Tasks != 2 || done.Open != 1 || done.Bytes != int64(len(file)) {
		t.Errorf("Export = %+v; want run t1 with two tasks, one open, and %d bytes", done, len(file))
	}
	return file
}

func TestAnExportedRunVerifies(t *testing.T) {
	l := recorded(t)
	file := exported(t, l, "t1")
	r, err := verifyBytes(t, file, Trust{Keys: keysOf(1)})
	want := "ok: bundle\nok: signature\nok: seals\nnot checked: seals\nok: result t1 r1\n"
	if err != nil || !r.OK || r.said() != want {
		t.Errorf("Verify = %v, %v\n%s\nwant\n%s", r.OK, err, r.said(), want)
	}
	if bytes.Contains(file, []byte(`"other"`)) {
		t.Error("the bundle says something about a task of another run")
	}
	if !strings.Contains(r.Claims[2].Text, "right for 4 events of the run, and 1 event of others") {
		t.Errorf("the seals say %q", r.Claims[2].Text)
	}
	if again := exported(t, l, "t1.1"); !bytes.Equal(file, again) {
		t.Error("an export of the run by a task below differs from the first one")
	}
}

// What retention removed is a hash in its range, as an event of another task is.
func TestARunWhoseEventsWereRemovedInPartVerifies(t *testing.T) {
	l := recorded(t)
	try(t, l.Update(t.Context(), func(tx *ledger.Tx) error {
		revisions, err := l.Revisions(t.Context(), "t1.1")
		if err != nil {
			return err
		}
		below := revisions[0]
		_, err = tx.Move(below.Seq, task.Running, 0, task.Change{To: task.Done, Status: envelope.Failed})
		return errors.Join(err, tx.MarkPut(below.Seq, true), tx.MarkPut(below.Parent, true))
	}))
	try(t, l.Update(t.Context(), func(tx *ledger.Tx) error {
		_, dropped, err := tx.DropEvents(noon.Add(time.Second), 0, 3)
		if err == nil && dropped != 2 { // the event of the other task, which is open, stays
			err = fmt.Errorf("%d events were removed; want 2", dropped)
		}
		return err
	}))
	path := filepath.Join(t.TempDir(), "run.tar")
	_, err := Export(t.Context(), Source{Ledger: l.Reader, Mailbox: "box-1", Signer: seal.PrivateKey(keyOf(1))}, "t1", nil, path)
	try(t, err)
	file, err := os.ReadFile(path)
	try(t, err)
	r, err := verifyBytes(t, file, Trust{Keys: keysOf(1)})
	if err != nil || !r.OK || !strings.Contains(r.said(), "ok: seals\n") || !strings.Contains(r.Claims[2].Text, "3 events of others") {
		t.Errorf("Verify = %v, %v\n%+v; want seals that agree with three hashes", r.OK, err, r.Claims)
	}
}

// A seal that is gone hides no event.
func TestEventsWhoseSealIsGoneAreExportedWithoutOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := recordedAt(t, path)
	try(t, l.Seal(t.Context()))
	db, err := sql.Open("sqlite", path)
	try(t, err)
	_, err = db.Exec("DELETE FROM seals WHERE first = 1")
	try(t, errors.Join(err, db.Close()))
	r, err := verifyBytes(t, exported(t, l, "t1"), Trust{Keys: keysOf(1)})
	want := "ok: bundle\nok: signature\nok: seals\nnot checked: seals\nok: result t1 r1\n"
	if err != nil || r.said() != want || !strings.HasPrefix(r.Claims[3].Text, "4 events of the run") {
		t.Errorf("Verify = %v, %v\n%+v; want four events of the run without a seal", r.OK, err, r.Claims)
	}
}

func TestAnExportHasAFileForEachBody(t *testing.T) {
	b := exported(t, recorded(t), "t1")
	opened, err := open(bytes.NewReader(b), int64(len(b)))
	try(t, err)
	var names []string
	for _, e := range opened.entries {
		names = append(names, e.name)
	}
	want := []string{
		"events.jsonl", "manifest.json", "messages.jsonl", "requests/000001.json", "requests/000002.json", "results/000001.json",
		"seals.jsonl", "statement.dsse.json",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the bundle has %v; want %v", names, want)
	}
}

func TestRedactedBodiesAreNowhereInABundle(t *testing.T) {
	l := recorded(t)
	file := exported(t, l, "t1", Input, Output)
	if bytes.Contains(file, []byte(secretWords)) {
		t.Error("the bundle has a redacted text")
	}
	r, err := verifyBytes(t, file, Trust{Keys: keysOf(1)})
	if want := "ok: bundle\nok: signature\nok: seals\nnot checked: result t1 r1\n"; err != nil || !r.OK || r.said() != want {
		t.Errorf("Verify = %v, %v\n%s\nwant\n%s", r.OK, err, r.said(), want)
	}
	if !bytes.Contains(exported(t, l, "t1", Input), []byte(`"summary":"`+secretWords)) {
		t.Error("the result is redacted with the input")
	}
	_, err = Export(t.Context(), Source{}, "t1", []string{"all"}, filepath.Join(t.TempDir(), "x"))
	if err == nil || !strings.Contains(err.Error(), "want input or output") {
		t.Errorf("Export with an unknown word = %v", err)
	}
}

func TestAnExportThatFailsLeavesNoFile(t *testing.T) {
	l := recorded(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		from Source
		run  string
		want error
	}{
		"a signer that fails": {t.Context(), Source{Ledger: l.Reader, Signer: noSigner{}}, "t1", errNoSigner},
		"a stop":              {stopped, Source{Ledger: l.Reader, Signer: seal.PrivateKey(keyOf(1))}, "t1", context.Canceled},
		"an unknown run":      {t.Context(), Source{Ledger: l.Reader, Signer: seal.PrivateKey(keyOf(1))}, "t9", ledger.ErrUnknown},
	} {
		dir := t.TempDir()
		if _, err := Export(c.ctx, c.from, c.run, nil, filepath.Join(dir, "run.tar")); !errors.Is(err, c.want) {
			t.Errorf("%s: Export = %v; want %v", name, err, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: Export left %v, %v", name, left, err)
		}
	}
}

var errNoSigner = errors.New("no signer")

type noSigner struct{}

func (noSigner) Key() string                 { return "none" }
func (noSigner) Sign([]byte) ([]byte, error) { return nil, errNoSigner }

func TestAnExportReplacesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tar")
	try(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := Export(t.Context(), Source{}, "t1", nil, path)
	if text, _ := os.ReadFile(path); err == nil || string(text) != "mine" {
		t.Errorf("Export over a file = %v, and the file has %q", err, text)
	}
}

// A file that appears while the bundle is written stays, too.
func TestAnExportReplacesNoFileThatCameMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tar")
	s, err := newSpool(filepath.Dir(path))
	try(t, err)
	defer s.file.Close()
	try(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err = s.linkTo(t.Context(), path)
	if text, _ := os.ReadFile(path); !errors.Is(err, os.ErrExist) || string(text) != "mine" {
		t.Errorf("linkTo over a file = %v, and the file has %q", err, text)
	}
}

func TestAFileThatIsTooLargeIsNotWritten(t *testing.T) {
	s, err := newSpool(t.TempDir())
	try(t, err)
	defer s.file.Close()
	err = s.addBytes("requests/000001.json", noon, make([]byte, maxEntry+1))
	if err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("addBytes of more than 64 MiB = %v", err)
	}
	long := []event{{Data: strings.Repeat("x", maxLine)}}
	if err := addLines(s, eventsName, noon, long); err == nil || !strings.Contains(err.Error(), "2 MiB") {
		t.Errorf("addLines of more than 2 MiB = %v", err)
	}
}

func TestARunWithMoreDecisionsThanABundleHasIsNotExported(t *testing.T) {
	all := make([]approval, maxApprovals+2)
	for i := range all[:maxApprovals] {
		all[i].Decision = task.Denied
	}
	if err := fewDecisions(all); err != nil {
		t.Errorf("%d decisions and 2 questions without one: %v", maxApprovals, err)
	}
	all[maxApprovals].Decision = task.Approved
	if err := fewDecisions(all); err == nil {
		t.Errorf("%d decisions are exported, which can't be verified", maxApprovals+1)
	}
}
