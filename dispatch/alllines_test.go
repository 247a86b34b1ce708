package dispatch_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

var (
	everyLines = flag.Int("every-lines", 80, "how many random lines TestEveryLineEndsInOneResultOrOneDeadLetter writes")
	everySeed  = flag.Uint64("every-seed", 1, "its seed")
)

// limit is the longest line that is taken.
const limit = 1 << 20

// A scrawl is a random line, and what must come of it.
type scrawl struct {
	text string
	ids  []string // the readable, safe ids in it: each ends in a result
	dead bool     // it ends in a dead letter, and in nothing else unless it has ids
}

// scribe writes random AINL lines.
type scribe struct {
	*rand.Rand
	lines []scrawl
}

// write makes one more line.
func (s *scribe) write() scrawl {
	if len(s.lines) > 0 && s.IntN(10) == 0 {
		return s.lines[s.IntN(len(s.lines))] // once more
	}
	id := fmt.Sprintf("t%d", len(s.lines))
	if s.IntN(10) == 0 {
		id = fmt.Sprintf("t%d", s.IntN(len(s.lines)+1)) // other content for an id
	}
	text := s.request(`"` + id + `"`)
	fits := len(text) <= limit
	switch s.IntN(12) {
	case 0: // torn
		cut := 1 + s.IntN(len(text)-1)
		known := cut >= strings.Index(text, `"`+id+`"`)+len(id)+2
		return whole(text[:cut], cut <= limit && known, id, true)
	case 1:
		return whole(text+" and more", len(text)+9 <= limit, id, true)
	case 2:
		return whole(s.request(`{}`), false, id, true)
	case 3:
		return whole(s.request(`"../`+id+`"`), false, id, true)
	case 4:
		return whole("["+text+"]", false, id, true)
	case 5:
		return whole(strings.Replace(text, `"refs":[]`, `"refs":NaN`, 1), fits, id, true)
	case 6: // two writers
		other := s.request(`"` + id + `b"`)
		if len(text)+len(other) > limit {
			return scrawl{text: text + other, dead: true}
		}
		return scrawl{text: text + other, ids: []string{id, id + "b"}}
	case 7:
		number := fmt.Sprint(1_000_000 + len(s.lines))
		text := s.request(number)
		return whole(text, true, number, len(text) > limit)
	}
	return whole(text, true, id, !fits)
}

func whole(text string, known bool, id string, dead bool) scrawl {
	if !known {
		return scrawl{text: text, dead: true}
	}
	return scrawl{text: text, ids: []string{id}, dead: dead}
}

// request is a request with this task_id, which comes first, or late as AINL's
// sorted keys have it; of any size to 3 MB.
func (s *scribe) request(id string) string {
	size := s.IntN(500)
	switch s.IntN(20) {
	case 0:
		size = s.IntN(3 << 20)
	case 1:
		size = limit - 600 + s.IntN(800)
	case 2, 3, 4, 5:
		size = s.IntN(100_000)
	}
	agent := []string{"quick", "quick", "nobody"}[s.IntN(3)]
	members := []string{
		`"description":"{a task}"`, `"input":{"payload":{"task_id":"inner","x":"` + strings.Repeat("é", size/2) + `"},"refs":[]}`, `"requester_id":"tester"`,
		`"schema_version":"1.0"`, `"target_agent":"` + agent + `"`, `"target_role":"executor"`, `"task_id":` + id, `"task_type":"work"`,
	}
	if s.IntN(2) == 0 {
		members[0], members[6] = members[6], members[0]
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Every readable, safe id ends in exactly one result, and every line without one
// in exactly one dead letter, whatever is written, in whatever pieces, and however
// often the daemon starts again meanwhile.
func TestEveryLineEndsInOneResultOrOneDeadLetter(t *testing.T) {
	s := &scribe{Rand: rand.New(rand.NewPCG(seedOf(t), 0))}
	e := newEngine(t)
	e.judge, e.opts.Tail.MaxLine = refusing, limit
	e.start()
	dead, ids, sizes := map[location]bool{}, map[string]bool{}, map[string]int64{}
	for range *everyLines {
		line := s.write()
		s.lines = append(s.lines, line)
		if at := e.addInPieces(s.Rand, sizes, line.text); line.dead {
			dead[at] = len(line.ids) == 0 // it has to be there, with a result beside it or not
		}
		for _, id := range line.ids {
			ids[id] = true
		}
	}
	e.look()
	e.must(e.Idle(t.Context()))

	for id := range ids {
		var r struct {
			TaskID string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(e.result(id)), &r); err != nil || r.TaskID != id {
			t.Errorf("the result of %s is %.200q, %v; want one of that task", id, e.result(id), err)
		}
	}
	files, err := os.ReadDir(e.parts.Box.ResultsDir())
	e.must(err)
	for _, file := range files {
		if id := strings.TrimSuffix(file.Name(), ".json"); !ids[id] {
			t.Errorf("there is a result %s, of no line's task", file.Name())
		}
	}
	letters := map[location]int{}
	for _, l := range e.deadLetters() {
		letters[location{l.File, l.Offset}]++
	}
	for at := range dead {
		if letters[at] != 1 {
			t.Errorf("the line at %d of %s has %d dead letters; want 1", at.offset, at.file, letters[at])
		}
		delete(letters, at)
	}
	for at, n := range letters {
		t.Errorf("the line at %d of %s has %d dead letters; want none", at.offset, at.file, n)
	}
}

// seedOf returns the seed of a test, and logs how to repeat it.
func seedOf(t *testing.T) uint64 {
	t.Logf("repeat with -every-seed=%d -every-lines=%d", *everySeed, *everyLines)
	return *everySeed
}

// addInPieces appends a line to one of three files, in two pieces, and sometimes has the engine look,
// or start again, between them. It returns where the line begins. The sizes are those of the files.
func (e *engine) addInPieces(r *rand.Rand, sizes map[string]int64, line string) location {
	e.t.Helper()
	name := fmt.Sprintf("tasks/%d.jsonl", r.IntN(3))
	at := location{name, sizes[name]}
	text := line + []string{"\n", "\r\n"}[r.IntN(2)]
	sizes[name] += int64(len(text))
	half := r.IntN(len(text))
	e.addTo(name, text[:half])
	if r.IntN(3) == 0 {
		e.look()
	}
	if r.IntN(20) == 0 {
		e.restart()
	}
	e.addTo(name, text[half:])
	return at
}

func (e *engine) addTo(name, text string) {
	e.t.Helper()
	file, err := os.OpenFile(filepath.Join(e.parts.Box.Path(), name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	e.must(err)
	_, err = file.WriteString(text)
	e.must(err)
	e.must(file.Close())
}

type deadLine struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

// deadLetters reads what lies in rejected/.
func (e *engine) deadLetters() (all []deadLine) {
	e.t.Helper()
	names, err := filepath.Glob(filepath.Join(e.parts.Box.Path(), "rejected", "*.jsonl"))
	e.must(err)
	for _, name := range slices.Sorted(slices.Values(names)) {
		file, err := os.Open(name)
		e.must(err)
		defer file.Close()
		r := bufio.NewScanner(file)
		r.Buffer(nil, 64<<20)
		for r.Scan() {
			var l deadLine
			e.must(json.Unmarshal(r.Bytes(), &l))
			all = append(all, l)
		}
		e.must(r.Err())
	}
	return all
}
