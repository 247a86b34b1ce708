package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// patchPaints are the paints of the lines of a patch by their beginning; the first that fits.
var patchPaints = []struct {
	begin string
	paint term.Paint
}{
	{"diff --git ", term.Bold}, {"+++ ", term.Bold}, {"--- ", term.Bold}, {"@@ ", term.Cyan},
	{"+", term.Green}, {"-", term.Red},
}

// PrintPatch prints a patch for a person. It escapes what would control the terminal.
func PrintPatch(s term.Screen, patch []byte) error {
	for line := range bytes.Lines(patch) {
		text := term.Escape(strings.TrimSuffix(string(line), "\n"))
		paint := term.Paint("")
		for _, p := range patchPaints {
			if strings.HasPrefix(text, p.begin) {
				paint = p.paint
				break
			}
		}
		if _, err := fmt.Fprintln(s, s.Paint(paint, text)); err != nil {
			return err
		}
	}
	return nil
}

// PrintApplication prints where the work of a task went.
func PrintApplication(w io.Writer, id envelope.ID, done client.Application) error {
	where := done.Source
	if done.Branch != "" {
		where += ", branch " + done.Branch + " at " + short(done.Commit)
	}
	verb := "applied to"
	if done.Already {
		verb = "applied already to"
	}
	if _, err := fmt.Fprintf(w, "%s  %s %s: %s\n", id, verb, term.Escape(where), count(done.Changed, "file")); err != nil {
		return err
	}
	if len(done.Skipped) > 0 {
		if _, err := fmt.Fprintf(w, "left out, as repositories or names that git refuses: %s\n", names(done.Skipped, 0)); err != nil {
			return err
		}
	}
	if done.Already && done.Branch == "" {
		_, err := fmt.Fprintf(w, "to apply it again: %s | git -C %s apply\n", Command("diff", id), term.ShellWord(term.Escape(done.Source)))
		return err
	}
	return nil
}

// short is the beginning of a commit's hash.
func short(hash string) string { return hash[:min(len(hash), 10)] }

// maxNames limits the names in one line.
const maxNames = 8

// names lists the first names, and how many more there are.
func names(list []string, more int) string {
	words := make([]string, 0, maxNames)
	for _, name := range list[:min(len(list), maxNames)] {
		words = append(words, term.OneLine(name))
	}
	if more += len(list) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// printWorktree prints the clone that the latest run worked in, and its work.
func (f *Details) printWorktree(s term.Screen) {
	w := f.Worktree()
	if w == nil {
		return
	}
	fmt.Fprintln(s, "\nworktree")
	fmt.Fprintf(s, "  from       %s at %s\n", term.Escape(w.Source), short(w.Commit))
	if w.Removed.IsZero() {
		fmt.Fprintf(s, "  clone      %s\n", term.Escape(w.Dir))
	} else {
		fmt.Fprintf(s, "  clone      removed %s\n", term.Stamp(w.Removed))
	}
	if len(w.Uncommitted) > 0 {
		s.Line("  without    %s: %s", count(len(w.Uncommitted)+w.Omitted, "uncommitted file"), names(w.Uncommitted, w.Omitted))
	}
	for _, what := range w.NotCopied {
		fmt.Fprintf(s, "  not copied %s\n", term.OneLine(what))
	}
	if len(w.Submodules) > 0 {
		s.Line("  without    the files of %s: %s", count(len(w.Submodules), "submodule"), names(w.Submodules, 0))
	}
	f.printWork(s, w)
}

// PrintWork prints what a task changed in its worktree, and the commands that show and apply
// it; nothing if there is no patch.
func PrintWork(s term.Screen, file client.TaskDetails, id envelope.ID) error {
	w := file.Worktree()
	if w == nil || w.Patch == "" && w.Problem == "" {
		return nil
	}
	if withheld(file) {
		return nil // nothing can be applied
	}
	words := fmt.Sprintf("%s changed, +%d -%d; to see: %s; to apply: %s", count(w.Changed, "file"), w.Added, w.Deleted, Command("diff", id), Command("apply", id))
	if w.Problem != "" {
		words = fmt.Sprintf("the changes were not kept: %s; see: %s", term.OneLine(w.Problem), Command("show", id))
	}
	if s.Columns > 0 {
		words = term.WrapIndented(words, s.Columns, 2)
	}
	_, err := fmt.Fprintln(s, words)
	return err
}

// CanApply reports whether mailboxd apply would put the work of a task into its working tree, as
// far as the details say: the patch may be unreadable, and the working tree may have changed.
func CanApply(f client.TaskDetails) bool {
	w := f.Worktree()
	return w != nil && w.Patch != "" && w.Problem == "" && w.Applied.IsZero() && w.Discarded.IsZero() && f.Task.State == task.Done && !withheld(f)
}

// CanDiscard reports whether the work of a done task could still be discarded: it was neither
// applied nor discarded.
func CanDiscard(f client.TaskDetails) bool {
	w := f.Worktree()
	return w != nil && w.Patch != "" && w.Applied.IsZero() && w.Fetched == "" && w.Discarded.IsZero() && f.Task.State == task.Done
}

// withheld reports whether the answer of a done task was refused, and its work with it.
func withheld(f client.TaskDetails) bool {
	answer := task.Approved
	for _, a := range f.Approvals {
		if a.Revision != f.Task.Revision {
			continue
		}
		if a.DeniesTask() {
			return true
		}
		if a.Stage == envelope.ApprovalPost {
			answer = task.Decision(a.Decision)
		}
	}
	refused := []envelope.Kind{envelope.ApprovalExpired, envelope.OversightRejected, envelope.OversightExpired}
	return answer != task.Approved || slices.Contains(refused, f.Task.Kind)
}

// workWords counts and names the files of a patch.
func workWords(w *client.Worktree) string {
	var changed []string
	for _, file := range w.Files {
		changed = append(changed, file.Path)
	}
	return fmt.Sprintf("%s, +%d -%d: %s", count(w.Changed, "file"), w.Added, w.Deleted, names(changed, w.Changed-len(changed)))
}

// changeWords says what the run of an answer changed in a worktree, with the content of the patch
// and the command that shows it; "" for no worktree.
func (f *Details) changeWords() string {
	switch w := f.Worktree(); {
	case w == nil:
		return ""
	case w.Problem != "":
		return "not kept: " + w.Problem
	case w.Patch == "":
		return "none"
	default:
		return fmt.Sprintf("%s; patch sha256 %s; to see it: %s", workWords(w), shortDigest(w.Digest), Command("diff", f.Task.ID))
	}
}

// printWork prints what a run changed.
func (f *Details) printWork(s term.Screen, w *client.Worktree) {
	switch {
	case w.Problem != "":
		fmt.Fprintf(s, "  changes    not kept: %s\n", term.OneLine(w.Problem))
	case !w.Ended:
		fmt.Fprintln(s, "  changes    known when the run has ended")
	case w.Patch == "":
		fmt.Fprintln(s, "  changes    none")
	default:
		s.Line("  changes    %s", workWords(w))
		fmt.Fprintf(s, "  see        %s\n", Command("diff", f.Task.ID))
	}
	if len(w.Skipped) > 0 {
		s.Line("  left out   repositories, and names that git refuses: %s", names(w.Skipped, 0))
	}
	switch {
	case w.Patch == "":
	case !w.Applied.IsZero():
		fmt.Fprintf(s, "  applied    %s\n", term.Stamp(w.Applied))
	case !w.Discarded.IsZero():
		fmt.Fprintf(s, "  discarded  %s\n", term.Stamp(w.Discarded))
	case w.Fetched != "":
		fmt.Fprintf(s, "  applied    to branch %s\n", w.Branch)
	case CanApply(f.TaskDetails):
		fmt.Fprintf(s, "  next       %s\n", Command("apply", f.Task.ID))
	}
}
