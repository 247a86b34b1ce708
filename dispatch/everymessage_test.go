package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
)

// randomRequest is a request in CLowl or CAP for a task of that id. Most have one thing
// wrong with them, which leaves the id readable.
func randomRequest(r *rand.Rand, id string) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	if r.IntN(3) == 0 {
		line := capLine("delegation_notice", id, pick("user", "user", "ann", "router", "quick"), pick("quick", "nobody"), "do it")
		return strings.Replace(line, `"context_summary":"do it"`, pick(
			`"context_summary":"do it"`, `"context_summary":7`, `"summary":"do it"`, `"context_summary":"do it","attachments":{}`,
			`"context_summary":"do it","attachments":[{"type":"file","path":"../../etc/passwd"}]`,
		), 1)
	}
	line := word{
		mid: id, p: pick("REQ", "REQ", "DLGT"), from: pick("bob", "bob", "ann", "quick", "mailboxd", "registry"),
		to: pick("quick", "nobody", "*", `["quick","nobody"]`, `[]`), pid: pick("", "m0", "none"),
		d:    pick(`{}`, `{"delegation_mode":"fork"}`, `{"delegation_mode":"later"}`, `{"ainl":7}`, `{"deadline":"soon"}`),
		more: pick("", `,"auth":"sesame"`, `,"auth":"guess"`, `,"ctx":{"ref":"none.md"}`, `,"ctx":{"ref":"../out"}`, `,"hue":"blue"`),
	}.line()
	return strings.Replace(line, `"ts":1709078400`, pick(`"ts":1709078400`, `"ts":1709078400`, `"ts":1709078400000`, `"ts":true`), 1)
}

// Every readable, safe id of a request in CLowl or CAP ends in exactly one result,
// whoever sent it and whatever is wrong with it, also when another message had the id.
func TestEveryRequestOfADialectEndsInOneResult(t *testing.T) {
	seed := *everySeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -every-seed=%d -every-lines=%d", seed, *everyLines)
	r := rand.New(rand.NewPCG(seed, 0))
	e := newEngine(t)
	e.secrets = map[string]string{"ann": "sesame"}
	e.judge = refusing
	e.start()
	ids := map[string]string{}
	for n := range *everyLines {
		id := fmt.Sprintf("t%d", n)
		ids[id] = randomRequest(r, id)
		if r.IntN(8) == 0 {
			e.say(word{mid: id, p: "INF", from: "bob", to: "quick"}.line())
		}
		e.say(ids[id])
		if r.IntN(10) == 0 {
			e.say(ids[id]) // once more
		}
		if r.IntN(20) == 0 {
			e.restart()
		}
	}
	e.look()
	e.must(e.Idle(t.Context()))
	for id, line := range ids {
		var result struct {
			TaskID string          `json:"task_id"`
			Status envelope.Status `json:"status"`
		}
		if err := json.Unmarshal([]byte(e.result(id)), &result); err != nil || result.TaskID != id || result.Status == "" {
			t.Errorf("the result of %s is %.200q, %v; want one of that task", line, e.result(id), err)
		}
	}
	files, err := os.ReadDir(e.parts.Box.ResultsDir())
	e.must(err)
	for _, file := range files { // those of members have names of ours
		if name := strings.TrimSuffix(file.Name(), ".json"); ids[name] == "" && len(name) != 36 {
			t.Errorf("there is a result %s, of no line's task", name)
		}
	}
}
