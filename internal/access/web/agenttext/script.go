package agenttext

import (
	"bufio"
	"bytes"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/transcript"
)

// A Step is a part of a transcript: words of the model with the tools that follow, or what a
// program printed.
type Step struct {
	Title string
	Lines []StepLine
	Tools int
	Bad   bool // something in it failed
	Found bool // it has the words that are searched for
}

// A StepLine is a line of a step.
type StepLine struct {
	Class string // of the style sheet: said, tool, bad, note or raw
	Text  template.HTML
	Said  bool // the text is the Markdown of the model, as blocks
	words string
}

// A Script is the transcript of a run, in steps.
type Script struct {
	Attempt int
	Steps   []Step
	Left    int    // earlier steps that are not shown
	Find    string // the words that are searched for
	Found   int    // steps that have them
	Hidden  int    // events of the program that are not known
	Tools   int
	Open    bool // its last step is
}

// How much of a transcript is shown: the end of it.
const (
	mostSteps    = 300
	mostStepText = 16 << 10 // of one step
)

// ReadScript reads the transcript of the run in a directory, and searches it; nil for none.
func ReadScript(dir string, attempt int, find string) *Script {
	if dir == "" {
		return nil
	}
	s := &Script{Attempt: attempt, Find: find}
	s.addFile("Setup of the worktree", dir, runner.SetupFile)
	var out bytes.Buffer
	copyEnds(&out, filepath.Join(dir, runner.StdoutFile))
	s.addEvents(&out)
	s.addFile("Standard error", dir, runner.StderrFile)
	for _, one := range s.Steps {
		s.Tools += one.Tools
	}
	s.Left = max(0, len(s.Steps)-mostSteps)
	s.Steps = s.Steps[s.Left:]
	if len(s.Steps) == 0 {
		return nil
	}
	s.search()
	return s
}

// addFile adds what a program printed as one step.
func (s *Script) addFile(title, dir, name string) {
	var out bytes.Buffer
	copyEnds(&out, filepath.Join(dir, name))
	if words := plainEnd(out.String()); strings.TrimSpace(words) != "" {
		s.Steps = append(s.Steps, Step{Title: title, Lines: []StepLine{{Class: "raw", words: words}}})
	}
}

// addEvents adds the output of an agent.
func (s *Script) addEvents(output io.Reader) {
	var events transcript.Reader
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, mostEnd+mostBegin)
	for lines.Scan() {
		for _, line := range events.Read(lines.Bytes()) {
			s.add(line)
		}
	}
	for _, line := range events.Rest() {
		s.add(line)
	}
	s.Hidden = events.Hidden()
}

// classes are those of the style sheet.
var classes = map[transcript.Kind]string{
	transcript.Text: "said", transcript.Tool: "tool", transcript.Failure: "bad", transcript.Notice: "note", transcript.End: "note", transcript.Raw: "raw",
}

// add adds a part of a transcript. Words of the model begin a step, and so does the output of a
// program that is no event.
func (s *Script) add(part transcript.Line) {
	n := len(s.Steps)
	joins := part.Kind != transcript.Text && n > 0
	if part.Kind == transcript.Raw {
		joins = n > 0 && s.Steps[n-1].Lines[0].Class == "raw" && s.Steps[n-1].Title == outputTitle
	}
	if !joins {
		title := firstLine(part.Text)
		if part.Kind == transcript.Raw {
			title = outputTitle
		}
		s.Steps = append(s.Steps, Step{Title: title})
		n++
	}
	one := &s.Steps[n-1]
	switch part.Kind {
	case transcript.Tool:
		one.Tools++
	case transcript.Failure:
		one.Bad = true
	}
	if k := len(one.Lines); part.Kind == transcript.Raw && k > 0 {
		one.Lines[k-1].words += "\n" + part.Text
		return
	}
	one.Lines = append(one.Lines, StepLine{Class: classes[part.Kind], words: part.Text})
}

// outputTitle is the title of a step that has output of a program and no event.
const outputTitle = "Output"

// firstLine is the beginning of a text with more lines.
func firstLine(words string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(words), "\n")
	return strings.TrimLeft(first, "#>*- ")
}

// search marks the words that are searched for, and limits each step.
func (s *Script) search() {
	find := regexp.MustCompile("(?i)" + regexp.QuoteMeta(s.Find))
	for i := range s.Steps {
		one := &s.Steps[i]
		for j := range one.Lines {
			line := &one.Lines[j]
			if s.Find != "" && find.MatchString(line.words) {
				one.Found = true
			}
			words := LineEnds.Replace(strings.ToValidUTF8(line.words, "\uFFFD"))
			if len(words) > mostStepText {
				words = fmt.Sprintf("[... %d bytes]\n", len(words)-mostStepText) + strings.ToValidUTF8(words[len(words)-mostStepText:], "")
			}
			if line.Class == "said" && s.Find == "" {
				line.Text = Markdown(words)
				line.Said = line.Text != ""
			}
			if !line.Said {
				line.Text = withMarks(words, find, s.Find != "")
			}
		}
		if one.Found {
			s.Found++
		}
	}
}

// withMarks returns a text as HTML, with marks around what an expression finds.
func withMarks(words string, find *regexp.Regexp, mark bool) template.HTML {
	if !mark {
		return template.HTML(template.HTMLEscapeString(words)) //nolint:gosec // it is escaped
	}
	var out strings.Builder
	last := 0
	for _, at := range find.FindAllStringIndex(words, -1) {
		out.WriteString(template.HTMLEscapeString(words[last:at[0]]) + "<mark>" + template.HTMLEscapeString(words[at[0]:at[1]]) + "</mark>")
		last = at[1]
	}
	return template.HTML(out.String() + template.HTMLEscapeString(words[last:])) //nolint:gosec // its parts are escaped
}
