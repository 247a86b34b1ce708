package runner

import (
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"time"
)

// protocol is the version of what a keeper and its clients say to each other. A
// client starts runs only with a keeper of its own build, and awaits them with
// any: so every later version has to understand a version 1 Await and Stop, and
// answer them with the reports of version 1. Whatever else it may add is ignored
// by those who do not know it.
const protocol = 1

// A hello is the first thing a keeper says to whoever connects.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	PID      int    `json:"pid"`
}

// A demand is what a client says. Exactly one member is set.
type demand struct {
	Start *order  `json:"start,omitempty"` // start a run and tell of it
	Await exact   `json:"await,omitempty"` // tell of the run in this directory
	Stop  *string `json:"stop,omitempty"`  // end the run last asked for, for this reason
	Leave bool    `json:"leave,omitempty"` // leave, if nobody else needs you
}

// A report is what a keeper says. Exactly one member is set, but for what is
// beside Exit.
type report struct {
	Started *Process `json:"started,omitempty"`
	Refused *refusal `json:"refused,omitempty"` // nothing was started
	Exit    *Exit    `json:"exit,omitempty"`
	Error   string   `json:"error,omitempty"`   // a record of the run could not be written
	Unknown bool     `json:"unknown,omitempty"` // there is no such run; or the keeper does not leave

	Unwritten bool `json:"unwritten,omitempty"` // beside Exit: nothing says so but the keeper, until a Start names the run as known
}

// A refusal is a SpawnError on its way.
type refusal struct {
	Command exact         `json:"command"`
	Text    string        `json:"text"`
	Number  syscall.Errno `json:"errno,omitempty"`
}

func refuse(e *SpawnError) *refusal {
	r := &refusal{Command: exact(e.Command), Text: e.Err.Error()}
	r.Number, _ = errors.AsType[syscall.Errno](e.Err)
	return r
}

func (r *refusal) spawnError() *SpawnError {
	err := errors.New(r.Text)
	if r.Number != 0 {
		err = &distant{r.Text, r.Number}
	}
	return &SpawnError{Command: string(r.Command), Err: err}
}

// A distant error happened in another process.
type distant struct {
	text  string
	cause syscall.Errno
}

func (e *distant) Error() string { return e.text }

// Unwrap returns the cause, so that errors.Is knows it here as it did there.
func (e *distant) Unwrap() error { return e.cause }

// An order is a Spec on its way. Its texts, which have no NUL in them, follow the
// line as they are: to say them one by one in JSON took 60 us of a run.
type order struct {
	Timeout     time.Duration `json:",omitzero"`
	IdleTimeout time.Duration `json:",omitzero"`
	ExitTimeout time.Duration `json:",omitzero"`
	Deadline    time.Time     `json:",omitzero"`
	MaxOutput   int64         `json:",omitzero"`
	Grace       time.Duration `json:",omitzero"`
	Recorded    bool          `json:",omitzero"`

	Args  int    // how many of the texts are Argv
	Known int    `json:",omitzero"` // how many are the directories of earlier runs, whose ends are known
	Bytes int    // the length of texts
	texts []byte // each with a NUL behind it: paths, Argv, those directories, Env
}

// maxTexts is more than the kernel lets a process have of them.
const maxTexts = 16 << 20

// paths lists the single texts of a Spec, in the order in which they are said.
func (s *Spec) paths() []*string {
	return []*string{&s.Dir, &s.Cwd, &s.Stdin, &s.path, &s.Progress, &s.Answer}
}

func newOrder(s Spec, known []string) *order {
	all := make([]byte, 0, 2<<10)
	add := func(text string) { all = append(append(all, text...), 0) }
	for _, path := range s.paths() {
		add(*path)
	}
	for _, texts := range [][]string{s.Argv, known, s.Env} {
		for _, text := range texts {
			add(text)
		}
	}
	return &order{
		Args: len(s.Argv), Known: len(known), Bytes: len(all), texts: all, Recorded: s.Recorded,
		Timeout: s.Timeout, IdleTimeout: s.IdleTimeout, ExitTimeout: s.ExitTimeout,
		Deadline: s.Deadline, MaxOutput: s.MaxOutput, Grace: s.Grace,
	}
}

// spec returns the Spec, or one without a command of an order that makes no
// sense, and the directories of the runs whose ends are known.
func (o *order) spec() (s Spec, known []string) {
	s = Spec{
		Timeout: o.Timeout, IdleTimeout: o.IdleTimeout, ExitTimeout: o.ExitTimeout,
		Deadline: o.Deadline, MaxOutput: o.MaxOutput, Grace: o.Grace, Recorded: o.Recorded,
	}
	texts := strings.Split(string(o.texts), "\x00")
	texts = texts[:len(texts)-1]
	paths := s.paths()
	if o.Args < 0 || o.Known < 0 || len(texts) < len(paths)+o.Args+o.Known {
		return s, nil
	}
	for i, path := range paths {
		*path = texts[i]
	}
	texts = texts[len(paths):]
	s.Argv, texts = texts[:o.Args], texts[o.Args:]
	known, s.Env = texts[:o.Known], texts[o.Known:]
	return s, known
}

// exact is text of which each byte counts, valid UTF-8 or not: a JSON string
// would change the bytes that are not.
type exact string

// MarshalJSON writes the bytes in base64.
func (e exact) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(e)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (e *exact) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	*e = exact(b)
	return err
}
