package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// A writer appends to one task file, as a program of somebody else would. All
// versions of an id go into one file in order. A writer of its own file may
// write a line in pieces; one that shares it writes each line at once.
type writer struct {
	site    *site
	book    *book
	chance  *rand.Rand
	name    string   // the beginning of its ids
	into    string   // the name of its file, without .jsonl
	own     bool     // nobody else writes to the file
	parts   []string // the agents it asks; nil: all
	asks    bool     // some of its tasks need a person, to agree or to log in
	rotates bool     // it renames the file now and then, and goes on in a new one
	count   int
	rotated int
	sent    []promise // what may be sent again
}

// tooMany is the backlog at which writers wait.
const tooMany = 100

// write writes until ctx ends. The line that is being written is finished.
func (w *writer) write(ctx context.Context) error {
	for {
		pause := time.NewTimer(time.Duration(w.chance.IntN(30)+5) * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		if w.book.backlog() >= tooMany {
			continue
		}
		if err := w.act(); err != nil {
			return err
		}
	}
}

// act does one of the things that writers do.
func (w *writer) act() error {
	dice := w.chance.IntN(100)
	switch {
	case dice < 6:
		return w.repeat()
	case dice < 14:
		return w.revise()
	case dice < 17:
		return w.glue()
	case dice < 20:
		return w.nonsense()
	case dice < 22:
		return w.answered()
	case dice < 24:
		return w.stray()
	case dice < 26:
		return w.tooLong()
	case dice < 28:
		return w.unknown()
	case dice < 30:
		return w.rotate()
	}
	return w.plain()
}

func (w *writer) plain() error {
	p := w.next(w.part())
	if w.chance.IntN(10) == 0 {
		p.callback = "done"
	}
	p.size = w.size()
	if w.chance.IntN(8) == 0 {
		p.foreign, p.callback = true, ""
		if w.parts == nil && w.chance.IntN(3) == 0 {
			p.part, p.size = "speak", 0
		}
		return w.send(p, "") // once: a request in CLowl has no revisions
	}
	if w.chance.IntN(8) == 0 {
		p.clutch, p.callback, p.routed = true, "", w.chance.IntN(2) == 0
		return w.command(p)
	}
	if w.asks && w.chance.IntN(8) == 0 {
		p.part, p.fate = "pull", fetched
		return w.send(p, "") // once: anyone who answers says which version they have seen
	}
	if w.asks && w.chance.IntN(8) == 0 {
		p.asks = []string{"pre", "post", "both"}[w.chance.IntN(3)]
		return w.send(p, "") // once: what a person has said is about one version
	}
	w.sent = append(w.sent, p)
	return w.send(p, "")
}

// command sends a request in Clutch once, or several times under other ids with one idempotency
// key (CLUTCH-52). When ledgers are lost, nobody knows a key any more.
func (w *writer) command(p promise) error {
	if p.part == "login" || isSandboxed(p.part) || w.site.damage != nil || w.chance.IntN(2) == 0 {
		return w.send(p, "")
	}
	first := p
	first.key = p.id
	lines := first
	for range 1 + w.chance.IntN(3) {
		if err := w.send(lines, ""); err != nil {
			return err
		}
		next := w.next(p.part)
		next.clutch, next.routed, next.size, next.key = true, p.routed, p.size, first.key
		lines = next
	}
	return w.send(lines, "")
}

// part chooses an agent; most are fast.
func (w *writer) part() string {
	if w.parts != nil {
		return w.parts[w.chance.IntN(len(w.parts))]
	}
	if w.asks && w.chance.IntN(20) == 0 {
		return "login"
	}
	parts := []string{"fast", "fast", "fast", "fast", "fast", "fast", "file", "file", "fork", "crash", "again", "slow"}
	for _, b := range w.site.binds {
		if b.sandboxed {
			parts = append(parts, b.part)
		}
	}
	return parts[w.chance.IntN(len(parts))]
}

// size is the size of a payload: mostly small.
func (w *writer) size() int {
	if w.chance.IntN(10) == 0 {
		return 20_000 + w.chance.IntN(80_000)
	}
	return w.chance.IntN(500)
}

func (w *writer) next(part string) promise {
	w.count++
	return promise{id: fmt.Sprintf("%s-%d", w.name, w.count), part: part, version: 1}
}

// repeat sends the latest version of a task once more.
func (w *writer) repeat() error {
	if len(w.sent) == 0 {
		return nil
	}
	p := w.sent[w.chance.IntN(len(w.sent))]
	return w.append(envelopeOf(p) + "\n")
}

// revise sends a task with other content. The order of lines is that of the
// file, so a writer that changes its file does not.
func (w *writer) revise() error {
	if len(w.sent) == 0 || w.rotates {
		return nil
	}
	return w.change(w.chance.IntN(len(w.sent)))
}

// change sends one of its tasks with other content.
func (w *writer) change(at int) error {
	w.sent[at].version++
	return w.send(w.sent[at], "")
}

// glue writes a line behind a half one of a writer that died.
func (w *writer) glue() error {
	lost := envelopeOf(promise{id: "torn-" + w.name, part: "fast", version: w.count})
	return w.send(w.next("fast"), lost[:1+w.chance.IntN(len(lost)-1)])
}

// nonsense writes what cannot become a task.
func (w *writer) nonsense() error {
	w.count++
	word := fmt.Sprintf("nonsense-%s-%d-", w.name, w.count)
	w.book.letter(word)
	lines := []string{word, `{"` + word + `":`, `{"schema_version":"1.0","task_id":"../` + word + `"}`, `["` + word + `"]`, "\xff\xfe" + word}
	return w.append(lines[w.chance.IntN(len(lines)-1)] + "\n")
}

// answered puts a result by hand, and then sends its task.
func (w *writer) answered() error {
	p := w.next("fast")
	p.fate = answered
	p.there = fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"agent_id":"somebody","status":"ok","confidence":null,"output":{"summary":"by hand","actions":[]},"artifact_refs":[],"cost_used":{"tokens":0,"usd_cents":0},"time_used":{"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","wall_time_ms":0},"needs_review":{"required":false,"reason":""},"error":{"kind":"","message":""},"provenance":{"ainl_graph_checksum":"","ainl_program_id":"","runtime_version":"","recording_uri":""}}`, p.id)
	if err := putWhole(w.site.path("by-hand-"+p.id), w.site.result(p.id), p.there); err != nil {
		return err
	}
	return w.send(p, "")
}

// stray puts a file into results/ that belongs to no task.
func (w *writer) stray() error {
	w.count++
	path, text := w.site.result(fmt.Sprintf("stray-%s-%d", w.name, w.count)), "not a result"
	w.book.stray(path, text)
	return putWhole(w.site.path("stray-"+w.name), path, text)
}

// putWhole makes a file appear whole.
func putWhole(aside, path, text string) error {
	if err := os.WriteFile(aside, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

func (w *writer) tooLong() error {
	p := w.next("fast")
	p.fate, p.size = refused, maxLine+w.chance.IntN(maxLine)
	return w.send(p, "")
}

func (w *writer) unknown() error {
	p := w.next("nobody")
	p.fate = refused
	return w.send(p, "")
}

func (w *writer) rotate() error {
	if !w.rotates {
		return nil
	}
	w.rotated++
	err := os.Rename(w.file(), w.site.tasks(fmt.Sprintf("%s.%d.jsonl", w.into, w.rotated)))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// send writes a line whole and then holds us to it.
func (w *writer) send(p promise, before string) error {
	if err := w.append(before + envelopeOf(p) + "\n"); err != nil {
		return err
	}
	w.book.promise(p)
	return nil
}

func (w *writer) file() string { return w.site.tasks(w.into + ".jsonl") }

// append writes the text to the end of the file, in one piece or in several.
func (w *writer) append(text string) error {
	file, err := os.OpenFile(w.file(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for w.own && len(text) > 1 && w.chance.IntN(4) == 0 {
		cut := 1 + w.chance.IntN(len(text)-1)
		if _, err := file.WriteString(text[:cut]); err != nil {
			return err
		}
		text = text[cut:]
		<-time.After(time.Duration(w.chance.IntN(20)) * time.Millisecond) // as slow writers do
	}
	_, err = file.WriteString(text)
	return err
}

// envelopeOf is the line of a task: the same for the same promise, byte by byte.
func envelopeOf(p promise) string {
	if p.foreign {
		return fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":1709078400,"p":"REQ","from":"torture","to":%q,"cid":"torture","body":{"t":"work","d":{"version":%d,"fill":%q}}}`,
			p.id, p.part, p.version, strings.Repeat("x", p.size))
	}
	if p.clutch {
		key, to := "", "agent:"+p.part
		if p.routed {
			to = "group:" + p.part
		}
		if p.key != "" {
			key = fmt.Sprintf(`"idempotency_key":%q,`, p.key)
		}
		return fmt.Sprintf(`{"v":"clutch/0.1","id":"msg_%s","ts":"2026-02-01T13:20:11.123Z","thread_id":"torture","run_id":"torture","task_id":%q,%s`+
			`"from":{"agent_id":"agent:torture"},"to":[{"agent_id":%q}],"type":"task.request","payload":{"version":%d,"fill":%q}}`,
			p.id, p.id, key, to, p.version, strings.Repeat("x", p.size))
	}
	more := ""
	if p.callback != "" {
		more = fmt.Sprintf(`,"callback":{"queue":%q}`, p.callback)
	}
	if p.asks != "" {
		more += fmt.Sprintf(`,"approval_required":%q`, p.asks)
	}
	return fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"requester_id":"torture","target_agent":%q,"target_role":"executor",`+
		`"task_type":"work","description":"a task","input":{"refs":[],"payload":{"version":%d,"fill":%q}}%s}`,
		p.id, p.part, p.version, strings.Repeat("x", p.size), more)
}
