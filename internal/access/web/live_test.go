package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// busy are more tabs than a browser has connections to a host.
const busy = 8

func TestMoreVisibleTabsThanConnectionsAreAllLive(t *testing.T) {
	slowtest.SkipShort(t, "it opens many tabs")
	b, w := browser(t), newWorld(t)
	appendTo(t, w.config, fmt.Sprintf("  - {id: crowd, exec: {command: [%s, demo-agent, tester]}, concurrency: %d}\n", program, busy))
	w.stop(w.daemon)
	w.serve()
	b.enter(w.open())
	var tabs []*tab
	for i := range busy {
		id := fmt.Sprintf("slow-%d", i)
		w.sendAs("eve", id, "crowd", `{"seconds": 3600}`)
		w.state(envelope.ID(id), task.Running)
		one := b.beside()
		one.do(chromedp.Navigate(eval[string](b, `location.origin`) + "/tasks/" + id))
		tabs = append(tabs, one)
	}
	for _, one := range tabs {
		if eval[bool](one, `document.hidden`) {
			t.Fatal("a tab is hidden")
		}
		one.sees("Live", "Running the slow tests")
		one.mark()
	}
	for i, one := range tabs {
		w.do(func(daemon *client.Client) error {
			_, err := daemon.Cancel(t.Context(), envelope.ID(fmt.Sprintf("slow-%d", i)), client.ControlOptions{})
			return err
		})
		one.sees("cancelled")
		one.until(`!document.querySelector("pre[data-output]")`)
		if one.wasReloaded() {
			t.Errorf("tab %d was loaded anew", i)
		}
	}
}

func TestATabOfABrowserThatSharesNothingHasOneConnection(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("slow", "tester", `{"seconds": 3600}`)
	w.state("slow", task.Running)
	b.enter(w.open())
	const script = `delete window.SharedWorker; window.open_ = [];
		window.EventSource = class extends EventSource {
			constructor(url) { super(url); window.open_.push(this) }
		}`
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		t.Fatal(err)
	}
	b.visit("/tasks/slow")
	b.sees("Live", "Running the slow tests")
	urls := func() string {
		return eval[string](b, `window.open_.filter((s) => s.readyState < 2).map((s) => s.url.split("/").pop()).join(" ")`)
	}
	if got := urls(); strings.Contains(got, " ") || !strings.HasPrefix(got, "live?after=") || !strings.HasSuffix(got, "&output=slow") {
		t.Errorf("the connections are %q; want one with the events and the output", got)
	}
	look := func(hidden bool) {
		eval[bool](b, fmt.Sprintf(`(Object.defineProperty(document, "hidden", {value: %t, configurable: true}),
			document.dispatchEvent(new Event("visibilitychange")))`, hidden))
	}
	look(true)
	b.until(`window.open_.every((s) => s.readyState === 2)`)
	look(false)
	b.until(`window.open_.filter((s) => s.readyState === 1).length === 1`)
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Cancel(t.Context(), "slow", client.ControlOptions{})
		return err
	})
	b.sees("cancelled")
	b.until(`!document.querySelector("pre[data-output]")`)
}
