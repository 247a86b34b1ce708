package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/internal/testtools/slowtest"
)

func TestTextOfTwiceTheSizeNeedsNoScrollingToTheSide(t *testing.T) {
	slowtest.Require(t, "it looks at each page twice")
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
	}{{1280, "200%"}, {640, "100%"}} {
		b.do(chromedp.EmulateViewport(c.width, 900))
		for _, p := range all {
			b.visit(p.path)
			b.sees(p.sees)
			wide := eval[int](b, `(document.documentElement.style.fontSize = "`+c.size+`", document.documentElement.scrollWidth - document.documentElement.clientWidth)`)
			if wide > 0 {
				t.Errorf("%s at %d pixels with text of %s is %d pixels too wide", p.name, c.width, c.size, wide)
			}
			const narrow = `[...document.querySelectorAll("a.name")].some(a => a.offsetParent && a.getBoundingClientRect().width < 20)`
			if eval[bool](b, narrow) {
				t.Errorf("%s at %d pixels with text of %s has no place for the names of tasks", p.name, c.width, c.size)
			}
			b.keepPicture(p.name + "-" + c.size)
		}
	}
}
