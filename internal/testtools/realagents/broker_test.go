package realagents_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// brokeredTools are the tool echo of the tool broker, in the words of the programs that get it.
var brokeredTools = map[string]fakemodel.Call{
	"claude":   {Tool: "mcp__mailboxd-tools__everything__echo"},
	"codex":    {Tool: "everything__echo", Namespace: "mcp__mailboxd_tools"},
	"opencode": {Tool: "mailboxd-tools_everything__echo"},
}

// echoCall is a call of the tool.
func (b *box) echoCall(words string) fakemodel.Reply {
	call := brokeredTools[b.program.name]
	reply := fakemodel.ToolCall(call.Tool, map[string]any{"message": words})
	reply.Calls[0].Namespace = call.Namespace
	return reply
}

// echoList is the list of an agent with the tool.
const echoList = `tools: [read, "mcp:everything/echo"]`

// offer gives the agent of the box the tool echo of server-everything through the tool broker, with
// other lines of its entry.
func (b *box) offer(lines ...string) {
	b.t.Helper()
	b.addEverything()
	b.entry(append([]string{"permission: edit", echoList}, lines...)...)
}

// addEverything adds the server to the configuration.
func (b *box) addEverything() {
	b.t.Helper()
	server := filepath.Join(programs(), "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	b.write(configFile, b.read(configFile)+fmt.Sprintf("\ntools:\n  - {id: everything, command: [node, %q, stdio]}\n", server))
}

// echoed has the model call the tool, and expects that it gets the answer of the server.
func (b *box) echoed(words string) {
	b.t.Helper()
	b.model.Script(b.echoCall(words), fakemodel.Text("It is done."))
	before := len(b.model.Requests())
	r := b.ask("Use the tool echo", "--in", b.work)
	if r.Status != "ok" || r.Review.Required {
		b.t.Errorf("the result is %+v; want ok and nothing to review", r)
	}
	b.checkEcho(before, words)
	if events := b.must(b.mailboxd(b.work, "events", "--task", string(r.ID), "--json")).out; !strings.Contains(events, `"tool.called"`) {
		b.t.Errorf("no event says that the tool was called:\n%s", events)
	}
}

// askedTwice expects that the model was asked for the call and for the answer, and for nothing else.
func (b *box) askedTwice() {
	b.t.Helper()
	if n := len(b.model.Requests()); n != 2 {
		b.t.Errorf("the model was asked %d times; want twice", n)
	}
}

// checkEcho expects that the model, asked a second time, got the answer of the server. Over ACP, Claude Code asks it
// once more, for what its user might say next.
func (b *box) checkEcho(before int, words string) {
	b.t.Helper()
	requests := b.model.Requests()[before:]
	if len(requests) < 2 {
		b.t.Fatalf("the model was asked %d times; want two", len(requests))
	}
	messages := requests[1].Messages
	if got := messages[len(messages)-1].Text; !strings.Contains(got, "Echo: "+words) {
		b.t.Errorf("the model got %s of the tool; want the echo", got)
	}
}

// forEachBrokered runs a test with the box of each program that gets the tool.
func forEachBrokered(t *testing.T, boxOf func(testing.TB, program) *box, test func(b *box)) {
	forPrograms(t, slices.Sorted(maps.Keys(brokeredTools)), boxOf, test)
}

// forPrograms runs a test with the box of each of some programs.
func forPrograms(t *testing.T, names []string, boxOf func(testing.TB, program) *box, test func(b *box)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			test(boxOf(t, named(name)))
		})
	}
}

func TestAProgramCallsAToolThroughTheBroker(t *testing.T) {
	forEachBrokered(t, newBox, func(b *box) {
		b.plain()
		b.serve()
		b.offer()
		b.echoed("hello")
		b.askedTwice()
	})
}

func TestAProgramInASandboxCallsAToolThroughTheBroker(t *testing.T) {
	forEachBrokered(t, sandboxed, func(b *box) {
		b.serve()
		b.offer()
		b.echoed("hello from inside")
		b.askedTwice()
	})
}

// A program that asks over ACP needs no rule of its own for a tool that the broker decides about. Codex may ask its
// model over ACP before it has the tools (docs/tools.md).
func TestAProgramOverACPCallsAToolThroughTheBroker(t *testing.T) {
	forPrograms(t, []string{"claude", "opencode"}, newBox, func(b *box) {
		b.plain()
		b.hostedEntry(`{rules: [{mcp: "everything/echo", do: allow}], otherwise: reject}` + "\n    " + echoList)
		b.addEverything()
		b.serve()
		b.echoed("hello")
	})
}

func TestAProgramWaitsUntilAPersonApprovesItsCallWithAnSSHKey(t *testing.T) {
	forEachBrokered(t, newBox, func(b *box) {
		b.plain()
		b.needProof()
		b.serve()
		b.offer(`acp: {rules: [{mcp: "everything/echo", do: ask}]}`)
		b.model.Script(b.echoCall("approved"), fakemodel.Text("It is done."))
		id := b.heldCall("Use the tool echo")
		if n := len(b.model.Requests()); n != 1 {
			b.t.Errorf("the model was asked %d times before the approval; want once", n)
		}
		b.must(b.mailboxd(b.work, "approve", id))
		b.must(b.mailboxd(b.work, "wait", id))
		b.checkEcho(0, "approved")
		b.askedTwice()
		b.checkProof(id)
	})
}
