// Package lint checks files of tasks, results, manifests and definitions as the daemon
// would, without sending them.
package lint

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
)

// An Issue is a problem at FILE:LINE:FIELD.
type Issue struct {
	Kind    string `json:"kind"` // error or warning
	Path    string `json:"path"`
	Message string `json:"message"`
}

// A Report lists issues. It is OK without errors.
type Report struct {
	OK     bool    `json:"ok"`
	Issues []Issue `json:"issues"`
}

// any checks a file by its content.
func (r *Report) any(name string, text []byte, how Rules) {
	var names map[string]bool
	if !strings.HasSuffix(name, ".jsonl") {
		names = memberNames(text)
	}
	switch {
	case names["role_types"] || names["available_tools"]:
		m, findings := envelope.DecodeManifest(bytes.TrimSpace(text))
		r.add(name, 1, envelope.AINL, append(findings, how.NearMisses.Apply(m.NearMisses)...))
	case definesAgent(names):
		_, findings := dialect.DecodeDefinition(bytes.TrimSpace(text))
		r.add(name, 1, envelope.AINL, findings) // definitions have no error codes
	case names["capabilities"] && !names["type"]:
		_, findings := envelope.DecodeCard(bytes.TrimSpace(text))
		r.add(name, 1, envelope.Clutch, findings)
	case names["status"] && names["output"] || names["agent_id"]:
		r.result(name, text, how)
	case names != nil:
		r.task(name, text, how)
	default:
		r.lines(name, text, how)
	}
}

// withoutMark removes a byte order mark, which is an error.
func (r *Report) withoutMark(name string, text []byte) []byte {
	text, found := bytes.CutPrefix(text, []byte("\ufeff"))
	if found {
		r.add(name, 1, envelope.AINL, envelope.Findings{{
			Kind:    envelope.InvalidJSON,
			Message: "begins with a byte order mark; mailboxd takes it at the beginning of a task file, but AINL's own validator does not",
		}})
	}
	return text
}

// definesAgent reports whether an object with these members is a CAP definition, perhaps
// an incomplete one.
func definesAgent(names map[string]bool) bool {
	return names["id"] && !names["task_id"] &&
		(names["system_prompt"] || names["allowed_agents"] || names["delegate_rules"] || names["mcp_bindings"])
}

// memberNames returns the names of the only object in text, or nil for other text.
func memberNames(text []byte) map[string]bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	names := map[string]bool{}
	for decoder.PeekKind() == '"' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil
		}
		names[token.String()] = true
		if err := decoder.SkipValue(); err != nil {
			return names // an invalid object still has names
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return names
	}
	if len(bytes.TrimSpace(text[decoder.InputOffset():])) > 0 {
		return nil
	}
	return names
}

func (r *Report) lines(name string, text []byte, how Rules) {
	for number, line := 1, []byte(nil); len(text) > 0; number++ {
		line, text, _ = bytes.Cut(text, []byte("\n"))
		for _, piece := range readLine(how, bytes.TrimSuffix(line, []byte("\r"))) {
			near := how.NearMisses.Apply(piece.Message.Request.NearMisses)
			r.add(name, number, piece.Message.Dialect, append(piece.Findings, near...))
		}
	}
}

func (r *Report) task(name string, text []byte, how Rules) {
	text = bytes.TrimSpace(text)
	if !bytes.Contains(text, []byte("\n")) && int64(len(text)) > how.MaxLineBytes { // send does not reformat it
		r.lines(name, text, how)
		return
	}
	d := envelope.MarkedAs(text)
	codec, _ := dialect.Of(d)
	m, findings := codec.Decode(text, how.Reading)
	r.add(name, 1, d, append(findings, how.NearMisses.Apply(m.Request.NearMisses)...))
}

func (r *Report) result(name string, text []byte, _ Rules) {
	_, findings := envelope.DecodeResult(bytes.TrimSpace(text))
	r.add(name, 1, envelope.AINL, findings)
}

func (r *Report) add(name string, line int, d envelope.Dialect, findings envelope.Findings) {
	for _, f := range findings {
		kind, message := "error", f.Message+codeOf(d, f)
		switch {
		case f.Upstream:
			message += "; mailboxd takes it, but AINL's own validator does not"
		case f.Warning():
			kind = "warning"
		}
		r.OK = r.OK && kind == "warning"
		r.Issues = append(r.Issues, Issue{kind, fmt.Sprintf("%s:%d:%s", name, line, f.Field), message})
	}
}

// codeOf returns the code of an error in its dialect, in brackets.
func codeOf(d envelope.Dialect, f envelope.Finding) string {
	clowl, number, _ := dialect.Code(f.Kind)
	switch {
	case f.Warning():
	case d == envelope.CLowl:
		return " (" + clowl + ")"
	case d == envelope.CAP:
		return fmt.Sprintf(" (%d)", number)
	case d == envelope.Clutch:
		code, _ := dialect.ClutchCode(f.Kind)
		return " (" + code + ")"
	}
	return ""
}

// Print prints the issues. It returns an error with an exit code when there are errors.
func (r *Report) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		if err := term.PrintJSON(w, r); err != nil {
			return err
		}
	} else {
		for _, i := range r.Issues {
			fmt.Fprintf(w, "%s: %s: %s\n", term.Escape(i.Path), i.Kind, term.Escape(i.Message))
		}
	}
	if !r.OK {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// readLine decodes a line as the daemon does.
func readLine(i Rules, line []byte) []dialect.Piece {
	if length := int64(len(line)); length > i.MaxLineBytes {
		return []dialect.Piece{dialect.TooLong(envelope.LongText(line), i.MaxLineBytes)}
	}
	return dialect.Read(line, i.Reading)
}

// Fail adds an error.
func (r *Report) Fail(path string, err error) {
	r.OK = false
	r.Issues = append(r.Issues, Issue{"error", path, err.Error()})
}

// Rules are how the daemon reads lines.
type Rules struct {
	MaxLineBytes int64 // bytes
	Reading      envelope.Reading
	NearMisses   envelope.Mode
}

// NewReport returns a report without issues.
func NewReport() *Report { return &Report{OK: true, Issues: []Issue{}} }

// Warn adds a warning.
func (r *Report) Warn(path, message string) {
	r.Issues = append(r.Issues, Issue{"warning", path, message})
}

// Files are the files to check, by their content.
type Files struct {
	Any       []string // whatever their content says
	TaskLines []string // a request on each line
	Tasks     []string // a request
	Results   []string // a result
}

// Check checks files.
func Check(files Files, how Rules) (*Report, error) {
	report := NewReport()
	groups := []struct {
		files []string
		check func(*Report, string, []byte, Rules)
	}{
		{files.Any, (*Report).any}, {files.TaskLines, (*Report).lines},
		{files.Tasks, (*Report).task}, {files.Results, (*Report).result},
	}
	for _, group := range groups {
		for _, name := range group.files {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			group.check(report, name, report.withoutMark(name, text), how)
		}
	}
	return report, nil
}
