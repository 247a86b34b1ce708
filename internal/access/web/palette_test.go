package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mailboxd/internal/decisions/task"
)

func TestThePaletteReachesTasksPagesAndActionsByKeyboard(t *testing.T) {
	b, w := browser(t), newWorld(t)
	w.send("deploy-one", "deployer", `{"seconds": 0}`)
	w.state("deploy-one", task.Held)
	b.enter(w.open())
	b.sees("deploy-one")
	b.until(`document.title.startsWith("(1) ") && document.querySelector("nav .badge").textContent === "1"`)
	open := func(words string) {
		t.Helper()
		eval[bool](b, `(document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true, bubbles: true})), true)`)
		b.until(`document.querySelector("dialog.palette")?.open && document.activeElement.type === "search"`)
		b.do(chromedp.KeyEvent(words))
	}
	open("agents")
	b.until(`document.querySelector("[aria-selected=true]")?.textContent === "Go to Agents"`)
	b.passesAxe("palette", "light")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/agents"`)
	open("work deploy")
	b.until(`document.querySelector("#palette-list li")?.textContent.startsWith("deploy-one: ")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/tasks/deploy-one"`)
	b.sees("Digest")
	open("hold")
	b.until(`document.querySelector("[aria-selected=true]")?.textContent === "Hold deploy-one"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.sees("Release")
	open("")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("dialog.palette").open`)
	w.send("deploy-two", "deployer", `{"seconds": 0}`)
	b.until(`document.title.startsWith("(2) ") && document.querySelector("nav .badge").textContent === "2"`)
}
