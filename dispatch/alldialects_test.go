package dispatch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Every CLowl or CAP line that asks for a task with a readable id ends in exactly one result
// of that id, and its sender is told exactly one end. Every line that no dialect can
// read ends in exactly one dead letter.
func TestEveryMessageEndsInOneResultOrOneDeadLetter(t *testing.T) {
	w := &messageWriter{Rand: rand.New(rand.NewPCG(seedOf(t), 1))}
	e := newEngine(t)
	e.opts.Tail.MaxLine, e.most = limit, 3
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if e.plays[t.Agent] == nil {
			t.Agent = "nobody"
		}
		return refusing(t, now)
	}
	e.secrets = map[string]string{"bob": "sesame"}
	e.dialects = map[string]envelope.Dialect{"clowl": envelope.CLowl, "cap": envelope.CAP}
	e.supports = map[string][]string{"quick": {"work"}, "clowl": {"work"}, "cap": {"work"}}
	e.denied = map[string]string{"chief>cap": "is not allowed"}
	e.plays["clowl"], e.plays["cap"] = quick, quick
	end := make(chan struct{})
	e.plays["chief"] = func(ctx context.Context, j task.Job) task.Outcome {
		select {
		case <-end:
			return quick(ctx, j)
		case <-ctx.Done():
			return slow(ctx, j)
		}
	}
	e.start()
	sizes := map[string]int64{}
	for range *everyLines {
		line := w.next()
		if !line.fresh {
			e.look() // so that the line that has its name first comes first
		}
		line.location = e.addInPieces(w.Rand, sizes, line.text)
		w.lines = append(w.lines, line)
	}
	e.look()
	close(end)
	e.must(e.Idle(t.Context()))

	e.holdResults(w.lines)
	e.holdDeadLetters(w.lines)
	e.holdEnds(w.lines)
}

// holdResults wants one result for each id that a line asks for, and no other
// result but those of the members of a request for several.
func (e *engine) holdResults(lines []randomLine) {
	e.t.Helper()
	ids := map[string]bool{}
	for _, line := range lines {
		for _, id := range line.may {
			ids[id] = true
		}
		for _, r := range line.requests {
			if ids[r.id] = true; strings.Contains(e.result(r.id), fmt.Sprintf(`"task_id": %q`, r.id)) {
				continue
			}
			e.t.Errorf("the result of %s is %.200q; want one of that task, for %.300s", r.id, e.result(r.id), line.text)
		}
	}
	files, err := os.ReadDir(e.parts.Box.ResultsDir())
	e.must(err)
	for _, file := range files {
		if id := strings.TrimSuffix(file.Name(), ".json"); !ids[id] && e.row(id).Parent == 0 {
			e.t.Errorf("there is a result %s, of no line's task", file.Name())
		}
	}
}

// holdDeadLetters wants one dead letter for each line that cannot be read, and none for one
// that can.
func (e *engine) holdDeadLetters(lines []randomLine) {
	e.t.Helper()
	letters := map[location]int{}
	for _, l := range e.deadLetters() {
		letters[location{l.File, l.Offset}]++
	}
	for _, line := range lines {
		least, most := 0, 0
		switch {
		case line.unreadable && line.malformed:
			least, most = 1, 2 // that of a message, and that of what stands beside it
		case line.unreadable:
			least, most = 1, 1
		case line.malformed:
			most = 1
		}
		if n := letters[line.location]; n < least || n > most {
			e.t.Errorf("%v has %d dead letters; want %d to %d: %.300s", line.location, n, least, most, line.text)
		}
		delete(letters, line.location)
	}
	for at, n := range letters {
		e.t.Errorf("%v has %d dead letters, and no line begins there", at, n)
	}
}

// holdEnds wants, in the inbox of each participant that is no agent here, one end for each
// message that asks for a task. Further lines about the same task may have one answer each.
func (e *engine) holdEnds(lines []randomLine) {
	e.t.Helper()
	type asked struct{ from, name string }
	wanted, texts := map[asked]map[string]bool{}, map[asked]map[string]bool{}
	for _, line := range lines {
		for _, r := range line.requests {
			key := asked{r.from, r.name}
			if wanted[key] == nil {
				wanted[key] = map[string]bool{}
			}
			wanted[key][r.content] = true
		}
		for _, about := range line.about {
			key := asked{about.from, about.name}
			if texts[key] == nil {
				texts[key] = map[string]bool{}
			}
			texts[key][line.text] = true
		}
	}
	for key, contents := range wanted {
		if !slices.Contains(outsiders, key.from) {
			continue
		}
		n := e.ends(key.from, key.name, lines)
		if most := max(len(texts[key]), len(contents)); n < len(contents) || n > most {
			e.t.Errorf("%s is told %d ends of %.100q; want %d to %d; its inbox:\n%s", key.from, n, key.name, len(contents), most, e.about(key.from, key.name))
		}
	}
}

// ends counts what ends a request in an inbox: DONE, ERR, or the ACK of a CNCL; in CAP an
// error_response, or the answer of an agent.
func (e *engine) ends(owner, name string, lines []randomLine) (n int) {
	cancels := map[string]bool{}
	for _, line := range lines {
		if line.cancels == name {
			cancels[line.mid] = true
		}
	}
	for _, l := range e.post(owner) {
		switch {
		case l.PID == name && (l.P == "DONE" || l.P == "ERR"),
			cancels[l.PID] && l.P == "ACK" && l.Body.D.Status == "cancelled",
			l.Task == name && l.Type == "error_response",
			l.Task == name && l.Type == "message" && strings.Contains(l.Text, "done, revision"):
			n++
		}
	}
	return n
}

// about returns the lines of an inbox that have a name in them.
func (e *engine) about(owner, name string) (found string) {
	for _, line := range e.letters(owner) {
		if strings.Contains(line, name) {
			found += line + "\n"
		}
	}
	return found
}

// safeID is the task id of a name: the name, or a digest of it where no file can have that name.
func safeID(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" && !strings.HasPrefix(name, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "h-" + hex.EncodeToString(sum[:16])
}
