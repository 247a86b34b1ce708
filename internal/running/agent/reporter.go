package agent

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// Limits on forwarded progress.
const (
	maxReports     = 1000        // of a run
	reportInterval = time.Second // only the latest report counts
)

// A reporter forwards the progress in an agent's progress file: lines such as {"pct": 40,
// "note": "reading"}, or messages of its dialect.
type reporter struct {
	job     task.Job
	speaks  envelope.Dialect
	now     func() time.Time
	latest  *envelope.Message // not forwarded yet
	last    time.Time         // when one was forwarded
	reports int
}

// readLine reads a line; a line without progress is only a sign of activity.
func (r *reporter) readLine(line []byte) {
	if r.job.Report == nil || r.reports == maxReports {
		return
	}
	if m, ok := r.read(line); ok {
		m.Time = r.now()
		r.latest = &m
	}
}

func (r *reporter) read(line []byte) (envelope.Message, bool) {
	var data struct {
		Pct  jsontext.Value `json:"pct"`
		Note *string        `json:"note"`
	}
	if r.speaks != envelope.AINL && (envelope.MarkedAs(line) == r.speaks || r.speaks == envelope.Clutch && member(line, "type") != nil) {
		received, _ := dialect.ReceiveAll(r.speaks, line, r.job.Task)
		if len(received) == 1 && received[0].Act == envelope.Reports {
			return received[0], true
		}
		return envelope.Message{}, false
	}
	if json.Unmarshal(line, &data, lenient) != nil || !percent(data.Pct) || data.Pct == nil && data.Note == nil {
		return envelope.Message{}, false
	}
	m := envelope.Message{
		Act: envelope.Reports, Task: r.job.Task.ID, From: r.job.Task.Agent, To: []string{r.job.Task.Requester},
	}
	words := map[string]jsontext.Value{}
	if data.Pct != nil {
		words["pct"] = data.Pct
	}
	if data.Note != nil {
		m.Text = short(*data.Note)
		words["note"], _ = jsontext.AppendQuote(nil, m.Text)
	}
	m.Data, _ = json.Marshal(words, lenient, json.Deterministic(true))
	return m, true
}

// percent reports whether a value is missing or a number from 0 to 100.
func percent(value jsontext.Value) bool {
	var n float64
	return value == nil || value.Kind() == '0' && json.Unmarshal(value, &n) == nil && n >= 0 && n <= 100
}

// flush forwards the latest report, when the interval has passed or at the end.
func (r *reporter) flush(last bool) {
	now := r.now()
	if r.latest == nil || r.reports == maxReports || !last && now.Sub(r.last) < reportInterval {
		return
	}
	r.job.Report(*r.latest)
	r.latest, r.last = nil, now
	r.reports++
}
