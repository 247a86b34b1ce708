// Rename gives the imports of a module another path:
//
//	rename DIR OLD NEW
//
// In each Go file below DIR it replaces the import paths OLD and OLD/... by NEW and NEW/..., and sorts
// the imports as gofmt does. It writes no file if it can't read all of them.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: rename DIR OLD NEW")
		os.Exit(2)
	}
	n, err := rename(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files import %s\n", n, os.Args[3])
}

// rename rewrites the imports of the Go files below a directory. It returns how many files it wrote.
func rename(dir, old, path string) (n int, err error) {
	changed := map[string][]byte{}
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != dir && (entry.Name() == "testdata" || entry.Name()[0] == '.'):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		renamed, err := rewrite(text, old, path)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !bytes.Equal(renamed, text) {
			changed[file] = renamed
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		err = errors.Join(err, os.WriteFile(file, changed[file], 0o644))
	}
	return len(changed), err
}

// rewrite returns the text of a Go file with other import paths, and the same text if it has none of them.
func rewrite(text []byte, old, path string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out []byte
	end := 0 // of what out has
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		rest, ours := strings.CutPrefix(imported, old)
		if !ours || rest != "" && rest[0] != '/' {
			continue
		}
		out = append(out, text[end:set.Position(spec.Path.Pos()).Offset]...)
		out = strconv.AppendQuote(out, path+rest)
		end = set.Position(spec.Path.End()).Offset
	}
	if end == 0 {
		return text, nil
	}
	return format.Source(append(out, text[end:]...))
}
