package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A login is where a program keeps its login, by its documentation.
type login struct {
	variables []string    // one that is set is a login
	files     []loginFile // one that exists, and has the words, is a login
	unsure    []loginFile // settings that can make a login unnecessary
	command   string      // how a person logs in
	key       string      // the variable for a key; "" for none
}

// A loginFile is a file of a login below a directory.
type loginFile struct {
	dir   string // the variable with the directory; "" for the home directory
	below string // the directory below the home directory if the variable isn't set
	name  string
	words string // in the file; "" for any content
}

// A LoginState is what is known of the login of a program, without asking its provider.
type LoginState struct {
	Found  string // the variable or the file with the login; "" for none
	Unsure string // a file with settings that may make a login unnecessary; "" for none
	Remedy string // how to log in
}

// maxSettings limits the settings that are searched for a login, in bytes.
const maxSettings = 1 << 20

// Login looks for the login that the runs of a binding have: in the variables that they get, and
// in the files of its program. It is false for a program whose login is unknown. It asks no
// provider, so an expired login is one, too.
func (b Binding) Login() (LoginState, bool) {
	l := recipes[b.Profile].login
	env, wrong := inherit(b.Env, os.LookupEnv)
	if l == nil || wrong != nil || b.Worker != nil || b.Inbox != nil {
		return LoginState{}, false
	}
	value := func(name string) string {
		for _, entry := range env {
			if text, ok := strings.CutPrefix(entry, name+"="); ok {
				return text
			}
		}
		return ""
	}
	state := LoginState{Remedy: l.remedy()}
	for _, name := range l.variables {
		if value(name) != "" {
			state.Found = name
			return state, true
		}
	}
	find := func(files []loginFile) string {
		for _, f := range files {
			if path := f.path(value); f.holds(path) {
				return path
			}
		}
		return ""
	}
	state.Found, state.Unsure = find(l.files), find(l.unsure)
	return state, true
}

// remedy says how a person logs in.
func (l *login) remedy() string {
	if l.key == "" {
		return l.command
	}
	return l.command + "; or pass it " + l.key + " by exec.env"
}

func (f loginFile) path(value func(string) string) string {
	if dir := value(f.dir); f.dir != "" && dir != "" {
		return filepath.Join(dir, f.name)
	}
	return filepath.Join(value("HOME"), f.below, f.name)
}

// holds reports whether a path is a file with something in it, and with the words.
func (f loginFile) holds(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > maxSettings {
		return false
	}
	if f.words == "" {
		return true
	}
	text, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(text), f.words)
}

// remedyOf says how a person logs in to the program whose output has a format; "" if it is
// unknown.
func remedyOf(f Format) string {
	if l := recipes[Profile(f)].login; l != nil {
		return l.remedy()
	}
	return ""
}

// versionNumber is the first version in what a program prints about itself.
var versionNumber = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+`)

// UntestedVersion returns the version with which mailboxd was tested, as 2.1, if the program at a
// path has another major version by what it says; "" otherwise, and for an unknown program.
func UntestedVersion(path, says string) string {
	name, version := filepath.Base(path), versionNumber.FindString(says)
	for _, r := range recipes {
		if len(r.command) == 0 || r.command[0] != name || r.tested == "" || version == "" {
			continue
		}
		if parts := strings.Split(r.tested, "."); !slices.Equal(parts[:1], strings.Split(version, ".")[:1]) {
			return strings.Join(parts[:2], ".")
		}
	}
	return ""
}
