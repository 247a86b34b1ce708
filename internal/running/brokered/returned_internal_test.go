package brokered

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/services"
)

// recordOf makes a run directory with the record of a broker and the results of calls, by id.
func recordOf(t *testing.T, record string, results map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	bodies := ""
	for id, text := range results {
		bodies += fmt.Sprintf("{\"id\":%q,\"result\":%q}\n", id, text)
	}
	files := map[string]string{broker.CallsFile: record, broker.BodiesFile: bodies}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestTheRecordOfABrokerSaysWhatCameOfEachCall(t *testing.T) {
	const good, bad = `{"content":[{"type":"text","text":"yes"}]}`, `{"content":[{"type":"text","text":"no such page"}],"isError":true}`
	before := `{"sent":{"id":"z","tool":"a/earlier"}}` + "\n"
	for name, c := range map[string]struct {
		record string
		want   []string
	}{
		"nothing": {"", nil},
		"results and a tool that fails": {
			`{"sent":{"id":"a","tool":"a/x"}}` + "\n" + `{"called":{"id":"a","tool":"a/x","result":"` + sha(good) + `"}}` + "\n" +
				`{"sent":{"id":"b","tool":"a/y"}}` + "\n" + `{"called":{"id":"b","tool":"a/y","failed":true,"result":"` + sha(bad) + `"}}` + "\n",
			[]string{good, "dependency_failed: no such page"},
		},
		"a result that was replaced, and one that is gone": {
			`{"called":{"id":"a","tool":"a/x","result":"` + sha(bad) + `"}}` + "\n" + `{"called":{"id":"c","tool":"a/x","result":"1"}}` + "\n",
			[]string{
				"dependency_failed: the tool was called, and its result is lost", "dependency_failed: the tool was called, and its result is lost",
			},
		},
		"refusals, and a server that doesn't list its tools": {
			`{"refused":{"tool":"a","failed":true,"why":"broken"}}` + "\n" +
				`{"refused":{"tool":"a/x","why":"no","kind":"policy_violation"}}` + "\n" +
				`{"refused":{"tool":"a/","why":"no","kind":"dependency_failed"}}` + "\n" +
				`{"ask":{"id":"q"}}` + "\n" + `{"refused":{"tool":"a/z","why":"later"}}` + "\n",
			[]string{
				"policy_violation: no",
				"dependency_failed TOOL_UNAVAILABLE: mcp:a names no tool, and the run has not just one of that server: name it, as mcp:a/TOOL",
				"policy_violation: later",
			},
		},
		"a server that didn't answer, and a call without an end": {
			`{"called":{"id":"a","tool":"a/x","failed":true,"why":"gone"}}` + "\n" + `{"sent":{"id":"b","tool":"a/y"}}` + "\n" + `{"call`,
			[]string{
				"dependency_failed TOOL_UNAVAILABLE: gone",
				"dependency_failed TOOL_UNAVAILABLE: the tool broker ended before the answer came; the call isn't made again",
			},
		},
	} {
		dir := recordOf(t, before+c.record, map[string]string{"a": good, "b": bad})
		err := answerSent(dir, int64(len(before)))
		all, rerr := returnedSince(dir, int64(len(before)))
		if err = errors.Join(err, rerr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, r := range all {
			words := string(r.Result)
			if r.Result == nil {
				words = strings.TrimSpace(string(r.Failure.Kind)+" "+r.Failure.Code) + ": " + r.Failure.Message
			}
			got = append(got, words)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: what came of the calls (-want +got):\n%s", name, diff)
		}
	}
}

func TestAMessageNamesAToolOfAServerThatTheAgentHas(t *testing.T) {
	tools := Tools{List: []string{"mcp:docs/*"}, Servers: []services.Server{{ID: "docs"}}}
	call := func(data string) envelope.Message {
		return envelope.Message{Act: envelope.Calls, Clutch: &envelope.ClutchPart{}, Data: []byte(data)}
	}
	for data, want := range map[string]string{
		`{"tool":"mcp:docs/search","args":{"text":"x"}}`: `docs search {"text":"x"}`,
		`{"tool":"docs/search"}`:                         "docs search ",
		`{"tool":"docs__search"}`:                        "docs search ",
		`{"tool":"mcp:docs"}`:                            "docs  ",
		`{"tool":"docs"}`:                                "",
		`{"tool":"mcp:shell/run"}`:                       "",
		`{"tool":7}`:                                     "",
	} {
		got := ""
		if asked, ok := tools.Asks(call(data)); ok {
			got = asked.Server + " " + asked.Tool + " " + string(asked.Arguments)
		}
		if got != want {
			t.Errorf("Asks(%s) = %q; want %q", data, got, want)
		}
	}
	if _, ok := (Tools{Servers: tools.Servers}).Asks(call(`{"tool":"mcp:docs/search"}`)); ok {
		t.Error("a run without tools of a server has its calls made")
	}
	returned := call(`{"tool":"mcp:docs/search"}`)
	if returned.Act = envelope.Returns; func() bool { _, ok := tools.Asks(returned); return ok }() {
		t.Error("a result that an agent reports is a call")
	}
}

func TestAFileOfARunThatTheAgentReplacedIsNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, broker.CallsFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := returnedSince(dir, 0); err == nil {
		t.Error("a link is followed")
	}
	if _, err := readFrom(filepath.Dir(dir), filepath.Base(dir), 0); err == nil {
		t.Error("a directory is read")
	}
}
