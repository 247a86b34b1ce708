package backup

import (
	"fmt"
	"io"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// Print says what a backup has, for people.
func (r Record) Print(w io.Writer, dir string) error {
	text := fmt.Sprintf("backed up %s, with %s, %d of them open, as of %s\n", term.Escape(r.Root), count(r.Tasks, "task"), r.Open, r.Made.Local().Format("2006-01-02 15:04:05"))
	if n := len(r.Omitted); n > 0 {
		text += fmt.Sprintf("omitted %s, unreadable or of another kind than files, such as %s\n", count(n, "path"), term.OneLine(r.Omitted[0]))
	}
	text += "restore it with: mailboxd restore " + term.ShellWord(dir) + "\n"
	_, err := io.WriteString(w, text)
	return err
}

// Print says what came of a restore, and what to do next.
func (r Restoration) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "restored  %s, as of %s\n", term.Escape(r.Root), r.Backup.Made.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintf(&b, "state     %s\n", term.Escape(r.State))
	if !r.Verified {
		b.WriteString("unchecked the backup is of an earlier version, which made no digests: it could have been changed\n")
	}
	if r.Kept {
		b.WriteString("mailbox   was there, and stays as it is\n")
	}
	if r.Replaced != "" {
		fmt.Fprintf(&b, "replaced  the earlier state is in %s\n", term.Escape(r.Replaced))
	}
	if len(r.Held) > 0 {
		fmt.Fprintf(&b, "held      %s, which may have run after the backup%s\n", count(len(r.Held), "open task"), listed(r.Held))
	}
	if len(r.Waiting) > 0 {
		fmt.Fprintf(&b, "waiting   %s, for the approval of an answer%s\n", count(len(r.Waiting), "task"), listed(r.Waiting))
	}
	if r.LaterAll > 0 {
		fmt.Fprintf(&b, "later     %s came after the backup; a task in them is held unless it has a result:\n", count(r.LaterAll, "line"))
		for _, l := range r.Later {
			fmt.Fprintf(&b, "          %s  %s:%d\n", term.OneLine(idOr(l.Task)), term.OneLine(l.File), l.Offset)
		}
		if more := r.LaterAll - len(r.Later); more > 0 {
			fmt.Fprintf(&b, "          and %d more\n", more)
		}
	}
	if len(r.Held) == 0 && r.LaterAll == 0 {
		b.WriteString("\nNothing is held. Start the daemon with: mailboxd serve\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	b.WriteString("\nStart the daemon with mailboxd serve, and list what is held with: mailboxd ps --state held\n")
	example := envelope.ID("ID")
	if len(r.Held) > 0 {
		example = r.Held[0]
	}
	fmt.Fprintf(&b, "Run a held task with: %s\n", view.Command("release", example))
	fmt.Fprintf(&b, "End it without a run: %s\n", view.Command("cancel", example))
	_, err := io.WriteString(w, b.String())
	return err
}

func idOr(id envelope.ID) string {
	if id == "" {
		return "(no id)"
	}
	return string(id)
}

// mostListed limits how many ids a line has.
const mostListed = 8

// listed lists ids after a colon, "" for none.
func listed(ids []envelope.ID) string {
	if len(ids) == 0 {
		return ""
	}
	var words []string
	for _, id := range ids[:min(len(ids), mostListed)] {
		words = append(words, term.OneLine(string(id)))
	}
	if more := len(ids) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return ": " + strings.Join(words, ", ")
}

// count counts things; their plural ends in s.
func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// PrintMoved says what to set after a move from another place. The state is named if it is
// not the default of the root.
func (p Location) PrintMoved(w io.Writer, from Location, named bool, file string) error {
	text := ""
	set := ""
	if p.Root != from.Root {
		text += fmt.Sprintf("moved %s to %s\n", term.Escape(from.Root), term.Escape(p.Root))
		set += fmt.Sprintf("  root: %s\n", term.ShellWord(p.Root))
	}
	if p.State != from.State {
		text += fmt.Sprintf("moved %s to %s\n", term.Escape(from.State), term.Escape(p.State))
	}
	if named {
		set += fmt.Sprintf("  state_dir: %s\n", term.ShellWord(p.State))
	}
	text += "\nSet before the next start, in " + file + " or where you set it:\n" + set
	if p.Root != from.Root {
		text += "For AINL programs: export AINL_AGENT_ROOT=" + term.ShellWord(p.Root) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
