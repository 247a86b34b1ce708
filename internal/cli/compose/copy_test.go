package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/compose"
)

const request = `{"schema_version":"1.0","task_id":"t1","requester_id":"r","target_agent":"a","target_role":"boss",` +
	`"task_type":"w","description":"d","input":{"refs":[],"payload":{"n":12345678901234567890}},` +
	`"deadline":"2020-01-01T00:00:00Z","metadata":{"mbx.parent_task_id":"p","k":1}}`

func TestACopyIsATaskOfItsOwn(t *testing.T) {
	line, left, err := compose.Copy([]byte(request), "t2", "me", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"task_id":"t2"`, `"requester_id":"me"`, `12345678901234567890`, `"metadata":{"k":1}`} {
		if !strings.Contains(string(line), want) {
			t.Errorf("the copy %s lacks %s", line, want)
		}
	}
	if strings.Contains(string(line), "deadline") || len(left) != 2 {
		t.Errorf("the copy is %s, without %q; want it without its deadline and its parent", line, left)
	}
	if line, _, err = compose.Copy([]byte(request), "t2", "me", time.Time{}); err != nil || !strings.Contains(string(line), `"deadline"`) {
		t.Errorf("Copy before the deadline = %s, %v; want the deadline in it", line, err)
	}
}

func TestOnlyARequestOfAINLThatIsKeptCanBeSentAgain(t *testing.T) {
	for want, details := range map[string]client.TaskDetails{
		"was requested in clowl": {Task: client.Task{ID: "t1", Dialect: "clowl"}, Request: jsontext.Value(request)},
		"too old to be kept":     {Task: client.Task{ID: "t1"}},
	} {
		if _, err := compose.Request(details); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Request = %v; want %q", err, want)
		}
	}
}

func TestAnEditedRequestIsOneLineAndAWrongOneIsKeptInItsFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	edit := func(script string) (string, error) {
		line, err := compose.Editor{Command: script, Out: t.Output(), Err: t.Output()}.Edit(t.Context(), []byte(request))
		return string(line), err
	}
	if line, err := edit("true"); line != "" || err != nil {
		t.Errorf("an unchanged request is %s, %v; want nothing", line, err)
	}
	if line, err := edit(`sed -i 's/"d"/"e"/'`); err != nil || strings.Contains(line, "\n") || !strings.Contains(line, `"description":"e"`) || !strings.Contains(line, `12345678901234567890`) {
		t.Errorf("an edited request is %s, %v", line, err)
	}
	if left, _ := filepath.Glob(os.TempDir() + "/*"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	for script, want := range map[string]string{
		"false":                  "run editor false: exit status 1",
		`sed -i 's/"boss"/"x"/'`: "target_role: must be one of executor, advisor, reviewer, boss",
		`sed -i 1d`:              "read request",
	} {
		_, err := edit(script)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("edit with %s = %v; want %q", script, err, want)
			continue
		}
		_, path, _ := strings.Cut(err.Error(), "your text is in ")
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "schema_version") {
			t.Errorf("%s has %s, %v; want the text", path, text, err)
		}
	}
}
