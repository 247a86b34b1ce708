package runner

import (
	"strconv"
	"strings"
	"time"
)

// A start request is an encoded Spec, followed by the directories of earlier runs with
// stored ends. It is a list of texts without NUL, each terminated by NUL. Encoding the
// lists in JSON took 60 us a run, and the numbers 15.

// maxStart exceeds the kernel's limit for a command and its environment.
const maxStart = 16 << 20

// paths lists the path and text fields of a Spec, in the order of encoding.
func (s *Spec) paths() []*string {
	return []*string{&s.Dir, &s.Cwd, &s.Stdin, &s.path, &s.Progress, &s.Answer, &s.Sandbox.Program, &s.Setup.path, &s.Broker, &s.Lease}
}

// durations lists the duration fields of a Spec, in the order of encoding.
func (s *Spec) durations() []*time.Duration {
	return []*time.Duration{&s.Timeout, &s.IdleTimeout, &s.ExitTimeout, &s.Grace}
}

func encodeStart(s Spec, known []string) []byte {
	all := make([]byte, 0, 2<<10)
	add := func(text string) { all = append(append(all, text...), 0) }
	count := func(n int64) { all = append(strconv.AppendInt(all, n, 10), 0) }
	for _, path := range s.paths() {
		add(*path)
	}
	for _, d := range s.durations() {
		count(int64(*d))
	}
	count(s.Deadline.UnixMicro()) // inGroup nanoseconds, the year 2300 would overflow
	count(s.MaxOutput)
	count(s.Sandbox.Limits.Memory)
	count(s.Sandbox.Limits.Processes)
	add(strconv.FormatBool(s.Recorded))
	add(strconv.FormatBool(s.CwdResolved))
	add(strconv.FormatBool(s.Sandbox.ByName))
	for _, texts := range [][]string{s.Argv, s.Sandbox.Options, s.Sandbox.Network, s.Setup.Argv, s.Setup.Options, s.Setup.Network, known} {
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

// decodeStart returns the Spec and the directories of runs with stored ends. For an invalid
// request, the Spec has no command.
func decodeStart(text []byte) (s Spec, known []string) {
	r := startReader{strings.Split(string(text), "\x00")}
	for _, path := range s.paths() {
		*path = r.next()
	}
	for _, d := range s.durations() {
		*d = time.Duration(r.number())
	}
	s.Deadline = time.UnixMicro(r.number()).UTC()
	s.MaxOutput = r.number()
	s.Sandbox.Limits.Memory, s.Sandbox.Limits.Processes = r.number(), r.number()
	s.Recorded = r.next() == "true"
	s.CwdResolved = r.next() == "true"
	byName := r.next() == "true"
	argv, options, network := r.list(), r.optional(), r.optional()
	s.Setup.Argv, s.Setup.Options, s.Setup.Network = r.optional(), r.optional(), r.optional()
	known = r.list()
	if len(r.left) == 0 {
		return s, nil
	}
	s.Argv, s.Env = argv, r.left[:len(r.left)-1]
	s.Sandbox.ByName, s.Sandbox.Options, s.Sandbox.Network = byName, options, network
	return s, known
}

// A startReader holds the texts that aren't decoded yet; none after an error. The text
// after the last NUL counts too.
type startReader struct{ left []string }

func (r *startReader) next() (text string) {
	if len(r.left) > 0 {
		text, r.left = r.left[0], r.left[1:]
	}
	return text
}

func (r *startReader) number() int64 {
	n, err := strconv.ParseInt(r.next(), 10, 64)
	if err != nil {
		r.left = nil
	}
	return n
}

// optional reads a list that is nil if it has nothing.
func (r *startReader) optional() []string {
	if texts := r.list(); len(texts) > 0 {
		return texts
	}
	return nil
}

func (r *startReader) list() (texts []string) {
	n := r.number()
	if n < 0 || n >= int64(len(r.left)) {
		r.left = nil
		return nil
	}
	texts, r.left = r.left[:n:n], r.left[n:]
	return texts
}
