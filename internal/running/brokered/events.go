// Package brokered is what a run has to do with its tool broker: the servers that the broker gets, the events
// of what it did, and the calls for which an agent asks in messages.
package brokered

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/toolcall"
)

// recordedFile is the file of a run directory that says how much of the broker's record is events.
const recordedFile = "calls.recorded"

// lenient reads what the records have, whatever an agent wrote.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Has reports whether a run has a tool broker.
func Has(j task.Job) bool {
	_, err := os.Lstat(filepath.Join(j.Dir, broker.AnswersFile))
	return j.Dir != "" && err == nil
}

// open opens a file of a run directory for reading. An agent outside of a sandbox can replace it, so that links
// aren't followed and a pipe doesn't block.
func open(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	return f, nil
}

// A Reader reads what the broker of a run did, and makes events of it. nil is of a run without a
// broker.
type Reader struct {
	job    task.Job
	calls  *toolcall.Calls
	offset int64
	ended  map[string]bool // the calls that have an event; a broker that dies may record an answer that Finish recorded too
	spent  envelope.Cost
}

// Spent returns what the tools of the run say that they have used so far.
func (r *Reader) Spent() envelope.Cost {
	if r == nil {
		return envelope.Cost{}
	}
	return r.spent
}

// NewReader returns the reader of a run.
func NewReader(j task.Job) *Reader {
	if j.Used == nil || !Has(j) {
		return nil
	}
	return &Reader{job: j, ended: map[string]bool{}, calls: toolcall.Brokered(j, broker.CallsFile, broker.AnswersFile)}
}

// Poll reads new lines. It asks again about calls that had no decision before a restart; their
// answers are in the ledger.
func (r *Reader) Poll() {
	if r == nil {
		return
	}
	defer r.calls.DecideOpen()
	f, err := open(r.job.Dir, broker.CallsFile)
	if err != nil {
		return // nothing was called
	}
	defer f.Close()
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return // tried again
	}
	recorded := r.recorded()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil || !r.take(bytes.TrimSpace(line), r.offset < recorded) {
			return
		}
		r.offset += int64(len(line))
	}
}

// Finish completes the record of a run whose broker is gone: a call that was sent and has no answer gets
// one that says so, and an event. A record that a Caller goes on with was completed before.
func (r *Reader) Finish() {
	if r == nil {
		return
	}
	if _, err := os.Lstat(filepath.Join(r.job.Dir, askedDir)); err == nil {
		return
	}
	if err := answerSent(r.job.Dir, 0); err == nil { // otherwise the call has no event
		r.Poll()
	}
}

// answerSent adds to the record of a broker, from a place in it on, what became of each call that was sent and
// not answered.
func answerSent(dir string, from int64) error {
	text, err := readFrom(dir, broker.CallsFile, from)
	if err != nil {
		return err
	}
	var open []task.ToolUse
	for line := range bytes.Lines(text) {
		switch data := readLine(line); {
		case data.Sent != nil:
			open = append(open, *data.Sent)
		case data.Called != nil:
			open = slices.DeleteFunc(open, func(use task.ToolUse) bool { return use.ID == data.Called.ID })
		}
	}
	var lines []byte
	if !bytes.HasSuffix(text, []byte("\n")) {
		lines = []byte("\n")
	}
	for _, use := range open {
		use.Failed, use.Why = true, "the tool broker ended before the answer came; the call isn't made again"
		line, err := json.Marshal(map[string]task.ToolUse{"called": use})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(open) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, broker.CallsFile), os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

// recorded returns up to where the lines have events.
func (r *Reader) recorded() int64 {
	text, _ := os.ReadFile(filepath.Join(r.job.Dir, recordedFile))
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}

// A recordLine is a line of the record of a broker, which has one of these.
type recordLine struct {
	Ask     *task.Call    `json:"ask"`
	Sent    *task.ToolUse `json:"sent"`
	Called  *task.ToolUse `json:"called"`
	Refused *task.ToolUse `json:"refused"`
	Changed *task.ToolUse `json:"changed"`
}

// readLine decodes a line. What a crash cut short has nothing.
func readLine(line []byte) (l recordLine) {
	if json.Unmarshal(line, &l, lenient) != nil {
		return recordLine{}
	}
	return l
}

// take takes a line, and reports whether that is done for good.
func (r *Reader) take(line []byte, recorded bool) bool {
	data := readLine(line)
	if data.Ask != nil {
		r.calls.AskBrokered(*data.Ask)
	}
	if data.Called != nil && r.ended[data.Called.ID] {
		return true
	}
	var err error
	switch {
	case recorded:
	case data.Called != nil:
		err = r.job.Used(task.KindToolCalled, *data.Called)
	case data.Refused != nil:
		err = r.job.Used(task.KindToolRefused, *data.Refused)
	case data.Changed != nil:
		err = r.job.Used(task.KindToolChanged, *data.Changed)
	default:
		return true
	}
	if err != nil {
		return false // tried again
	}
	if data.Called != nil {
		r.ended[data.Called.ID] = data.Called.ID != ""
		r.spent.Tokens += data.Called.Tokens
		r.spent.USDCents += data.Called.USDCents
	}
	if !recorded {
		at := strconv.FormatInt(r.offset+int64(len(line))+1, 10)
		_ = os.WriteFile(filepath.Join(r.job.Dir, recordedFile), []byte(at), 0o600) // otherwise an event may come twice after a restart
	}
	return true
}
