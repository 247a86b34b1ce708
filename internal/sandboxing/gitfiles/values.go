package gitfiles

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// A value is one of a configuration.
type value struct {
	file       string // which has it
	key, value string // the key in lower case, except for its middle
}

// maxIncluded limits the files that configurations include.
const maxIncluded = 50

// configuration returns the values of the system's, the user's and the repository's
// configuration, and of all files that these include. A condition of an include may become
// true later: it may be that of a branch. It says whether git gave no answer in time.
func (g git) configuration(ctx context.Context) (values []value, late bool) {
	text, err := g.run(ctx, "config", "--list", "-z", "--show-origin", "--no-includes")
	values, late = parse(text), isLate(err)
	seen := map[string]bool{}
	for i := 0; i < len(values); i++ { // values grows
		file := values[i].included()
		if file == "" || seen[file] || len(seen) == maxIncluded {
			continue
		}
		seen[file] = true
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
			continue
		case info.Mode()&os.ModeNamedPipe != 0:
			late = true // git would wait
			continue
		}
		text, err := git{dir: "/"}.run(ctx, "config", "--file", file, "--list", "-z", "--show-origin", "--no-includes")
		values, late = append(values, parse(text)...), late || isLate(err)
	}
	return values, late
}

// parse reads the output of git config --list -z --show-origin: an origin, and a key with its
// value in another line. Values of the command line are ours.
func parse(text string) (values []value) {
	items := strings.Split(text, "\x00")
	for i := 0; i+1 < len(items); i += 2 {
		file, ok := strings.CutPrefix(items[i], "file:")
		if !ok {
			continue
		}
		key, of, _ := strings.Cut(items[i+1], "\n")
		values = append(values, value{file, key, of})
	}
	return values
}

// included returns the file that a value includes, if any.
func (v value) included() string {
	name := v.key
	conditional := strings.HasPrefix(name, "includeif.") && strings.HasSuffix(name, ".path")
	if name != "include.path" && !conditional || v.value == "" {
		return ""
	}
	return expand(v.value, filepath.Dir(v.file))
}

// maxNamed limits the files that the values of one configuration name.
const maxNamed = 1000

// namedFiles returns the files that values name: configurations, what they include, hooks and
// attributes, which git obeys once they exist, and programs that exist. A relative path is
// below the working tree, if that is known.
func namedFiles(values []value, tree string) (files []string) {
	for _, v := range values {
		files = append(files, v.file)
		switch {
		case v.included() != "":
			files = append(files, v.included())
		case v.key == "core.hookspath" || v.key == "core.attributesfile":
			files = append(files, expand(v.value, tree))
		case v.key == "init.templatedir": // its files become those of each new repository
			files = append(files, filepath.Join(expand(v.value, tree), "hooks"), filepath.Join(expand(v.value, tree), "config"))
		default:
			files = append(files, programs(v.value, tree)...)
		}
		if len(files) > maxNamed {
			break
		}
	}
	return files
}

// programs returns the files in a value that may be a command.
func programs(command, tree string) (files []string) {
	words := strings.FieldsFunc(strings.TrimPrefix(command, "!"), func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>=", r) })
	for _, word := range words {
		if !strings.Contains(word, "/") {
			continue
		}
		path := expand(word, tree)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// expand makes an absolute path of one in a configuration; "" if it can't. It is below a
// directory, if it is relative.
func expand(path, dir string) string {
	switch first, rest, _ := strings.Cut(path, "/"); {
	case path == "":
		return ""
	case first == "~":
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		return filepath.Join(home, rest)
	case strings.HasPrefix(first, "~"):
		other, err := user.Lookup(first[1:])
		if err != nil {
			return ""
		}
		return filepath.Join(other.HomeDir, rest)
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case dir == "":
		return ""
	}
	return filepath.Join(dir, path)
}
