package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/running/schema"
)

// An Examination is a configuration with everything that is wrong with it, and with what
// it names: manifests, definitions, schemas, secrets, programs and directories. What is
// mistaken has its default in Config.
type Examination struct {
	Config   Config
	Origins  Origins
	Mistakes Mistakes
}

// Examine reads the configuration as Load does, and looks at everything that it names. An
// error is about a file that cannot be read.
func Examine(path, root string) (Examination, error) {
	r, err := open(path, root)
	if err != nil {
		return Examination{}, err
	}
	r.checkAll()
	r.checkAgents()
	r.checkSources()
	r.checkPrograms()
	return Examination{r.config, r.origins, r.found()}, nil
}

// firstReplicas returns the agents without those that differ from another one in their
// number alone.
func firstReplicas(agents []Agent) (first []Agent) {
	last := -1
	for _, m := range agents {
		if m.Index != last {
			first, last = append(first, m), m.Index
		}
	}
	return first
}

// keyOf returns the key of a field of an agent.
func keyOf(m Agent, field string) string { return fmt.Sprintf("agents[%d].%s", m.Index, field) }

// checkAgents finds agents that are disabled, and warnings about the others.
func (r *reading) checkAgents() {
	if r.config.Routing.Sandbox == "card" {
		r.add(Warns, wrong("routing.sandbox", "card has no effect: nobody enforces what a card says; give these agents a sandbox, and write kernel"))
	}
	for _, m := range firstReplicas(r.config.ReadAgents()) {
		if m.Entry.Manifest != "" {
			r.add(Disables, r.checkManifest(m))
		}
		if m.Subject.Unfit != "" && !r.has(keyOf(m, "manifest")) {
			r.add(Disables, wrong(keyOf(m, "id"), "%s; tasks for %q are refused", m.Subject.Unfit, m.Binding.ID))
		}
		for _, warning := range r.config.socketWarnings(fmt.Sprintf("agents[%d]", m.Index), m.Entry) {
			r.add(Warns, warning)
		}
		for _, warning := range m.Unknown {
			r.add(Warns, wrong(fmt.Sprintf("agents[%d]", m.Index), "%s", warning))
		}
	}
}

// checkManifest adds what is wrong with the content of a manifest, by its lines, and
// returns what is wrong with the manifest as a whole.
func (r *reading) checkManifest(m Agent) error {
	key := keyOf(m, "manifest")
	if err := expanded(key, m.Entry.Manifest); err != nil {
		return err
	}
	text, err := os.ReadFile(r.config.Resolve(m.Entry.Manifest))
	if err != nil {
		return wrong(key, "%s; tasks for %q are refused", unreadable(err), m.Binding.ID)
	}
	manifest, findings := r.config.decodeManifest(text)
	switch {
	case findings.Refused():
		r.addFindings(m.Entry.Manifest, text, findings, Disables)
		return wrong(key, "%s is wrong; tasks for %q are refused", m.Entry.Manifest, m.Binding.ID)
	case m.Subject.Unfit != "" && manifest.AgentID != m.Binding.ID && manifest.AgentID != m.Entry.replica:
		return wrong(key, "%s; tasks for %q are refused", m.Subject.Unfit, m.Binding.ID)
	}
	r.addFindings(m.Entry.Manifest, text, m.Warnings, Disables)
	return nil
}

// unreadable says why a file cannot be read, and what to do.
func unreadable(err error) string {
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return missing.Path + " does not exist: create it or correct the path"
	}
	return err.Error()
}

// addFindings adds findings about a JSON file.
func (r *reading) addFindings(path string, text []byte, findings envelope.Findings, effect Effect) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.tree.file), path)
	}
	for _, f := range findings {
		m := Mistake{Effect: effect, File: path, Key: f.Field, Message: f.Message}
		if f.Warning() {
			if m.Effect = Warns; findings.Refused() {
				continue
			}
		}
		at := positionInJSON(text, f.Field)
		m.Line, m.Column = at.line, at.column
		r.mistakes = append(r.mistakes, m)
	}
}

// definitionMistakes replaces the mistake of a wrong definition by those of its lines.
func (r *reading) definitionMistakes(e Entry) bool {
	text, err := os.ReadFile(r.config.Resolve(e.Definition))
	if err != nil {
		return false
	}
	_, findings := dialect.DecodeDefinition(text)
	r.addFindings(e.Definition, text, findings, Refuses)
	return findings.Refused()
}

// checkSources checks the schemas and the secrets of senders.
func (r *reading) checkSources() {
	r.checkSchemas()
	for i, s := range r.config.Senders {
		if !s.hasSecret() {
			continue
		}
		key := fmt.Sprintf("senders[%d].secret_env", i)
		if s.SecretFile != "" {
			key = fmt.Sprintf("senders[%d].secret_file", i)
		}
		secret, err := r.config.secret(s)
		_, set := os.LookupEnv(s.SecretEnv)
		switch {
		case s.SecretFile == "" && !set:
			r.add(Refuses, wrong(key, "%s is not set here: set it where serve runs", s.SecretEnv))
		case err != nil:
			r.add(Refuses, wrong(key, "%s", unreadable(errors.Unwrap(err))))
		case secret == "":
			r.add(Refuses, wrong(key, "is empty"))
		}
	}
}

// checkSchemas checks the schemas, and whether they changed since their first use.
func (r *reading) checkSchemas() {
	schemas, err := schema.Load(r.config.Policy.Schemas)
	if err != nil {
		r.add(Refuses, wrong("policy.schemas", "%v", err))
		return
	}
	r.checkSteps(schemas)
	state, err := r.config.StateDirOf(r.config.Root)
	if err != nil {
		return // it is checked elsewhere
	}
	record, err := schema.OpenRecord(filepath.Join(state, schema.RecordName), nil)
	if err != nil {
		r.add(Refuses, wrong("policy.schemas", "%v", err))
		return
	}
	effect := Warns
	if r.config.Policy.SchemasPinned {
		effect = Refuses
	}
	for _, ref := range record.Changed(schemas) {
		r.add(effect, wrong("policy.schemas", "%v", schema.Altered(ref)))
	}
}

// positionInJSON returns where a field of a JSON document is: "contact.inbox_file",
// "role_types[1]". It is the place of the syntax error in a text that is not JSON, and the
// beginning for a field that is missing.
func positionInJSON(text []byte, field string) position {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				return positionAt(text, int(bad.ByteOffset))
			}
			return position{1, 1}
		}
		if field != "" && fieldAt(decoder) == field {
			return positionAt(text, int(decoder.InputOffset())-len(token.String()))
		}
	}
}

// fieldAt returns the name of the value that the decoder read last.
func fieldAt(d *jsontext.Decoder) string {
	var field strings.Builder
	level := 1
	for part := range d.StackPointer().Tokens() {
		kind, _ := d.StackIndex(level)
		switch {
		case kind == '[':
			field.WriteString("[" + part + "]")
		case field.Len() > 0:
			field.WriteString("." + part)
		default:
			field.WriteString(part)
		}
		level++
	}
	return field.String()
}

// positionAt returns the line and the column of an offset.
func positionAt(text []byte, offset int) position {
	before := text[:min(max(offset, 0), len(text))]
	return position{bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')}
}
