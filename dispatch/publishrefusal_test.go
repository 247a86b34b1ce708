package dispatch_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// refusing is a judge that refuses the tasks of nobody.
func refusing(t envelope.Task, _ time.Time) task.Verdict {
	if t.Agent == "nobody" {
		return task.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: "is not configured"}}}
	}
	return task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
}

func TestALineIsTakenWhileTheResultsOfRefusedLinesArePut(t *testing.T) {
	e := newEngine(t)
	e.judge = refusing
	goOn := make(chan struct{})
	resume := sync.OnceFunc(func() { close(goOn) })
	defer resume() // before the engine ends
	e.log.seen = func(line string) {
		if strings.Contains(line, "result put") && strings.Contains(line, `"no`) {
			<-goOn
		}
	}
	e.start()
	e.writing.Go(func() {
		e.send("no1", "nobody")
		e.send("yes", "quick")
	})
	e.until("the other line has its result", func() bool { return e.row("yes").Put })
	if e.row("no1").Put {
		t.Error("the refusal is put; want it to wait")
	}
	resume()
	e.until("the refusal has its result", func() bool { return e.row("no1").Put })
	e.wantResult("no1", "unknown_agent", "rejected")
}

func TestARefusalThatIsReplacedBeforeItIsShownIsNotShownAsTheLatest(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := newEngine(t)
	e.judge = refusing
	e.start()
	for n := range 20 {
		id := "t" + strings.Repeat("x", n)
		e.say(request(id, "nobody"), request(id, "quick"))
		e.until("the second revision has its result", func() bool { row := e.row(id); return row.Revision == 2 && row.Put })
		e.wantResult(id, "done, revision 2")
	}
}
