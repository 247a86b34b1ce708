package torture_test

import (
	"fmt"
	"sync"

	"mailboxd/envelope"
)

// A fate is how a task may end.
type fate int

const (
	run      fate = iota // an agent has its latest version, at most once
	refused              // status rejected, and no agent ran
	answered             // by a result that was there before, which stays as it is
	fetched              // by a person, for an agent that is not run
)

// A promise is what we may expect of one task id, since a line of it was
// written whole.
type promise struct {
	id       string
	part     string // the agent that was asked
	version  int    // the latest that was written
	size     int    // of what fills its payload, in bytes
	fate     fate
	callback string // the queue that wants the result, or ""
	asks     string // when a person has to agree, as approval_required says it, or ""
	there    string // the result that was there before
	foreign  bool   // it was asked for in CLowl, and the requester is told in it
	clutch   bool   // it was asked for in Clutch, likewise
	routed   bool   // it names a group, of which its agent is the only member, so that routing chooses
	key      string // the idempotency key of the request: the id of the first task with it; "" for none
}

// A book holds all promises.
type book struct {
	mu       sync.Mutex // guards what follows
	promises map[string]promise
	letters  []string          // words that must be in rejected/
	strays   map[string]string // results that belong to nobody, by path
	results  map[string]bool   // ids with a result, as the reader saw it
	said     map[decision]bool // what a person has said, or was about to
	wrapped  map[string]bool   // ids whose bubblewrap was killed, or was about to be
	wraps    int               // SIGKILLs of bubblewrap
	gates    int               // SIGKILLs of gates
	ended    map[string]bool   // ids that a person has ended, or was about to, since they had run before a ledger was lost
}

// A decision is one word of a person about one task.
type decision struct {
	id    string
	stage envelope.Approval
	word  string
}

func newBook() *book {
	return &book{promises: map[string]promise{}, strays: map[string]string{}, results: map[string]bool{}, said: map[decision]bool{}, ended: map[string]bool{}, wrapped: map[string]bool{}}
}

func (b *book) account(id envelope.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[string(id)] = true
}

// sandboxKilled notes that a bubblewrap of a task, or a gate, is killed.
func (b *book) sandboxKilled(id string, wraps, gates int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrapped[id] = true
	b.wraps += wraps
	b.gates += gates
}

func (b *book) promise(p promise) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.promises[p.id] = p
}

func (b *book) decide(id envelope.ID, stage envelope.Approval, word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said[decision{string(id), stage, word}] = true
}

// unshown reports whether nobody may see a good result of a task yet.
func (b *book) unshown(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	asks := b.promises[id].asks
	return (asks == "post" || asks == "both") && !b.said[decision{id, envelope.ApprovalPost, "agreed"}]
}

func (b *book) letter(word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters = append(b.letters, word)
}

func (b *book) stray(path, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strays[path] = text
}

func (b *book) seen(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[id] = true
}

// sent is the highest number among the ids of a writer.
func (b *book) sent(name string) (highest int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.promises {
		var n int
		if _, err := fmt.Sscanf(id, name+"-%d", &n); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// backlog is how many tasks have had no result yet.
func (b *book) backlog() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.promises) - len(b.results)
}
