package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mailboxd/internal/testtools/slowtest"
)

func TestTextOfTwiceTheSizeNeedsNoScrollingToTheSide(t *testing.T) {
	slowtest.Require(t, "it looks at each page three times")
	b, w := lively(t, func(w *world) { w.addClaude("claude", answerToShow) })
	for id, words := range map[string]string{
		"修正する": "時計のテストが毎晩失敗する理由を調べて直してください",
		"תקן":  "מצא מדוע TestClock נכשל, ותקן אותו",
	} {
		w.sendWords(id, "claude", words)
	}
	w.result("修正する")
	w.result("תקן")
	all := append(pages[:len(pages):len(pages)],
		struct{ name, path, sees string }{"japanese", "/tasks/%E4%BF%AE%E6%AD%A3%E3%81%99%E3%82%8B", "時計のテスト"},
		struct{ name, path, sees string }{"hebrew", "/tasks/%D7%AA%D7%A7%D7%9F", "מצא מדוע"})
	for _, c := range []struct {
		width int64
		size  string
	}{{1280, "200%"}, {640, "100%"}, {390, "200%"}} {
		b.do(chromedp.EmulateViewport(c.width, 900))
		for _, p := range all {
			b.visit(p.path)
			b.until(fmt.Sprintf(`document.body.textContent.includes(%q)`, p.sees)) // rows below the screen are not rendered
			wide := eval[int](b, `(document.documentElement.style.fontSize = "`+c.size+`", document.documentElement.scrollWidth - document.documentElement.clientWidth)`)
			if wide > 0 {
				t.Errorf("%s at %d pixels with text of %s is %d pixels too wide", p.name, c.width, c.size, wide)
			}
			if eval[bool](b, `(e => e.scrollWidth > e.clientWidth)(document.querySelector("nav"))`) {
				t.Errorf("%s at %d pixels with text of %s: the navigation bar scrolls to the side", p.name, c.width, c.size)
			}
			if eval[bool](b, `[...document.querySelectorAll(".columns")].some(e => getComputedStyle(e).gridTemplateColumns.includes(" "))`) {
				t.Errorf("%s at %d pixels with text of %s has two columns", p.name, c.width, c.size)
			}
			const narrow = `[...document.querySelectorAll("a.name")].some(a => a.offsetParent && a.getBoundingClientRect().width < 20)`
			if eval[bool](b, narrow) {
				t.Errorf("%s at %d pixels with text of %s has no place for the names of tasks", p.name, c.width, c.size)
			}
			b.keepPicture(fmt.Sprintf("%s-%d-%s", p.name, c.width, c.size))
		}
	}
}

// What the page says about its connection moves nothing that a person is about to press.
func TestWhatThePageSaysOfItsConnectionMovesNothing(t *testing.T) {
	b, _ := lively(t)
	b.visit("/tasks")
	const tops = `(() => {
		const link = document.querySelector("#link"), gone = document.querySelector("#gone");
		return ["As of 20:44:48", "Live", "Waiting", "Ended"].map((text) => {
			link.textContent = text;
			gone.hidden = text === "Live";
			gone.dataset.state = text === "Waiting" ? "down" : "ended";
			return document.querySelector("#main").getBoundingClientRect().top;
		});
	})()`
	for width := int64(320); width <= 1400; width += 20 {
		b.do(chromedp.EmulateViewport(width, 900))
		if at := slices.Compact(eval[[]float64](b, tops)); len(at) > 1 {
			t.Errorf("at %d pixels the content begins at %v", width, at)
		}
	}
}

// unreached lists the interactive elements that are shown and can't get the focus by Tab. Of radio
// buttons, Tab reaches one.
const unreached = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [onclick], [role=button], [role=option], [tabindex]")]
	.filter(e => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.type !== "hidden" && e.id !== "main")
	.filter(e => !e.reached && e.type !== "radio")
	.map(e => e.outerHTML.slice(0, 120)).join("\n")`

func TestTabReachesEachElement(t *testing.T) {
	slowtest.Require(t, "it presses Tab on each page until it begins anew")
	b, _ := lively(t)
	for _, p := range pages {
		b.visit(p.path)
		b.sees(p.sees)
		b.do(chromedp.Evaluate[chromedp.Void](`document.body.dataset.still = ""`))                // no refresh begins from here on
		for round := 1; round <= 3 && (round == 1 || eval[string](b, unreached) != ""); round++ { // one may have begun before
			reach := fmt.Sprintf(`(e => e.reached === %[1]d || (e.reached = %[1]d, false))(document.activeElement)`, round)
			for range 600 {
				b.do(chromedp.KeyEvent(kb.Tab))
				if eval[bool](b, reach) {
					break
				}
			}
		}
		if left := eval[string](b, unreached); left != "" {
			t.Errorf("%s: Tab never reaches\n%s", p.name, left)
		}
	}
}
