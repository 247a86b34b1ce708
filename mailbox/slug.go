package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxReadable keeps a socket path with a slug within its 107 bytes.
const maxReadable = 40

// Slug returns a name for a mailbox in places outside it: readable, one path element of at
// most 49 bytes, and different for every root.
func Slug(root string) (string, error) {
	path, err := Resolve(root)
	if err != nil {
		return "", fmt.Errorf("name mailbox %s: %w", root, err)
	}
	readable := strings.Trim(strings.Map(plain, path), "-")
	if len(readable) > maxReadable {
		readable = strings.TrimLeft(readable[len(readable)-maxReadable:], "-") // the end is the most specific part
	}
	sum := sha256.Sum256([]byte(path))
	return strings.TrimPrefix(readable+"-"+hex.EncodeToString(sum[:4]), "-"), nil
}

// plain maps all characters that aren't plain in a file name to "-".
func plain(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
		return r
	}
	return '-'
}

// DefaultStateDir returns the default directory for the private half of the mailbox at
// root: $XDG_STATE_HOME/mailboxd/<slug>. XDG_STATE_HOME is ~/.local/state if it isn't an
// absolute path.
func DefaultStateDir(root string) (string, error) {
	slug, err := Slug(root)
	if err != nil {
		return "", err
	}
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find state directory: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "mailboxd", slug), nil
}

// Resolve returns the absolute path without symlinks. A missing part can't be one, so the last parts
// of the path may be missing.
func Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if !errors.Is(err, fs.ErrNotExist) || abs == "/" {
		return resolved, err
	}
	parent, err := Resolve(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}
