package code

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// rules are those of a language for chroma. The first that fits counts, so those of most tokens are
// the first ones: each try takes a microsecond.
func (l language) rules() chroma.Rules {
	const word, plain = `[\p{L}_$][\p{L}\p{N}_$]*`, `[\s(){},.+&|!>:?=%^~@\\]`
	var root []chroma.Rule
	add := func(use bool, pattern string, kind chroma.TokenType, next chroma.Mutator) {
		if use {
			root = append(root, chroma.Rule{Pattern: pattern, Type: kind, Mutator: next})
		}
	}
	markup := l.keywords == ""
	add(markup, `[^<>"=\w]+`, chroma.Text, nil)
	add(!markup, plain+`+`, chroma.Text, nil)
	add(l.names, `("[^"\n]*"|[\p{L}_$][\p{L}\p{N}_$.-]*)(?=[ ]*[:=])`, chroma.NameAttribute, nil)
	add(!markup, `(?:`+strings.Join(strings.Fields(l.keywords), "|")+`)(?![\p{L}\p{N}_$-])`, chroma.Keyword, nil)
	add(!markup && !l.names, word+`(?=\()`, chroma.NameFunction, nil)
	add(!markup, word+plain+`*`, chroma.Text, nil)
	add(!markup, `\d[\p{L}\p{N}_.]*`, chroma.LiteralNumber, nil)
	add(l.triple, `"""`, chroma.LiteralString, chroma.Push("triple"))
	add(l.raw, "`", chroma.LiteralString, chroma.Push("raw"))
	add(true, `"(?:\\.|[^"\\\n])*"?`, chroma.LiteralString, nil)
	add(!markup, `'(?:\\.|[^'\\\n])*'`, chroma.LiteralString, nil)
	add(l.block, `/\*`, chroma.Comment, chroma.Push("block"))
	add(l.comment != "", l.comment+`[^\n]*`, chroma.Comment, nil)
	add(markup, `<!--`, chroma.Comment, chroma.Push("note"))
	add(markup, `</?[\w:-]+|/?>`, chroma.NameTag, nil)
	add(markup, `[\w:-]+(?==)`, chroma.NameAttribute, nil)
	add(markup, `\w+`, chroma.Text, nil)
	add(true, `[\s\S]`, chroma.Text, nil)
	return chroma.Rules{
		"root": root, "block": until(`\*/`, chroma.Comment), "note": until(`-->`, chroma.Comment),
		"triple": until(`"""`, chroma.LiteralString), "raw": until("`", chroma.LiteralString),
	}
}

// until are the rules of a state that ends with an expression. Its first character is one of *, -,
// a quote or a backquote.
func until(end string, kind chroma.TokenType) []chroma.Rule {
	return []chroma.Rule{{Pattern: end, Type: kind, Mutator: chroma.Pop(1)}, {Pattern: "[^*\"`-]+|[\\s\\S]", Type: kind}}
}

// lexers has the lexer of each ending and name of a file.
var lexers = sync.OnceValue(func() map[string]chroma.Lexer {
	all := map[string]chroma.Lexer{}
	for _, l := range languages {
		lexer := chroma.MustNewLexer(&chroma.Config{Name: l.files, CaseInsensitive: l.noCase}, l.rules)
		for name := range strings.FieldsSeq(l.files) {
			all[name] = lexer
		}
	}
	return all
})

// LexerOf returns the lexer of a file; nil for none.
func LexerOf(name string) chroma.Lexer {
	base := path.Base(name)
	if l := lexers()[base]; l != nil {
		return l
	}
	return lexers()[path.Ext(base)]
}

// A Colour is the class of a piece of a line.
type Colour struct {
	Piece
	Class string
}

// ColoursOf returns the coloured pieces of lines that follow each other in a file.
func ColoursOf(lexer chroma.Lexer, lines []string) [][]Colour {
	if lexer == nil || len(lines) == 0 {
		return nil
	}
	tokens, err := tokensOf(lexer, strings.Join(lines, "\n"))
	if err != nil {
		return nil
	}
	all := make([][]Colour, len(lines))
	line, at := 0, 0
	for _, token := range tokens {
		class := chroma.StandardTypes[token.Type]
		for i, text := range strings.Split(token.Value, "\n") {
			if i > 0 {
				line, at = line+1, 0
			}
			all[line] = addColour(all[line], Colour{Piece{at, at + len(text)}, class})
			at += len(text)
		}
	}
	return all
}

// addColour adds a coloured piece to those of a line.
func addColour(all []Colour, c Colour) []Colour {
	switch n := len(all); {
	case c.Class == "" || c.Begin == c.End:
		return all
	case n > 0 && all[n-1].Class == c.Class && all[n-1].End == c.Begin:
		all[n-1].End = c.End
		return all
	}
	return append(all, c)
}

// tokensOf cuts a text into tokens, which together are the text.
func tokensOf(lexer chroma.Lexer, text string) (all []chroma.Token, err error) {
	next, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return nil, err
	}
	size := 0
	for token := next(); token != chroma.EOF; token = next() {
		all = append(all, token)
		size += len(token.Value)
	}
	if size != len(text) {
		return nil, fmt.Errorf("the tokens have %d bytes, and the text %d", size, len(text))
	}
	return all, nil
}
