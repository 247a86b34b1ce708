package view

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// AskedContent returns, in lines, all that a person is asked to agree to: the request, the plan of
// the run and its digest, and for an answer that waits the answer, and which files of a worktree
// its run changed. With it comes the question; its Asked is zero if nothing is asked. Nothing is cut
// but a very long input and the list of files.
func (f *Details) AskedContent() (string, client.Approval) {
	asked := f.PendingApproval()
	var text strings.Builder
	fmt.Fprintf(&text, "  task     %s, revision %d, of %s\n", escaped(string(f.Task.ID)), asked.Revision, escaped(cmp.Or(f.Task.Requester, "nobody")))
	f.writeRequest(&text, asked)
	if why := f.reason(); why != "" {
		fmt.Fprintf(&text, "  because  %s\n", escaped(why))
	}
	if calls := f.OpenCalls(); len(calls) > 1 {
		at := slices.IndexFunc(calls, func(a client.Approval) bool { return a.Digest == asked.Digest })
		fmt.Fprintf(&text, "  call     %d of %d that wait; another one: --call N\n", at+1, len(calls))
	}
	text.WriteString(Question(asked))
	if asked.Stage == envelope.ApprovalPost && f.Unshown != nil {
		var answer bytes.Buffer
		if err := PrintResult(&answer, f.Unshown, false); err != nil {
			answer.Write(f.Unshown)
		}
		fmt.Fprintf(&text, "\n  the answer is\n%s", term.Indent(strings.TrimRight(term.Escape(answer.String()), "\n")))
		if words := f.changeWords(); words != "" {
			fmt.Fprintf(&text, "\n  changes  %s", escaped(words))
		}
	}
	return text.String(), asked
}

// NoteContent returns, in lines, the note of a decision and what follows from it; "" for none.
func NoteContent(note string, again bool) string {
	text := ""
	if note != "" {
		text = "\n  your note is\n  | " + strings.ReplaceAll(term.Escape(note), "\n", "\n  | ")
	}
	if again {
		text += "\n  then     the task is done once more, with this note in its request"
	}
	return text
}

// WorkContent returns, in lines, all that a person decides about who applies or discards the work of
// a task: the request, the repository, the files and the digest of the patch, which it also returns.
func (f *Details) WorkContent() (text, digest string) {
	var b strings.Builder
	fmt.Fprintf(&b, "  task     %s, revision %d, of %s\n", escaped(string(f.Task.ID)), f.Task.Revision, escaped(cmp.Or(f.Task.Requester, "nobody")))
	f.writeRequest(&b, client.Approval{})
	w := f.Worktree()
	if w == nil {
		return b.String() + "  changes  none", ""
	}
	fmt.Fprintf(&b, "  into     %s\n  changes  %s\n    patch    %s", escaped(w.Source), escaped(f.changeWords()), escaped(w.Digest))
	return b.String(), w.Digest
}

// maxInput is how many bytes of an input are shown before a decision.
const maxInput = 8 << 10

// writeRequest writes the request of a question.
func (f *Details) writeRequest(text *strings.Builder, asked client.Approval) {
	raw := f.Request
	if asked.Request != nil {
		raw = asked.Request
	}
	if raw == nil {
		fmt.Fprintf(text, "  agent    %s\n  asks     (the request isn't kept any more)\n", escaped(f.Task.Agent))
		return
	}
	t, findings := dialect.DecodeTask(envelope.Dialect(f.Task.Dialect), raw, envelope.Legacy)
	if findings.Refused() {
		fmt.Fprintf(text, "  agent    %s\n  asks     %s\n", escaped(f.Task.Agent), inputOf(raw))
		return
	}
	agent := t.Agent
	if t.Routed {
		agent = f.Task.Agent
	}
	fmt.Fprintf(text, "  agent    %s\n", escaped(agent))
	fmt.Fprintf(text, "  type     %s\n", escaped(t.Type))
	if t.Description != "" {
		fmt.Fprintf(text, "  asks     %s\n", escaped(t.Description))
	}
	if t.Input != nil {
		fmt.Fprintf(text, "  input    %s\n", inputOf(t.Input))
	}
}

// inputOf returns an input on one line, in its shortest encoding, so that the daemon and its
// clients, to which JSON comes encoded anew, show the same.
func inputOf(raw []byte) string {
	short := jsontext.Value(slices.Clone(raw))
	if short.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		short = raw
	}
	line := escaped(string(short))
	if len(line) > maxInput {
		return fmt.Sprintf("%s... (%d more bytes: see mailboxd show --json)", strings.ToValidUTF8(line[:maxInput], ""), len(line)-maxInput)
	}
	return line
}

// shortDigest returns the digits of a digest that name it.
func shortDigest(digest string) string { return digest[:min(len(digest), task.ShortDigest)] }
