package envelope

import "bytes"

// ordinary are the bytes that a JSON string may hold unescaped. The UTF-8 of the bytes above
// ASCII is checked once for the whole text.
var ordinary = func() (is [256]bool) {
	for c := ' '; c < 256; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// text reads a string. It accepts half of a surrogate pair: a member that is only passed on may
// hold it.
func (s *scanner) text() *syntaxError {
	start, escaped := s.pos, false
	s.pos++
	for {
		for s.pos < len(s.raw) && ordinary[s.raw[s.pos]] {
			s.pos++
		}
		switch c := s.peek(); {
		case s.pos == len(s.raw):
			return s.fail("ends inside a string")
		case c == '"':
			s.pos++
			s.pushScalar('"', start, escaped)
			return nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return err
			}
		default:
			return s.unexpected("a character or its escape")
		}
	}
}

func (s *scanner) escape() *syntaxError {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if !isHex(s.peek()) {
				return s.unexpected("a hexadecimal digit")
			}
			s.pos++
		}
		return nil
	}
	return s.unexpected("an escape")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// number reads a number and keeps it as it is written.
func (s *scanner) number() *syntaxError {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == 'I' {
		return s.literal() // "-Infinity"
	}
	zero := s.peek() == '0'
	switch digits := s.digits(); {
	case digits == 0:
		return s.unexpected("a digit")
	case zero && digits > 1:
		return s.fail("has a number that starts with 0")
	}
	if s.peek() == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	s.pushScalar('0', start, false)
	return nil
}

func (s *scanner) digits() (n int) {
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
		n++
	}
	return n
}

// literal reads true, false or null. It recognizes the words that Python writes and JSON lacks.
func (s *scanner) literal() *syntaxError {
	start := s.pos
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.raw[s.pos:], []byte(word)) {
			s.pos += len(word)
			s.pushScalar(word[0], start, false)
			return nil
		}
	}
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(s.raw[s.pos:], []byte(word)) {
			s.pushScalar('n', start, false) // so that the message can name the path
			return s.fail("is " + word + ", which JSON does not have")
		}
	}
	return s.unexpected("a value")
}
