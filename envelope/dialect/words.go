package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// lenientJSON reads text that was scanned as JSON before, half surrogate pairs included, which
// become U+FFFD.
var lenientJSON = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// object writes values under their names, in the order of the names, without nil values.
func object(members map[string]jsontext.Value) jsontext.Value {
	var w writer
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w.add(name, members[name])
	}
	return w.end()
}

// A writer writes an object member by member.
type writer struct{ text []byte }

// add adds a member, unless its value is nil.
func (w *writer) add(name string, value jsontext.Value) {
	if value == nil {
		return
	}
	w.text = append(append(w.text, ','), quoted(name)...)
	w.text = append(append(w.text, ':'), value...)
}

// word adds a member that is a string, unless it is empty.
func (w *writer) word(name, text string) {
	if text != "" {
		w.add(name, quoted(text))
	}
}

func (w *writer) end() jsontext.Value {
	if len(w.text) == 0 {
		return jsontext.Value("{}")
	}
	w.text[0] = '{'
	return append(w.text, '}')
}

func boolean(is bool) jsontext.Value {
	if is {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

// line returns an object as one line.
func line(object jsontext.Value) []byte {
	text := slices.Clone(object)
	_ = text.Compact() // the text was scanned as JSON before
	return text
}

// membersOf returns the members of an object; nil for another value.
func membersOf(object jsontext.Value) map[string]jsontext.Value {
	var all map[string]jsontext.Value
	unmarshal(object, &all)
	return all
}

// textOf returns the text of a string, and whether the value is one.
func textOf(value jsontext.Value) (text string, ok bool) {
	ok = value.Kind() == '"' && json.Unmarshal(value, &text, lenientJSON) == nil
	return text, ok
}

func quoted(text string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, text)
	return value
}

// TaskID returns the id of the task that a message of another dialect names: the name itself if
// it is a safe id, else a digest of it (mapping 2.3).
func TaskID(name string) envelope.ID {
	if name == "" {
		return ""
	}
	if id, err := envelope.ParseID(name); err == nil {
		return id
	}
	return envelope.ID(digest(name))
}

// digest is a short name for a long one.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "h-" + hex.EncodeToString(sum[:16])
}

// some reports whether an object has members.
func some(members jsontext.Value) bool {
	return members.Kind() == '{' && len(membersOf(members)) > 0
}

// unmarshal decodes an optional value, and reports whether it did.
func unmarshal(value jsontext.Value, into any) bool {
	return value != nil && json.Unmarshal(value, into, lenientJSON) == nil
}

// array writes values as a list.
func array(values []jsontext.Value) jsontext.Value {
	list := jsontext.Value("[")
	for i, value := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	return append(list, ']')
}

// with returns an object with one more member.
func with(members jsontext.Value, name string, value jsontext.Value) jsontext.Value {
	all := membersOf(members)
	if all == nil {
		all = map[string]jsontext.Value{}
	}
	all[name] = value
	return object(all)
}

// contextURI returns the path or URL of a context as the URI of a reference.
func contextURI(ref string) string {
	if _, artifact := envelope.ArtifactDigest(ref); artifact || strings.Contains(ref, "://") {
		return ref
	}
	return "file://" + ref
}

// attributeToAgent changes the kind of the refusals to OutputInvalid: the agent wrote the text.
func attributeToAgent(findings envelope.Findings) envelope.Findings {
	for i, f := range findings {
		switch f.Kind {
		case envelope.InvalidEnvelope, envelope.InvalidJSON, envelope.ValidationFailed, envelope.ContextTooLarge:
			findings[i].Kind = envelope.OutputInvalid
		}
	}
	return findings
}

// asks reports whether an act requests a task.
func asks(a envelope.Act) bool { return a == envelope.Requests || a == envelope.Delegates }

// hiddenRune reports whether a terminal acts on a character or does not show it.
func hiddenRune(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// attachmentsValue is a list of attachments as CAP writes them.
func attachmentsValue(list []envelope.Attachment) jsontext.Value {
	values := make([]jsontext.Value, len(list))
	for i, a := range list {
		values[i] = attachmentValue(a)
	}
	return array(values)
}

func attachmentValue(a envelope.Attachment) jsontext.Value {
	if a.Raw != nil {
		return a.Raw
	}
	var w writer
	w.word("type", a.Type)
	w.word("server_id", a.Server)
	w.word("tool", a.Tool)
	w.word("path", a.Path)
	w.word("url", a.URL)
	w.word("text", a.Text)
	return w.end()
}
