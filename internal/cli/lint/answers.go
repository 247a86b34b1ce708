package lint

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schema"
)

// An AnswerTest holds recorded answers against a schema file.
type AnswerTest struct {
	File   string                                 // the schema
	As     string                                 // its ref or payload type; "": by its place in Dir
	Dir    string                                 // policy.schemas
	Limit  int                                    // the most answers; 0: all
	Since  time.Time                              // only answers of tasks received from then on; zero: all
	Naming func(t envelope.Task, ref string) bool // reports whether a task's answer has to follow a schema
}

// Run checks the answers of finished tasks that had to follow the schema, the newest first, and
// prints those that the file refuses.
func (a AnswerTest) Run(ctx context.Context, r *reader.Reader, w io.Writer) error {
	ref, set, err := a.load()
	if err != nil {
		return err
	}
	tested, refused := 0, 0
	err = eachAnswer(ctx, r, a.Since, func(t envelope.Task, result []byte) error {
		if a.Limit > 0 && tested == a.Limit || !a.Naming(t, ref) {
			return nil
		}
		tested++
		if err := checkOutput(set, ref, result); err != nil {
			refused++
			_, err = fmt.Fprintf(w, "%s: %s\n", t.ID, term.Escape(err.Error()))
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d recorded answers fit %s\n", tested-refused, tested, ref)
	if refused > 0 {
		return exit.With(exit.Failed, "the schema refuses recorded answers")
	}
	return nil
}

// load returns the ref of the file, and the schemas with the file in its place.
func (a AnswerTest) load() (string, *schema.Set, error) {
	text, err := os.ReadFile(a.File)
	if err != nil {
		return "", nil, fmt.Errorf("read schema: %w", err)
	}
	ref := a.As
	if named := schema.RefOf(ref); named != "" {
		ref = named
	}
	if ref == "" {
		if ref = refIn(a.Dir, a.File); ref == "" {
			return "", nil, exit.With(exit.Usage, "%s is not in policy.schemas; name its schema with --as", a.File)
		}
	}
	set, err := schema.Load(a.Dir)
	if err == nil {
		set, err = set.With(ref, text)
	}
	return ref, set, err
}

// refIn returns the ref of a file of a directory; "" if it is elsewhere.
func refIn(dir, path string) string {
	if dir == "" {
		return ""
	}
	dir, failed := filepath.Abs(dir)
	path, err := filepath.Abs(path)
	if failed != nil || err != nil {
		return ""
	}
	inside, err := filepath.Rel(dir, path)
	name, isSchema := strings.CutSuffix(inside, ".json")
	if err != nil || !isSchema || inside == ".." || strings.HasPrefix(inside, "../") {
		return ""
	}
	return "schema://" + filepath.ToSlash(name)
}

// answersPage is how many tasks are read at once.
const answersPage = 500

// eachAnswer calls do for the finished tasks with a request and an answer, received since a time, the newest first.
func eachAnswer(ctx context.Context, r *reader.Reader, since time.Time, do func(t envelope.Task, result []byte) error) error {
	f := client.Filter{States: []task.State{task.Done}, NewestFirst: true, Since: since, Limit: answersPage}
	for {
		tasks, err := r.Tasks(ctx, f)
		if err != nil {
			return err
		}
		for _, row := range tasks {
			details, err := r.Details(ctx, row.ID)
			if err != nil {
				return err
			}
			t, findings := dialect.DecodeTask(envelope.Dialect(row.Dialect), details.Request, envelope.Legacy)
			result, wrong := envelope.DecodeResult(details.Result)
			if details.Request == nil || findings.Refused() || wrong.Refused() || result.Status != envelope.OK && result.Status != envelope.Partial {
				continue // too old to be kept, or a failure
			}
			if err := do(t, details.Result); err != nil {
				return err
			}
		}
		if len(tasks) < answersPage {
			return nil
		}
		f.After = tasks[len(tasks)-1].Seq
	}
}

// checkOutput holds a recorded output against a schema. It is not known any more whether
// summary and actions are the agent's or were filled in, so one of both forms has to fit.
func checkOutput(set *schema.Set, ref string, result []byte) error {
	var parts struct {
		Output map[string]jsontext.Value `json:"output"`
	}
	if err := json.Unmarshal(result, &parts, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	var err error
	for _, ours := range [][]string{{"enforcement"}, {"summary", "actions"}} {
		for _, name := range ours {
			delete(parts.Output, name)
		}
		own, failed := json.Marshal(parts.Output, json.Deterministic(true))
		if failed != nil {
			return failed
		}
		refused := set.Check(ref, own)
		if refused == nil {
			return nil
		}
		if err == nil {
			err = refused
		}
	}
	return err
}
