// Package host says what the machine grants us and how much of it is left. It
// only looks.
package host

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Quota is how much of something this user may have, and has.
type Quota struct {
	Used int // by the processes that can be seen from here
	Max  int
}

// Inotify returns the user's watches, and instances, of which a daemon needs a
// few and one.
func Inotify() (watches, instances Quota, err error) {
	if watches.Max, err = number("/proc/sys/fs/inotify/max_user_watches"); err == nil {
		instances.Max, err = number("/proc/sys/fs/inotify/max_user_instances")
	}
	if err != nil {
		return watches, instances, fmt.Errorf("read inotify limits: %w", err)
	}
	watches.Used, instances.Used = used("/proc/[0-9]*/fd/*") // those of others cannot be listed, nor do they count
	return watches, instances, nil
}

// used counts the watches and instances among the descriptors of a pattern.
func used(descriptors string) (watches, instances int) {
	links, _ := filepath.Glob(descriptors) // the pattern is good
	for _, link := range links {
		if what, err := os.Readlink(link); err != nil || what != "anon_inode:inotify" {
			continue // closed by now, or another kind
		}
		instances++
		watches += watchesOf(strings.Replace(link, "/fd/", "/fdinfo/", 1))
	}
	return watches, instances
}

func number(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// watchesOf counts the watches of an inotify descriptor; none when it is gone.
func watchesOf(info string) (n int) {
	file, err := os.Open(info)
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "inotify wd:") {
			n++
		}
	}
	return n
}
