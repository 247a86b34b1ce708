// Package agenttext makes of what agents and their programs write the HTML of the page: Markdown, and
// the transcripts of runs. Nothing that an agent wrote becomes a tag, a script, or a link within the page.
package agenttext

import (
	"bytes"
	"html/template"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// An answer that is longer, or has more brackets or lists and quotes in each other, takes long to
// read as Markdown. It is shown as it is.
const (
	mostMarkdown = 64 << 10
	mostBrackets = 2000
)

var nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*]|[0-9]+[.)])){20}`)

// markdown reads the Markdown of agents. It has no parser of HTML, so tags are text.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(headings{}, 100)),
	)),
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify,
	),
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(safeNodes{}, 100))),
)

// without returns parsers without that of a type.
func without(all []util.PrioritizedValue, parser any) (kept []util.PrioritizedValue) {
	for _, one := range all {
		if reflect.TypeOf(one.Value) != reflect.TypeOf(parser) {
			kept = append(kept, one)
		}
	}
	return kept
}

// Markdown returns the Markdown of an agent as HTML; "" for a text that is shown as it is.
func Markdown(words string) template.HTML {
	if len(words) > mostMarkdown || strings.Count(words, "[") > mostBrackets || nested.MatchString(words) {
		return ""
	}
	var out bytes.Buffer
	if markdown.Convert([]byte(words), &out) != nil {
		return ""
	}
	return template.HTML(out.String()) //nolint:gosec // the renderer escapes all text
}

// headings puts the headings of an answer below those of the page, and leaves out no level.
type headings struct{}

// Transform changes the levels of the headings of a document.
func (headings) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	level := 2
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			level = min(h.Level+2, level+1, 6)
			h.Level = level
		}
		return ast.WalkContinue, nil
	})
}

// safeNodes writes what could lead away from the page, and code, which can be scrolled.
type safeNodes struct{}

// RegisterFuncs registers the functions for the nodes.
func (safeNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindLink, writeLink)
	r.Register(ast.KindAutoLink, writeAutoLink)
	r.Register(ast.KindImage, writeImage)
	r.Register(ast.KindCodeBlock, writeCode)
	r.Register(ast.KindFencedCodeBlock, writeCode)
}

// outside returns the address and the host of a link that may be followed; "" for any other link,
// such as that to a file.
func outside(to []byte) (address, host string) {
	u, err := url.Parse(string(to))
	if err != nil {
		return "", ""
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return u.String(), u.Host
	case u.Scheme == "mailto" && u.Opaque != "":
		return u.String(), u.Opaque
	}
	return "", ""
}

// begin writes the begin of a link that leads outside.
func begin(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a class="outside" target="_blank" rel="noopener noreferrer" href="` + template.HTMLEscapeString(address) + `">`)
}

// after writes where a link leads, beside its words.
func after(w util.BufWriter, to string) {
	_, _ = w.WriteString(` <span class="faint small">(<bdi>` + template.HTMLEscapeString(to) + `</bdi>)</span>`)
}

func writeLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to := n.(*ast.Link).Destination
	address, host := outside(to)
	words := labelOf(n, source)
	switch {
	case entering && address != "":
		begin(w, address)
	case entering:
	case address != "":
		_, _ = w.WriteString("</a>")
		if !strings.Contains(words, host) || !strings.HasPrefix(address, words) {
			after(w, host)
		}
	case words != string(to):
		after(w, string(to))
	}
	return ast.WalkContinue, nil
}

// labelOf returns the words of a node, as far as they are plain.
func labelOf(n ast.Node, source []byte) string {
	var words strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if one, ok := child.(*ast.Text); ok {
			words.Write(one.Segment.Value(source))
		}
	}
	return words.String()
}

func writeAutoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := n.(*ast.AutoLink)
	to := link.URL(source)
	if link.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(to), []byte("mailto:")) {
		to = append([]byte("mailto:"), to...)
	}
	label := template.HTMLEscapeString(string(link.Label(source)))
	if address, _ := outside(to); address != "" {
		begin(w, address)
		label += "</a>"
	}
	_, _ = w.WriteString(label)
	return ast.WalkContinue, nil
}

// writeImage writes the words of an image: the page loads nothing that an agent names.
func writeImage(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("image: ")
	} else {
		after(w, string(n.(*ast.Image).Destination))
	}
	return ast.WalkContinue, nil
}

func writeCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		_, _ = w.WriteString(template.HTMLEscapeString(string(line.Value(source))))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}
