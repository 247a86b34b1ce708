package agent

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// What is passed on of an agent's progress.
const (
	mostReports   = 1000        // of a run
	betweenReport = time.Second // the latest word counts
)

// A reporter passes on what an agent says about its progress, on its progress
// file: lines such as {"pct": 40, "note": "reading"}, or messages of its dialect.
type reporter struct {
	job     task.Job
	speaks  envelope.Dialect
	now     func() time.Time
	latest  *envelope.Message // that was not passed on yet
	last    time.Time         // when one was
	reports int
}

// take hears a line; what says nothing about progress is only a sign of life.
func (r *reporter) take(line []byte) {
	if r.job.Report == nil || r.reports == mostReports {
		return
	}
	if m, ok := r.read(line); ok {
		m.Time = r.now()
		r.latest = &m
	}
}

func (r *reporter) read(line []byte) (envelope.Message, bool) {
	var said struct {
		Pct  jsontext.Value `json:"pct"`
		Note *string        `json:"note"`
	}
	if envelope.MarkedAs(line) == r.speaks && r.speaks != envelope.AINL {
		heard, _ := dialect.HearAll(r.speaks, line, r.job.Task)
		if len(heard) == 1 && heard[0].Act == envelope.Reports {
			return heard[0], true
		}
		return envelope.Message{}, false
	}
	if json.Unmarshal(line, &said, lenient) != nil || !percent(said.Pct) || said.Pct == nil && said.Note == nil {
		return envelope.Message{}, false
	}
	m := envelope.Message{
		Act: envelope.Reports, Task: r.job.Task.ID, From: r.job.Task.Agent, To: []string{r.job.Task.Requester},
	}
	words := map[string]jsontext.Value{}
	if said.Pct != nil {
		words["pct"] = said.Pct
	}
	if said.Note != nil {
		m.Text = short(*said.Note)
		words["note"], _ = jsontext.AppendQuote(nil, m.Text)
	}
	m.Data, _ = json.Marshal(words, lenient, json.Deterministic(true))
	return m, true
}

// percent reports whether a value is a number from 0 to 100, or none at all.
func percent(value jsontext.Value) bool {
	var n float64
	return value == nil || value.Kind() == '0' && json.Unmarshal(value, &n) == nil && n >= 0 && n <= 100
}

// flush passes on the latest word, when it is time for one or nothing more comes.
func (r *reporter) flush(last bool) {
	now := r.now()
	if r.latest == nil || r.reports == mostReports || !last && now.Sub(r.last) < betweenReport {
		return
	}
	r.job.Report(*r.latest)
	r.latest, r.last = nil, now
	r.reports++
}
