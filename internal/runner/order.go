package runner

import (
	"strconv"
	"strings"
	"time"
)

// An order is a Spec on its way, and the directories of earlier runs whose ends
// are known: texts, which have no NUL in them, each with one behind it. To say
// the lists one by one in JSON took 60 us of a run, and the numbers 15.

// maxOrder is more than the kernel lets a process have of texts.
const maxOrder = 16 << 20

// paths lists the single texts of a Spec, in the order in which they are said.
func (s *Spec) paths() []*string {
	return []*string{&s.Dir, &s.Cwd, &s.Stdin, &s.path, &s.Progress, &s.Answer}
}

// durations lists those of a Spec, likewise.
func (s *Spec) durations() []*time.Duration {
	return []*time.Duration{&s.Timeout, &s.IdleTimeout, &s.ExitTimeout, &s.Grace}
}

func newOrder(s Spec, known []string) []byte {
	all := make([]byte, 0, 2<<10)
	add := func(text string) { all = append(append(all, text...), 0) }
	count := func(n int64) { all = append(strconv.AppendInt(all, n, 10), 0) }
	for _, path := range s.paths() {
		add(*path)
	}
	for _, d := range s.durations() {
		count(int64(*d))
	}
	count(s.Deadline.UnixMicro()) // in nanoseconds, a year 2300 would not fit
	count(s.MaxOutput)
	add(strconv.FormatBool(s.Recorded))
	for _, texts := range [][]string{s.Argv, known} {
		count(int64(len(texts)))
		for _, text := range texts {
			add(text)
		}
	}
	for _, text := range s.Env {
		add(text)
	}
	return all
}

// readOrder returns the Spec, or one without a command of an order that makes no
// sense, and the directories of the runs whose ends are known.
func readOrder(text []byte) (s Spec, known []string) {
	r := orderReader{strings.Split(string(text), "\x00")}
	for _, path := range s.paths() {
		*path = r.next()
	}
	for _, d := range s.durations() {
		*d = time.Duration(r.number())
	}
	s.Deadline = time.UnixMicro(r.number()).UTC()
	s.MaxOutput = r.number()
	s.Recorded = r.next() == "true"
	argv := r.list()
	known = r.list()
	if len(r.left) == 0 {
		return s, nil
	}
	s.Argv, s.Env = argv, r.left[:len(r.left)-1]
	return s, known
}

// An orderReader has what is left of the texts; none where they make no sense.
// What is behind the last NUL is one too.
type orderReader struct{ left []string }

func (r *orderReader) next() (text string) {
	if len(r.left) > 0 {
		text, r.left = r.left[0], r.left[1:]
	}
	return text
}

func (r *orderReader) number() int64 {
	n, err := strconv.ParseInt(r.next(), 10, 64)
	if err != nil {
		r.left = nil
	}
	return n
}

func (r *orderReader) list() (texts []string) {
	n := r.number()
	if n < 0 || n >= int64(len(r.left)) {
		r.left = nil
		return nil
	}
	texts, r.left = r.left[:n:n], r.left[n:]
	return texts
}
