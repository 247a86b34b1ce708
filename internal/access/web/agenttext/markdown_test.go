package agenttext

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAnAnswerIsShownAsMarkdown(t *testing.T) {
	for words, want := range map[string]string{
		"It **works**.":     "<p>It <strong>works</strong>.</p>\n",
		"a\nb":              "<p>a<br>\nb</p>\n",
		"# One\n\n#### Two": "<h3>One</h3>\n<h4>Two</h4>\n",
		"```go\na < b\n```": "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n",
		"| a |\n| -: |\n| 1 |": "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td align=\"right\">1</td>\n</tr>\n</tbody>\n</table>\n",
		"[the file](src/a.go)":                 "<p>the file <span class=\"faint small\">(<bdi>src/a.go</bdi>)</span></p>\n",
		"![a plan](http://evil.example/p.png)": "<p>image: a plan <span class=\"faint small\">(<bdi>http://evil.example/p.png</bdi>)</span></p>\n",
		"[bank](https://evil.example/x)": `<p><a class="outside" target="_blank" rel="noopener noreferrer" href="https://evil.example/x">bank</a>` +
			" <span class=\"faint small\">(<bdi>evil.example</bdi>)</span></p>\n",
		"see https://go.dev/x": `<p>see <a class="outside" target="_blank" rel="noopener noreferrer" href="https://go.dev/x">https://go.dev/x</a></p>` + "\n",
		"<ada@example.org>":    `<p><a class="outside" target="_blank" rel="noopener noreferrer" href="mailto:ada@example.org">ada@example.org</a></p>` + "\n",
	} {
		if got := string(Markdown(words)); got != want {
			t.Errorf("%q is shown as %q; want %q", words, got, want)
		}
	}
	if Markdown(strings.Repeat("a", mostMarkdown+1)) != "" {
		t.Error("an answer that is too long is shown as Markdown")
	}
}

// tags are those that an answer may have.
var tags = regexp.MustCompile(`</?(p|br|strong|em|del|ul|li|blockquote|pre tabindex="0"|pre|code|h[3-6]|hr|bdi|span class="faint small"|span|` +
	`a class="outside" target="_blank" rel="noopener noreferrer" href="(https?://|mailto:)[^"<>]*"|a)>`)

func TestMarkdownOfAnAgentBringsNoScriptAndNoOtherLink(t *testing.T) {
	for _, words := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a <b onclick=alert(1)>b</b>", "<svg/onload=alert(1)>",
		"[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java\nscript:alert(1))", "[x](&#106;avascript:alert(1))",
		"[x](data:text/html,<script>alert(1)</script>)", "[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](//evil.example)", "[x](/session)",
		"<javascript:alert(1)>", "![x](javascript:alert(1))", "![x](https://evil.example/\"onerror=alert(1))", "[x](https://e.example/\"onclick=\"a)",
		"[x](https://e.example \"title\\\" onclick=alert(1)\")", "[x]: javascript:alert(1)\n\n[x]", "# h {onclick=alert(1)}", "```x\" onclick=alert(1)\n```",
		"<a href=\"javascript:alert(1)\">x</a>", "<!-- --><script>alert(1)</script>", "<div>\n<script>alert(1)</script>\n</div>", "\\<script>x</script>",
		"&lt;script&gt;", "[![x](javascript:a)](javascript:b)", "[a](http:evil)", "[a](http:///x)", "[a](https://ada:secret@go.dev@evil.example/)",
		"`<script>`", "    <script>", "> <script>alert(1)</script>", "[<script>x</script>](https://e.example)", "www.evil.example\"onclick=alert(1)",
	} {
		shown := string(Markdown(words))
		if rest := tags.ReplaceAllString(shown, ""); strings.ContainsAny(rest, "<>") {
			t.Errorf("%q is shown as %q; want no tag of the agent", words, shown)
		}
	}
}

func TestMarkdownThatIsHardToReadIsShownSoon(t *testing.T) {
	var hard []string
	for _, part := range []string{"[", "![", "*", "_a", "> ", "`a", "<", "- ", "[a](", "~~", "|a", "**a", "\\", "&", "1. ", "www.a.", "a@b.", "http://"} {
		hard = append(hard, strings.Repeat(part, mostMarkdown/len(part)), strings.Repeat(part+"\n", mostMarkdown/(len(part)+1)))
	}
	hard = append(hard, strings.Repeat("[a](", mostBrackets), strings.Repeat("[a]: b\n", mostBrackets), strings.Repeat("[a][b]", mostBrackets/2))
	deep := ""
	for i := range 300 {
		deep += strings.Repeat("  ", i) + "- a\n"
	}
	for _, words := range append(hard, deep[:mostMarkdown]) {
		began := time.Now()
		Markdown(words)
		took := time.Since(began)
		t.Logf("%.8q: %s", words, took.Round(time.Millisecond))
		if took > 5*time.Second {
			t.Errorf("%.8q many times took %s", words, took)
		}
	}
}
