package worktree

import (
	"context"
	"path/filepath"
	"strings"
)

// A CommittedFile is a committed file, or a committed link.
type CommittedFile struct {
	Path       string // from the top of the repository
	Object     string // its hash in git, which names its content
	Executable bool
}

// Committed returns the files at a base, or at HEAD without one, of the repository that a directory is
// part of, as a clone gets them, by their names relative to the directory. Names of nothing that is committed are left out.
func Committed(ctx context.Context, dir, base string, names []string) (map[string]CommittedFile, error) {
	r, err := find(ctx, dir)
	if err != nil {
		return nil, err
	}
	commit, err := r.commit(ctx, base)
	if err != nil {
		return nil, err
	}
	byPath, args := map[string][]string{}, []string{"ls-tree", "-z", "--full-tree", commit, "--"}
	for _, name := range names {
		if path := filepath.Join(r.prefix, name); filepath.IsLocal(path) {
			byPath[path] = append(byPath[path], name)
			args = append(args, path)
		}
	}
	files := map[string]CommittedFile{}
	if len(byPath) == 0 {
		return files, nil // without paths, git lists all
	}
	g := git{dir: r.top, environ: []string{"GIT_LITERAL_PATHSPECS=1"}} // a name is no pattern
	text, err := g.run(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	for _, entry := range split(text) { // mode, type and hash, a tab, the path
		facts, path, _ := strings.Cut(entry, "\t")
		words := strings.Fields(facts)
		if len(words) != 3 || words[1] != "blob" {
			continue
		}
		for _, name := range byPath[path] {
			files[name] = CommittedFile{Path: path, Object: words[2], Executable: words[0] == "100755"}
		}
	}
	return files, nil
}
