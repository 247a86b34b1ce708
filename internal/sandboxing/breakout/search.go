package breakout

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A secret that attempts look for is secretStart and secretRandom letters. They get its digest alone, so that they
// don't find what they look for in themselves.
const (
	secretStart  = "breakout-secret-"
	secretRandom = 26
)

// NewSecret makes a secret, as tool servers have one.
func NewSecret() string { return secretStart + rand.Text() }

// DigestOf returns what attempts get of a secret.
func DigestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// searches lists the attempts that look for a secret that other processes have, such as that of a tool server.
func searches() []Attempt {
	return []Attempt{
		{"find a secret in an environment", searchProcesses("environ")},
		{"find a secret in arguments", searchProcesses("cmdline")},
		{"find a secret in an open file", searchOpenFiles},
		{"find a secret in memory", searchMemory},
		{"find a secret in a directory of mailboxd", searchDirs},
	}
}

// Search makes the attempts that look for a secret, and no others.
func Search(t Targets) []Finding { return attempt(t, searches()) }

// errNotFound says that nothing that could be read has the secret.
var errNotFound = errors.New("what can be read does not have it")

// hasSecret reports whether a text has the secret.
func (t Targets) hasSecret(text []byte) bool {
	for {
		at := bytes.Index(text, []byte(secretStart))
		if at < 0 {
			return false
		}
		text = text[at:]
		const size = len(secretStart) + secretRandom
		if len(text) >= size && DigestOf(string(text[:size])) == t.Secret {
			return true
		}
		text = text[len(secretStart):]
	}
}

// maxSearched limits what is read of one file, and of one part of memory.
const maxSearched = 64 << 20

// find returns nil if a reader has the secret.
func (t Targets) find(r io.Reader) error {
	const tail = len(secretStart) + secretRandom // of a part, since the secret may go on in the next one
	buf, kept := make([]byte, 1<<20), 0
	for left := maxSearched; left > 0; {
		n, err := io.ReadFull(r, buf[kept:])
		if t.hasSecret(buf[:kept+n]) {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errNotFound
		case err != nil:
			return err
		}
		left -= n
		kept = copy(buf, buf[len(buf)-tail:])
	}
	return errNotFound
}

// findIn returns nil if a regular file, or one of /proc, has the secret.
func (t Targets) findIn(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errAbsent
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.find(f)
}

// inProcesses makes an attempt at every process that is visible, the target and newer ones first. It returns nil
// after the first success.
func (t Targets) inProcesses(try func(dir string) error) error {
	if t.Secret == "" {
		return errAbsent
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	var dirs []string
	for _, pid := range append([]int{t.PID}, all...) {
		dirs = append(dirs, "/proc/"+strconv.Itoa(pid))
	}
	return each(dirs, try)
}

func searchProcesses(name string) func(Targets) error {
	return func(t Targets) error {
		return t.inProcesses(func(dir string) error { return t.findIn(dir + "/" + name) })
	}
}

func searchOpenFiles(t Targets) error {
	return t.inProcesses(func(dir string) error {
		entries, err := os.ReadDir(dir + "/fd")
		if err != nil {
			return err
		}
		var files []string
		for _, e := range entries {
			files = append(files, dir+"/fd/"+e.Name())
		}
		return each(files, t.findIn)
	})
}

// searchMemory reads the memory of the other processes that they can write: their environment is there, too.
func searchMemory(t Targets) error {
	own := fmt.Sprintf("/proc/%d", os.Getpid())
	return t.inProcesses(func(dir string) error {
		if dir == own {
			return errAbsent // it has what it read
		}
		memory, err := os.Open(dir + "/mem")
		if err != nil {
			return err
		}
		defer memory.Close()
		maps, err := os.ReadFile(dir + "/maps")
		if err != nil {
			return err
		}
		failed := errAbsent
		for line := range strings.Lines(string(maps)) {
			var from, to int64
			var mode string
			if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") || to-from > maxSearched {
				continue
			}
			if failed = t.find(io.NewSectionReader(memory, from, to-from)); failed == nil {
				return nil
			}
		}
		return failed
	})
}

// searchDirs reads the files below the directories of mailboxd.
func searchDirs(t Targets) error {
	if t.Secret == "" {
		return errAbsent
	}
	return each(slices.Concat(t.Lists, t.Dirs), func(dir string) error {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
		var files []string
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files = append(files, path)
			}
			return nil // closed to this process
		})
		if err != nil {
			return err
		}
		return each(files, t.findIn)
	})
}
