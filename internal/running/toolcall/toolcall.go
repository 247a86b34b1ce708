// Package toolcall answers what the agent of a run asks about its calls of tools: by the rules of the
// run, or as a person decides. The same id always gets the same answer.
package toolcall

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// AnswersFile is the file in a run directory with the answers, one JSON object a line. A sandbox shows it
// read-only.
const AnswersFile = "answers.jsonl"

const dirFile = "calls.json" // beside it: the directory in which the run works

// MaxLine limits a line with a call, in bytes.
const MaxLine = 1 << 20

// Limits on what the agent of a run may ask.
const (
	maxCalls     = 10_000 // calls
	maxQuestions = 1000   // calls about which a person is asked
	maxOpen      = 20     // of these at a time
	maxID        = 1000   // bytes
)

// A Line is a call in a line of a progress file: {"ask": {...}} asks about one, and
// {"called": {...}} says that it was made without asking.
type Line struct {
	ID      string         `json:"id"`
	Kind    task.CallKind  `json:"kind"`
	Title   string         `json:"title"`
	Command string         `json:"command"`
	Paths   []string       `json:"paths"`
	Diff    string         `json:"diff"`
	Raw     jsontext.Value `json:"raw"`
}

// An Answer is a line of the answers.
type Answer struct {
	ID       string          `json:"id"`
	Decision task.CallAnswer `json:"decision"`
	By       string          `json:"by,omitzero"` // "": a rule
	Reason   string          `json:"reason,omitzero"`
}

// Prepare makes the files for the calls of a run that works in a directory.
func Prepare(j task.Job, dir string) error {
	if j.Calls == nil {
		return nil
	}
	text, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		return err
	}
	return errors.Join(create(filepath.Join(j.Dir, dirFile), text), create(filepath.Join(j.Dir, AnswersFile), nil))
}

// create writes a new file. It isn't synced: a power cut ends its run too.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Calls are those about which the agent of a run asks. They aren't safe for concurrent use. nil is of an
// agent that doesn't ask.
type Calls struct {
	job       task.Job
	progress  string          // the path of the progress file
	answers   string          // the path of the answers
	dir       string          // of the run, its links resolved
	answered  map[string]bool // by id
	open      []task.Call     // about which a person is asked
	questions int             // how many there were, since the daemon started
	violation error           // why the run has to end
	changes   *fsnotify.Watcher

	exempt task.CallKind // that the program may make without asking, and can't write with; "": none
}

// New returns the calls of a run with a progress file, and the answers that an earlier daemon gave. Close
// them. They are nil if the rules of the run have none.
func New(j task.Job, progress string) *Calls {
	if j.Calls == nil || j.Dir == "" {
		return nil
	}
	c := &Calls{job: j, progress: progress, answers: filepath.Join(j.Dir, AnswersFile), answered: map[string]bool{}}
	var at struct {
		Dir string `json:"dir"`
	}
	if text, err := os.ReadFile(filepath.Join(j.Dir, dirFile)); err == nil && json.Unmarshal(text, &at) == nil {
		c.dir, _ = filepath.EvalSymlinks(at.Dir) // "": every path lies outside
	}
	c.readAnswers()
	if w, err := fsnotify.NewWatcher(); err == nil { // without it, the file is looked at now and then
		c.changes = w
		_ = w.Add(filepath.Dir(progress))
	}
	return c
}

// Brokered returns the calls about which the tool broker of a run asks. They have files of their own, so
// that the agent can't take the id of one. Nothing watches the files.
func Brokered(j task.Job, questions, answers string) *Calls {
	c := &Calls{job: j, progress: filepath.Join(j.Dir, questions), answers: filepath.Join(j.Dir, answers), answered: map[string]bool{}}
	c.readAnswers()
	return c
}

// readAnswers reads the answers that an earlier daemon gave.
func (c *Calls) readAnswers() {
	text, _ := os.ReadFile(c.answers)
	for line := range strings.Lines(string(text)) {
		var a Answer
		if json.Unmarshal([]byte(line), &a) == nil {
			c.answered[a.ID] = true
		}
	}
}

// Await returns after a change of the progress file, when tick receives, or when done is closed.
// It reports whether done is closed. Its receiver may be nil.
func (c *Calls) Await(done <-chan struct{}, tick <-chan time.Time) bool {
	var changes <-chan fsnotify.Event
	var failures <-chan error
	if c != nil && c.changes != nil {
		changes, failures = c.changes.Events, c.changes.Errors
	}
	for {
		select {
		case <-done:
			return true
		case <-tick:
			return false
		case <-failures: // the tick finds what was missed
		case e := <-changes:
			if e.Has(fsnotify.Write) && filepath.Base(e.Name) == filepath.Base(c.progress) {
				return false
			}
		}
	}
}

// Close ends the watching.
func (c *Calls) Close() {
	if c != nil && c.changes != nil {
		_ = c.changes.Close()
	}
}

// Ask answers a call, or has a person asked. The answer to an id stays the same.
func (c *Calls) Ask(line Line) { c.AskBrokered(c.factsOf(line)) }

// AskBrokered is Ask for a call whose facts mailboxd itself has.
func (c *Calls) AskBrokered(call task.Call) {
	switch {
	case c.answered[call.ID] || c.isOpen(call.ID):
	case call.ID == "" || len(call.ID) > maxID:
		c.violation = fmt.Errorf("it asked about a call without an id, or with one of more than %d bytes", maxID)
	case len(c.answered) >= maxCalls:
		c.violation = fmt.Errorf("it asked about more than %d calls", maxCalls)
	default:
		answer, why := policy.DecideCall(call, c.job.Terms)
		switch {
		case answer != task.AskPerson || c.job.Ask == nil:
		case len(c.open) >= maxOpen || c.questions >= maxQuestions:
			why = fmt.Sprintf("a person is asked about at most %d calls at a time, and %d in a run", maxOpen, maxQuestions)
		default:
			c.open = append(c.open, call)
			c.questions++
			return
		}
		c.put(call.ID, task.CallDecision{Answer: answer, Reason: why})
	}
}

func (c *Calls) isOpen(id string) bool {
	for _, call := range c.open {
		if call.ID == id {
			return true
		}
	}
	return false
}

// DecideOpen puts the answers of people that have come. It reports whether it still waits for one.
func (c *Calls) DecideOpen() bool {
	if c == nil {
		return false
	}
	var left []task.Call
	for _, call := range c.open {
		decision, err := c.job.Ask(call, false)
		if err != nil || decision.Answer == "" { // tried again; the engine logs its errors
			left = append(left, call)
			continue
		}
		c.put(call.ID, decision)
	}
	c.open = left
	return len(left) > 0
}

// Called judges a call that was made without asking. A run with one that isn't allowed ends.
func (c *Calls) Called(line Line) {
	call := c.factsOf(line)
	answer, why := policy.DecideCall(call, c.job.Terms)
	if c.job.Ask != nil {
		if _, err := c.job.Ask(call, true); err != nil {
			c.violation = fmt.Errorf("record a call without a question: %w", err)
		}
	}
	if answer != task.AllowCall && (c.exempt == "" || call.Kind != c.exempt) {
		c.violation = fmt.Errorf("it made a call without asking, %s %s: %s", call.Kind, call.Words(), why)
	}
}

// Made reports whether a progress file has a question about a call, and whether it has one of a call
// that was made without asking.
func Made(progress io.Reader) (asked, unasked bool) {
	lines := bufio.NewScanner(progress)
	lines.Buffer(nil, MaxLine+1)
	for lines.Scan() {
		var line struct {
			Ask    jsontext.Value `json:"ask"`
			Called jsontext.Value `json:"called"`
		}
		if json.Unmarshal(lines.Bytes(), &line, lenient) == nil {
			asked, unasked = asked || line.Ask != nil, unasked || line.Called != nil
		}
	}
	return asked, unasked
}

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Exempt lets the program make calls of a kind without asking, which can't write.
func (c *Calls) Exempt(kind task.CallKind) {
	if c != nil {
		c.exempt = kind
	}
}

// Violation returns why the run has to end; nil for nothing.
func (c *Calls) Violation() error {
	if c == nil {
		return nil
	}
	return c.violation
}

// put appends an answer. The agent that reads it may not see a part of a line, so it is one write.
func (c *Calls) put(id string, d task.CallDecision) {
	if d.Answer != task.AllowCall {
		d.Answer = task.RejectCall
	}
	line, err := json.Marshal(Answer{id, d.Answer, d.By, d.Reason})
	if err == nil {
		err = appendLine(c.answers, line)
	}
	if err != nil {
		c.violation = fmt.Errorf("write answer to a call: %w", err)
		return
	}
	c.answered[id] = true
}

// appendLine appends a line to a file that exists.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// factsOf resolves the paths of a call.
func (c *Calls) factsOf(line Line) task.Call {
	call := task.Call{ID: line.ID, Kind: line.Kind, Title: line.Title, Command: line.Command, Diff: line.Diff, Raw: strict(line.Raw)}
	for _, name := range line.Paths {
		if inside, ok := c.inside(name); ok {
			call.Paths = append(call.Paths, inside)
		} else {
			call.Outside = append(call.Outside, name)
		}
	}
	return call
}

// strict returns an input that isn't valid JSON, since a member has two values or a text isn't UTF-8, as
// a text: a person sees just what the agent wrote.
func strict(raw jsontext.Value) jsontext.Value {
	if len(raw) == 0 || raw.IsValid() {
		return raw
	}
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(raw), "\uFFFD"))
	if err != nil {
		return nil
	}
	return quoted
}

// inside returns a path relative to the directory of the run, its links resolved, and whether it
// lies inside. What doesn't exist yet lies where its nearest directory does.
func (c *Calls) inside(name string) (string, bool) {
	if c.dir == "" || name == "" || strings.ContainsAny(name, "\x00\uFFFD") { // the last may stand for other bytes
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = c.dir + "/" + name
	}
	rest := ""
	for at := name; at != ""; {
		resolved, err := filepath.EvalSymlinks(at)
		if err == nil {
			relative, err := filepath.Rel(c.dir, filepath.Join(resolved, rest))
			return filepath.ToSlash(relative), err == nil && filepath.IsLocal(relative)
		}
		if _, exists := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || exists == nil {
			return "", false // a link to nothing, or something that can't be looked at
		}
		last := strings.LastIndexByte(at, '/') // filepath.Dir would take a directory before .. for none, and it may be a link
		if at[last+1:] == ".." {
			return "", false
		}
		at, rest = at[:last], filepath.Join(at[last+1:], rest)
	}
	return "", false
}
