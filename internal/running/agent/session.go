package agent

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

// Files of a run directory about the session of a known program.
const (
	sessionFile = "session.json" // a session
	sessionsDir = "sessions"     // what the program in the sandbox keeps of its sessions
)

// A session says where a run's program keeps its session, and which earlier one it continues.
type session struct {
	Program   Profile `json:"program"`
	Dir       string  `json:"dir,omitempty"`       // of the sessions, on this machine; "": unknown
	Cwd       string  `json:"cwd"`                 // of the process
	Sandboxed bool    `json:"sandboxed,omitzero"`  // Dir appears in the sandbox where the program looks
	Continues string  `json:"continues,omitempty"` // the id of the session that the run continues
	Tokens    int64   `json:"tokens,omitzero"`     // which that session had counted before
}

// readSessionFile returns the session of a run directory, and whether it has one.
func readSessionFile(dir string) (s session, ok bool) {
	f, err := openRegular(dir, sessionFile)
	if err != nil {
		return s, false
	}
	defer f.close()
	text, err := f.read(0, maxSessionFile)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return session{}, false
	}
	return s, true
}

const maxSessionFile = 64 << 10

// SessionAt reports whether mailboxd can continue the session of a run, and whether it is in the
// run's sandbox, so that the program alone can't.
func SessionAt(runDir string) (kept, inside bool) {
	inside = workDir(runDir) != runDir
	s, ok := readSessionFile(runDir)
	if ok && s.Dir != "" {
		_, err := os.Lstat(s.Dir)
		kept = err == nil
	}
	return kept, inside
}

// noteSession records where the program of a run will keep its session. A continued session stays
// where it is.
func (g *Agent) noteSession(j task.Job, sandboxed host.Bubblewrap) error {
	recipe, known := sessionRecipes[g.binding.Profile]
	if !known || j.Dir == "" || !g.binding.byRecipe() {
		return nil
	}
	s := session{Program: g.binding.Profile, Dir: recipe.dirIn(g.environ), Cwd: j.Cwd}
	switch {
	case j.Task.Continues() != "":
		e, err := g.earlier(j.Task)
		if err != nil {
			return err
		}
		s = e.session
		s.Continues, s.Tokens = e.id, e.tokens()
	case sandboxed.Path == runner.WeakerProgram:
		s.Dir = "" // it can't write there
	case sandboxed.Path != "":
		s.Sandboxed, s.Dir = true, inDir(j, sessionsDir)
		if err := os.Mkdir(s.Dir, 0o700); err != nil {
			return err
		}
	}
	if s.Cwd == "" {
		s.Cwd = workDir(j.Dir)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return create(inDir(j, sessionFile), append(text, '\n'))
}

// addSessions shows the program in a sandbox the directory of its sessions, and the directory in
// which an earlier run worked, if that is part of the run's directory.
func (g *Agent) addSessions(r *sandbox.Run, j task.Job) {
	s, ok := readSessionFile(j.Dir)
	if !ok || !s.Sandboxed {
		return
	}
	if name := sessionRecipes[s.Program].dirIn(g.environ); name != "" {
		r.Sessions = sandbox.Path{Name: name, Real: s.Dir}
	}
	if dir := g.continuedDir(j); dir != "" {
		r.Cwd = sandbox.Path{Name: dir, Real: dir}
		r.Write, r.Logins = append(r.Write, r.Cwd), append(r.Logins, dir)
	}
}

// continuedDir returns the run directory of an earlier run, or the part of it, in which the program
// goes on: that run had no other. It is "" for any other run.
func (g *Agent) continuedDir(j task.Job) string {
	if j.Task.Continues() == "" || j.Cwd != "" || g.binding.Cwd != "" {
		return ""
	}
	s, _ := readSessionFile(j.Dir)
	return s.Cwd
}

// find returns the file of a session. It is "" if the program's documentation doesn't say where the
// file is; an error that wraps fs.ErrNotExist says that it is gone.
func (s session) find(id string) (string, error) {
	recipe := sessionRecipes[s.Program]
	if s.Dir == "" || recipe.file == nil {
		return "", nil
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob(s.Dir), recipe.file(id)))
	if err == nil && len(found) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// escapeGlob makes a path a pattern of itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// maxCount is how much of the end of a session's file is searched for its last count of tokens.
const maxCount = 4 << 20

// tokensIn returns the tokens that the file of a session has counted; 0 if its program reports
// those of each run by itself, or none are found.
func (s session) tokensIn(path string) int64 {
	mark := []byte(sessionRecipes[s.Program].total)
	if len(mark) == 0 || path == "" {
		return 0
	}
	f, err := openRegular(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return 0
	}
	defer f.close()
	text, err := f.read(max(0, f.size-maxCount), maxCount)
	at := bytes.LastIndex(text, mark)
	if err != nil || at < 0 {
		return 0
	}
	var count struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	if json.UnmarshalRead(bytes.NewReader(objectAt(text[at+len(mark):])), &count, lenient) != nil {
		return 0
	}
	return count.Input + count.Output
}

// objectAt returns the flat object that a text begins with.
func objectAt(text []byte) []byte {
	if end := bytes.IndexByte(text, '}'); end >= 0 {
		return text[:end+1]
	}
	return nil
}

// idIn returns the id of the session that the output of a run names; "" if it names none that can
// be part of a command.
func idIn(dir string, format Format) string {
	f, err := openRegular(dir, runner.StdoutFile)
	if err != nil {
		return ""
	}
	defer f.close()
	text, err := f.read(0, maxTail)
	if err != nil || eventReaders[format] == nil {
		return ""
	}
	t := transcript{}
	for line := range bytes.Lines(text) {
		if t.readEvent(format, bytes.TrimSpace(line)); t.session != "" {
			break
		}
	}
	if !isSessionID(t.session) {
		return ""
	}
	return t.session
}

// isSessionID reports whether a text that an agent printed may be an argument and part of a
// pattern.
func isSessionID(id string) bool {
	const most = 100
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	return id != "" && len(id) <= most && id[0] != '-' && !strings.ContainsFunc(id, func(r rune) bool { return !plain(r) })
}

// gone reports whether an error says that a file isn't there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
