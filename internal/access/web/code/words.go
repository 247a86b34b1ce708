// Package code finds what is coloured in lines of code, and which words of two lines differ.
package code

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Piece is a piece of a line: the bytes from Begin to End.
type Piece struct{ Begin, End int }

// mostWords limits the words of a line that are compared, after what both lines begin and end with.
const mostWords = 60

// wordsOf cuts a line into words: runs of letters and digits, runs of spaces, and other characters
// by themselves.
func wordsOf(line string) (words []string) {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	begin, last := 0, -1
	for i, r := range line {
		k := kind(r)
		if i > 0 && (k == 0 || k != last) {
			words = append(words, line[begin:i])
			begin = i
		}
		last = k
	}
	if line != "" {
		words = append(words, line[begin:])
	}
	return words
}

// ChangedWords returns what differs in two lines, one of which replaces the other; nothing if too
// little of them is the same.
func ChangedWords(was, is string) (gone, came []Piece) {
	a, b := wordsOf(was), wordsOf(is)
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < min(len(a), len(b))-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	keptA, keptB := commonWords(a[first:len(a)-last], b[first:len(b)-last])
	gone, sameA := differing(a, keptA, first, last)
	came, sameB := differing(b, keptB, first, last)
	if 2*sameA <= letters(was) && 2*sameB <= letters(is) {
		return nil, nil
	}
	return gone, came
}

// commonWords reports which words of each list are in their longest common subsequence; none of
// long lists.
func commonWords(a, b []string) (keptA, keptB []bool) {
	keptA, keptB = make([]bool, len(a)), make([]bool, len(b))
	if len(a) > mostWords || len(b) > mostWords {
		return keptA, keptB
	}
	var common [mostWords + 1][mostWords + 1]uint8
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			keptA[i], keptB[j] = true, true
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	return keptA, keptB
}

// differing returns the words of a line that the other one doesn't have, joined where they touch,
// and how many letters are in both.
func differing(words []string, kept []bool, first, last int) (changed []Piece, same int) {
	at := 0
	for i, word := range words {
		inBoth := i < first || i >= len(words)-last || kept[i-first]
		switch n := len(changed); {
		case inBoth:
			same += letters(word)
		case n > 0 && changed[n-1].End == at:
			changed[n-1].End += len(word)
		default:
			changed = append(changed, Piece{at, at + len(word)})
		}
		at += len(word)
	}
	return joined(changed, strings.Join(words, "")), same
}

// joined joins pieces of a line between which there are spaces alone.
func joined(all []Piece, line string) []Piece {
	kept := all[:0]
	for _, p := range all {
		if n := len(kept); n > 0 && strings.TrimSpace(line[kept[n-1].End:p.Begin]) == "" {
			kept[n-1].End = p.End
		} else {
			kept = append(kept, p)
		}
	}
	return kept
}

// letters counts the characters of a text without its spaces.
func letters(text string) (n int) {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			n += min(1, utf8.RuneLen(r))
		}
	}
	return n
}
