package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/stores/artifact"
)

// publishing returns a job whose agent names files of its run, and agents with a store.
func publishing(t *testing.T, uris ...string) (*agent.Agents, task.Job, *artifact.Store) {
	t.Helper()
	var refs []string
	for _, uri := range uris {
		refs = append(refs, `{"kind":"report","uri":"`+uri+`"}`)
	}
	j := jobFor(t, request(""))
	ended(t, j, `{"output":{"summary":"s"},"artifact_refs":[`+strings.Join(refs, ",")+`]}`, task.Exit{PID: 1 << 30})
	store := artifact.In(t.TempDir(), 0)
	agents, err := agent.New([]agent.Binding{playing(t, "hang")}, agent.Options{Artifacts: store})
	if err != nil {
		t.Fatal(err)
	}
	return agents, j, store
}

func putFile(t *testing.T, j task.Job, name, text string) {
	t.Helper()
	path := filepath.Join(j.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestFilesOfTheRunThatAnAnswerNamesBecomeArtifacts(t *testing.T) {
	agents, j, store := publishing(t, "file:out/a", "file://out/a", "https://example.com/x")
	putFile(t, j, "out/a", "words")
	o := agents.Recover(t.Context(), j)
	if len(o.Published) != 2 || o.Published[0].Name != "out/a" || o.Published[0].Size != 5 || o.Result.Review.Required {
		t.Fatalf("published %+v, review %+v; want the file, and no review", o.Published, o.Result.Review)
	}
	digest := o.Published[0].Digest
	for i, want := range []envelope.Ref{
		{Kind: "report", URI: "artifact:sha256:" + digest}, {Kind: "report", URI: "artifact:sha256:" + digest},
		{Kind: "report", URI: "https://example.com/x"},
		{Kind: "run_trace", URI: "file://" + j.Dir}, {Kind: "stdout", URI: "file://" + j.Dir + "/stdout"},
	} {
		if o.Result.Artifacts[i] != want {
			t.Errorf("artifact_refs[%d] = %+v; want %+v", i, o.Result.Artifacts[i], want)
		}
	}
	if _, err := store.Verify(digest); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerWaitsUntilTheDiskHasRoomForItsFiles(t *testing.T) {
	agents, j, store := publishing(t, "file:out/a")
	putFile(t, j, "out/a", "words")
	met := failing(t, "write artifact", unix.ENOSPC)
	if o := agents.Recover(t.Context(), j); !*met || !errors.Is(o.Unread, unix.ENOSPC) {
		t.Errorf("the outcome is %+v; want it unread, for the disk is full", o)
	}
	for e := range store.All() {
		t.Errorf("there is %+v", e)
	}
}

func TestNothingIsPublishedOfARunThatTheMachineMayHaveLostInPart(t *testing.T) {
	agents, j, _ := publishing(t, "file:out/a")
	putFile(t, j, "out/a", "words")
	j.Rebooted = true
	o := agents.Recover(t.Context(), j)
	if len(o.Published) > 0 || !strings.Contains(o.Result.Review.Reason, `artifact "file:out/a" was left out: the machine went down`) {
		t.Errorf("published %+v, review %+v; want nothing, and why", o.Published, o.Result.Review)
	}
}

func TestARunPublishesALimitedNumberOfFiles(t *testing.T) {
	var uris []string
	for range artifact.MaxFiles + 1 {
		uris = append(uris, "file:a")
	}
	agents, j, _ := publishing(t, uris...)
	putFile(t, j, "a", "words")
	o := agents.Recover(t.Context(), j)
	if len(o.Published) != artifact.MaxFiles || !strings.Contains(o.Result.Review.Reason, "published 1000 files already") {
		t.Errorf("published %d, review %+v; want %d, and why not all", len(o.Published), o.Result.Review, artifact.MaxFiles)
	}
}
