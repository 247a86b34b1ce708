package schema

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// What a directory may hold. It is the operator's, so these are for a wrong
// path, such as one's whole home, and not for an enemy.
const (
	maxFiles = 1000
	maxFile  = 1 << 20 // bytes
)

const (
	scheme    = "schema://"
	extension = ".json"
)

// plain are the paths that are also URLs as they stand.
var plain = regexp.MustCompile(`^[A-Za-z0-9._/@-]+$`)

// file returns where the schema of a ref lies in the directory.
func file(ref string) string { return strings.TrimPrefix(ref, scheme) + extension }

// read returns the files of a directory by their refs. Links are followed
// inside of it. Whatever is not called .json, or is hidden, is none of ours.
func read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if dir == "" {
		return files, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if seen++; seen > maxFiles {
			return fmt.Errorf("%s: has more than %d files", dir, maxFiles)
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && path != "."
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || !strings.HasSuffix(path, extension):
			return nil
		case !plain.MatchString(path):
			return fmt.Errorf("%s: a schema's name has only letters, digits, dots, dashes, underscores and @", path)
		}
		text, err := readFile(root, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files[scheme+strings.TrimSuffix(path, extension)] = text
		return nil
	})
	return files, err
}

func readFile(root *os.Root, path string) ([]byte, error) {
	info, err := root.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("is not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return root.ReadFile(path)
}
