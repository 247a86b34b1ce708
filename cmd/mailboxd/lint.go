package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/term"
)

// lintFlags name files by what they hold, spelled as AINL's own validator
// spells them; files without a flag are told apart by what is in them.
type lintFlags struct {
	tasksJSONL, taskJSON, resultJSON []string
	asJSON                           bool
}

func lintCommand(g *globals) *cobra.Command {
	f := &lintFlags{}
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check task, result, manifest and definition files without sending them",
		Long: `Lint says of lines what the daemon would say to them, as far as that can be told from
the lines alone, with the codes of CLowl and CAP where they are in these. A file says
by its content what it is, unless a flag does. It is at least as strict as AINL's own
validator, and takes its flags: what that one refuses is an error here, also where the
daemon takes it. Exit code 1: errors.`,
		Example: `  mailboxd lint tasks.jsonl request.json
  mailboxd lint --tasks-jsonl tasks.jsonl --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := config.LoadIntake(g.config, g.root)
			if err != nil {
				return err
			}
			return f.lint(cmd.OutOrStdout(), args, how)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.tasksJSONL, "tasks-jsonl", nil, "file with one task request per line")
	flags.StringArrayVar(&f.taskJSON, "task-json", nil, "file with one task request")
	flags.StringArrayVar(&f.resultJSON, "result-json", nil, "file with one task result")
	flags.BoolVar(&f.asJSON, "json", false, "print {ok, issues: [{kind, path, message}]}")
	return cmd
}

// An issue is one finding, at FILE:LINE:FIELD.
type issue struct {
	Kind    string `json:"kind"` // error or warning
	Path    string `json:"path"`
	Message string `json:"message"`
}

// A report is what lint has to say: ok when there is no error.
type lintReport struct {
	OK     bool    `json:"ok"`
	Issues []issue `json:"issues"`
}

func (f *lintFlags) lint(w io.Writer, files []string, how config.Intake) error {
	report := lintReport{OK: true, Issues: []issue{}}
	groups := []struct {
		files []string
		check func(*lintReport, string, []byte, config.Intake)
	}{
		{files, (*lintReport).any}, {f.tasksJSONL, (*lintReport).lines},
		{f.taskJSON, (*lintReport).task}, {f.resultJSON, (*lintReport).result},
	}
	checked := 0
	for _, group := range groups {
		for _, name := range group.files {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			group.check(&report, name, report.withoutMark(name, text), how)
			checked++
		}
	}
	if checked == 0 {
		return exit.With(exit.Usage, "no file to check; see mailboxd lint --help")
	}
	return report.print(w, f.asJSON)
}

// any checks a file by what it seems to be.
func (r *lintReport) any(name string, text []byte, how config.Intake) {
	var names map[string]bool
	if !strings.HasSuffix(name, ".jsonl") {
		names = memberNames(text)
	}
	switch {
	case names["role_types"] || names["available_tools"]:
		_, findings := envelope.DecodeManifest(bytes.TrimSpace(text))
		r.add(name, 1, envelope.AINL, findings)
	case definesAgent(names):
		_, findings := dialect.DecodeDefinition(bytes.TrimSpace(text))
		r.add(name, 1, envelope.AINL, findings) // which nobody is answered about
	case names["status"] && names["output"] || names["agent_id"]:
		r.result(name, text, how)
	case names != nil:
		r.task(name, text, how)
	default:
		r.lines(name, text, how)
	}
}

// withoutMark takes a byte order mark off the beginning of a file, which is an error.
func (r *lintReport) withoutMark(name string, text []byte) []byte {
	text, found := bytes.CutPrefix(text, []byte("\ufeff"))
	if found {
		r.add(name, 1, envelope.AINL, envelope.Findings{{
			Kind:    envelope.InvalidJSON,
			Message: "begins with a byte order mark; mailboxd takes it at the beginning of a task file, but AINL's own validator does not",
		}})
	}
	return text
}

// definesAgent reports whether an object with these members is a definition of CAP,
// also one that lacks some of what it has to have.
func definesAgent(names map[string]bool) bool {
	return names["id"] && !names["task_id"] &&
		(names["system_prompt"] || names["allowed_agents"] || names["delegate_rules"] || names["mcp_bindings"])
}

// memberNames returns the names of the one object in text, or nil when there
// is not exactly one.
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
			return names // broken further on: its names still say what it is
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

func (r *lintReport) lines(name string, text []byte, how config.Intake) {
	for number, line := 1, []byte(nil); len(text) > 0; number++ {
		line, text, _ = bytes.Cut(text, []byte("\n"))
		for _, piece := range readLine(how, bytes.TrimSuffix(line, []byte("\r"))) {
			r.add(name, number, piece.Message.Dialect, piece.Findings)
		}
	}
}

func (r *lintReport) task(name string, text []byte, how config.Intake) {
	text = bytes.TrimSpace(text)
	if !bytes.Contains(text, []byte("\n")) && int64(len(text)) > how.MaxLineBytes { // it is sent as it is
		r.lines(name, text, how)
		return
	}
	d := envelope.MarkedAs(text)
	codec, _ := dialect.Of(d)
	_, findings := codec.Decode(text, how.Reading())
	r.add(name, 1, d, findings)
}

func (r *lintReport) result(name string, text []byte, _ config.Intake) {
	_, findings := envelope.DecodeResult(bytes.TrimSpace(text))
	r.add(name, 1, envelope.AINL, findings)
}

func (r *lintReport) add(name string, line int, d envelope.Dialect, findings envelope.Findings) {
	for _, f := range findings {
		kind, message := "error", f.Message+codeOf(d, f)
		switch {
		case f.Upstream:
			message += "; mailboxd takes it, but AINL's own validator does not"
		case f.Warning():
			kind = "warning"
		}
		r.OK = r.OK && kind == "warning"
		r.Issues = append(r.Issues, issue{kind, fmt.Sprintf("%s:%d:%s", name, line, f.Field), message})
	}
}

// codeOf is what a refusal is called where errors have codes, in brackets.
func codeOf(d envelope.Dialect, f envelope.Finding) string {
	clowl, number, _ := dialect.Code(f.Kind)
	switch {
	case f.Warning():
	case d == envelope.CLowl:
		return " (" + clowl + ")"
	case d == envelope.CAP:
		return fmt.Sprintf(" (%d)", number)
	}
	return ""
}

func (r *lintReport) print(w io.Writer, asJSON bool) error {
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

// readLine judges a line as the daemon does.
func readLine(i config.Intake, line []byte) []dialect.Piece {
	if length := int64(len(line)); length > i.MaxLineBytes {
		return []dialect.Piece{dialect.TooLong(envelope.LongText(line), i.MaxLineBytes)}
	}
	return dialect.Read(line, i.Reading())
}
