package reader

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/transcript"
	"mailboxd/internal/stores/dirtree"
)

// maxBegin limits how much of an output is read for the session.
const maxBegin = 256 << 10

// resume are the commands with which programs continue a session in a directory.
var resume = map[string]string{
	"claude": "claude --resume ", "codex": "codex resume ", "cursor": "cursor-agent --resume ", "gemini": "gemini --skip-trust --resume ",
	"opencode": "opencode --session ",
}

// hosted is the program of a session that a host had over ACP: the program alone would continue it in
// another mode.
const hosted = "acp"

// Session returns the session of the last run of a task, and the command that continues it; both
// are "" if the run's output names none, or its sandbox did not keep it. The command is "" if the
// work of the run was discarded.
func Session(file client.TaskDetails) (id, command string) {
	if len(file.Runs) == 0 || file.Runs[len(file.Runs)-1].Dir == "" {
		return "", ""
	}
	dir := file.Runs[len(file.Runs)-1].Dir
	s := sessionOf(dir)
	if s.ID == "" || len(s.ID) > 100 || term.ShellWord(s.ID) != s.ID || s.ID[0] == '-' { // the agent wrote it, and a person copies it
		return "", ""
	}
	kept, inside := agent.SessionAt(dir)
	meta, ok, err := runner.ReadMeta(dir)
	removed := ok && meta.Cwd != "" && !isDir(meta.Cwd)
	switch w := file.Runs[len(file.Runs)-1].Worktree; {
	case w != nil && !w.Discarded.IsZero():
		return s.ID, "" // the daemon refuses it
	case kept && (inside || removed):
		return s.ID, view.AskFurther(file.Task.ID)
	case inside || removed:
		return "", ""
	case s.Program == hosted && kept:
		return s.ID, view.AskFurther(file.Task.ID)
	case s.Program == hosted:
		return s.ID, ""
	}
	if !ok || err != nil {
		return s.ID, resume[s.Program] + s.ID
	}
	command = resume[programOf(meta.Argv, s.Program)] + s.ID
	if meta.Cwd != "" && term.Escape(meta.Cwd) == meta.Cwd {
		command = "cd " + term.ShellWord(meta.Cwd) + " && " + command
	}
	return s.ID, command
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// programOf returns the program that a command names, or else the one that its output looks like:
// the outputs of Claude Code and Cursor are much alike.
func programOf(argv []string, looksLike string) string {
	for _, word := range argv {
		name := strings.TrimSuffix(filepath.Base(word), "-agent") // cursor-agent
		if resume[name] != "" {
			return name
		}
	}
	return looksLike
}

// sessionOf reads the session from the beginning of a run's output.
func sessionOf(dir string) transcript.Session {
	file, err := dirtree.OpenRegular(filepath.Join(dir, runner.StdoutFile))
	if err != nil {
		return transcript.Session{}
	}
	defer file.Close()
	var r transcript.Reader
	lines := bufio.NewReader(io.LimitReader(file, maxBegin))
	for {
		line, err := lines.ReadBytes('\n')
		r.Read(bytes.TrimSuffix(line, []byte("\n")))
		if s := r.Session(); err != nil || s.ID != "" {
			return s
		}
	}
}
