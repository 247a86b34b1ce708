package dialect

import (
	"net/url"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// capThings returns the attachments of a message in CAP: its own, or the machine-readable data
// of another dialect, and the files that it refers to.
func capThings(m envelope.Message) []envelope.Attachment {
	if m.Dialect != envelope.CAP && len(m.Attachments) == 0 {
		return foreignThings(m)
	}
	return m.Attachments
}

func foreignThings(m envelope.Message) []envelope.Attachment {
	var list []envelope.Attachment
	switch {
	case m.Act == envelope.Completes:
		return addFiles(answerThings(m.Answer), m)
	case m.Act == envelope.Reports || m.Act == envelope.Announces || m.Act == envelope.Fails:
		return nil // they are text
	case asks(m.Act):
		things, rest := attachmentsIn(m.Request.Payload)
		if list = things; rest != nil {
			list = append(list, valueAttachment(rest))
		}
	case some(m.Data):
		list = append(list, valueAttachment(m.Data))
	}
	return addFiles(list, m)
}

// addFiles adds the references of a message that the list doesn't have.
func addFiles(list []envelope.Attachment, m envelope.Message) []envelope.Attachment {
	add := func(a envelope.Attachment) {
		same := func(b envelope.Attachment) bool { return a.Path == b.Path && a.URL == b.URL && a.Text == b.Text }
		if !slices.ContainsFunc(list, same) {
			list = append(list, a)
		}
	}
	for _, ref := range m.Request.Refs {
		add(fileAttachment(ref.URI))
	}
	if c := m.Context; c.Ref != "" && len(m.Request.Refs) == 0 {
		add(fileAttachment(contextURI(c.Ref)))
	}
	if m.Context.Inline != "" {
		add(envelope.Attachment{Type: "text_snippet", Text: m.Context.Inline})
	}
	return list
}

// records are the kinds of artifacts that mailboxd adds to every answer. They are about the
// run; the agent does not hand them over.
var records = []string{"run_trace", "stdout", "stderr"}

// answerThings returns the parts of an answer except for its summary.
func answerThings(a envelope.Result) []envelope.Attachment {
	list, rest := attachmentsIn(a.Output.Extra)
	if a.Output.Extra = rest; rest != nil || len(a.Output.Actions) > 0 {
		list = append(list, valueAttachment(outputOf(a)))
	}
	for _, ref := range a.Artifacts {
		if slices.Contains(records, ref.Kind) {
			continue
		}
		file := fileAttachment(ref.URI)
		if path, err := url.PathUnescape(file.Path); err == nil {
			file.Path = path // an artifact is a URI, where a CAP agent names a path
		}
		if !slices.ContainsFunc(list, func(b envelope.Attachment) bool { return file.Path == b.Path && file.URL == b.URL }) {
			list = append(list, file)
		}
	}
	return list
}

// outputOf returns the output of a result as its file has it.
func outputOf(a envelope.Result) jsontext.Value {
	var result struct {
		Output jsontext.Value `json:"output"`
	}
	unmarshal(a.EncodeLine(), &result)
	return result.Output
}

// attachmentsIn returns the valid CAP attachments under that name in an object, and the
// object's other members; nil if there are none.
func attachmentsIn(members jsontext.Value) (list []envelope.Attachment, rest jsontext.Value) {
	if !some(members) {
		return nil, nil
	}
	var findings envelope.Findings
	f := newFields(members, "", &findings)
	if list = f.attachments("attachments"); list == nil || findings.Refused() {
		return nil, members
	}
	return list, f.unknown()
}
