package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A tamed writer shows what it is given on a terminal without letting it
// command that terminal. A carriage return is the end of a line, so that
// nothing is written over what stands there.
type tamed struct {
	to   io.Writer
	rest []byte // the beginning of a character whose end is still to come
}

func (t *tamed) Write(text []byte) (int, error) {
	all := append(t.rest, text...)
	end := len(all) - incomplete(all)
	t.rest = append([]byte(nil), all[end:]...)
	_, err := io.WriteString(t.to, plain(unreturned.Replace(string(all[:end]))))
	return len(text), err
}

var unreturned = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// incomplete returns how many bytes at the end of a text may be the beginning
// of a character.
func incomplete(text []byte) int {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// openRegular opens a file for reading that must be one, not a link, and not
// something that a reader would have to wait for.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: is not a regular file", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
