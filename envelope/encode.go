package envelope

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the bytes of results/<task_id>.json: one object that read_result and people
// can read, with every field of the contract (AINL-61 to AINL-73), and a newline. It leaves out
// members of an Extra that the contract defines, and an Extra that is no object.
func (r Result) Encode() []byte { return r.format(jsontext.WithIndent("  ")) }

// EncodeLine returns the same object on one line, for a callback.
func (r Result) EncodeLine() []byte { return r.format(jsontext.Multiline(false)) }

func (r Result) format(layout jsontext.Options) []byte {
	// AppendFormat fails only if the text is not JSON. It replaces half surrogate pairs, which
	// read_result refuses.
	plain := r.append(make([]byte, 0, usual))
	text, _ := jsontext.AppendFormat(make([]byte, 0, 2*len(plain)), plain, jsontext.AllowInvalidUTF8(true), layout)
	return append(text, '\n')
}

// usual is a capacity that most results fit, so that they are not copied as they grow.
const usual = 1 << 10

func (r Result) append(dst []byte) []byte {
	dst = str(append(dst, `{"schema_version":`...), SchemaVersion)
	dst = str(append(dst, `,"task_id":`...), r.TaskID)
	dst = str(append(dst, `,"agent_id":`...), r.AgentID)
	dst = str(append(dst, `,"status":`...), r.Status)
	dst = append(dst, `,"confidence":`...)
	if r.Confidence != nil && *r.Confidence >= 0 && *r.Confidence <= 1 {
		dst = jsontext.AppendFloat(dst, *r.Confidence, 64)
	} else {
		dst = append(dst, "null"...)
	}
	dst = r.Output.append(append(dst, `,"output":`...))
	dst = append(dst, `,"artifact_refs":[`...)
	for i, ref := range r.Artifacts {
		dst = str(append(comma(dst, i), `{"kind":`...), ref.Kind)
		dst = str(append(dst, `,"uri":`...), ref.URI)
		dst = append(dst, '}')
	}
	cost := cmp.Or(r.Cost, new(Cost))
	dst = whole(append(dst, `],"cost_used":{"tokens":`...), cost.Tokens)
	dst = whole(append(dst, `,"usd_cents":`...), cost.USDCents)
	dst = r.Time.append(append(dst, `},"time_used":`...))
	dst = strconv.AppendBool(append(dst, `,"needs_review":{"required":`...), r.Review.Required)
	dst = nullable(append(dst, `,"reason":`...), r.Review.Reason)
	failure := r.Error
	if r.Status == OK {
		failure = Error{} // AINL-71
	}
	dst = nullable(append(dst, `},"error":{"kind":`...), failure.Kind)
	dst = nullable(append(dst, `,"message":`...), failure.Message)
	if failure.Code != "" {
		dst = str(append(dst, `,"code":`...), failure.Code)
	}
	switch {
	case failure.Final:
		dst = append(dst, `,"retry":false`...)
	case failure.Again:
		dst = append(dst, `,"retry":true`...)
	}
	dst = r.Provenance.append(append(dst, `},"provenance_ref":`...))
	return append(members(dst, r.Extra, resultFields), '}')
}

func (o Output) append(dst []byte) []byte {
	dst = str(append(dst, `{"summary":`...), o.Summary)
	dst = append(dst, `,"actions":[`...)
	for i, action := range o.Actions {
		dst = str(append(comma(dst, i), `{"kind":`...), action.Kind)
		dst = str(append(dst, `,"description":`...), action.Description)
		dst = str(append(dst, `,"status":`...), action.Status)
		dst = append(members(dst, action.Extra, actionFields), '}')
	}
	dst = append(dst, ']')
	if o.Enforcement != nil {
		dst = o.Enforcement.append(append(dst, `,"enforcement":`...))
	}
	return append(members(dst, o.Extra, outputFields), '}')
}

// append writes the levels in the order of Controls, then unknown names in alphabetical order,
// so that equal levels give equal bytes.
func (l Levels) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := len(dst)
	say := func(control Control) {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = str(append(str(dst, control), ':'), l[control])
	}
	known := Controls()
	for _, control := range known {
		if _, held := l[control]; held {
			say(control)
		}
	}
	for _, control := range slices.Sorted(maps.Keys(l)) {
		if !slices.Contains(known, control) {
			say(control)
		}
	}
	return append(dst, '}')
}

func (t TimeUsed) append(dst []byte) []byte {
	dst = instant(append(dst, `{"started_at":`...), t.Started)
	dst = instant(append(dst, `,"finished_at":`...), t.Finished)
	dst = whole(append(dst, `,"wall_ms":`...), max(0, t.Wall.Milliseconds()))
	return append(dst, '}')
}

func (p Provenance) append(dst []byte) []byte {
	dst = str(append(dst, `{"ainl_graph_checksum":`...), p.GraphChecksum)
	dst = str(append(dst, `,"ainl_program_id":`...), p.ProgramID)
	dst = str(append(dst, `,"runtime_version":`...), p.RuntimeVersion)
	dst = str(append(dst, `,"recording_uri":`...), p.RecordingURI)
	return append(dst, '}')
}

// members appends the members of extra that are not among the known ones.
func members(dst []byte, extra jsontext.Value, known []string) []byte {
	if extra == nil {
		return dst
	}
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.publishable(extra) {
		return dst
	}
	others := c.others(0, known...)
	if others == nil {
		return dst
	}
	return append(append(dst, ','), others[1:len(others)-1]...)
}

func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// str appends a string. Bytes that are not UTF-8 become U+FFFD.
func str[S ~string](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, string(s))
	return dst
}

// nullable appends a string, or null for "".
func nullable[S ~string](dst []byte, s S) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return str(dst, s)
}

func whole(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// instant appends a time in UTC, to the millisecond.
func instant(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		t = time.Now()
	}
	t = t.UTC().Truncate(time.Millisecond)
	layout := time.RFC3339
	if t.Nanosecond() != 0 {
		layout = "2006-01-02T15:04:05.000Z07:00"
	}
	return str(dst, t.Format(layout))
}
