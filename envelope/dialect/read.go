package dialect

import (
	"bytes"
	"slices"
	"strings"

	"mailboxd/envelope"
)

// A Piece is one message of a line, accepted or refused.
type Piece struct {
	Message  envelope.Message
	Findings envelope.Findings
}

// Read reads one line of a task file, as envelope.ReadLine does, with messages of any dialect.
// AINL's reader refuses an object with the marks of two dialects. A line with AINL alone costs
// no more than in envelope.ReadLine.
func Read(line []byte, how envelope.Reading) []Piece { return AppendRead(nil, line, how) }

// AppendRead is Read for many lines: it appends the pieces to others, so that they need no
// memory of their own, which is 1.3 KB each.
func AppendRead(to []Piece, line []byte, how envelope.Reading) []Piece {
	before, refused := len(to), false
	for _, p := range envelope.ReadLine(line, how) {
		refused = refused || p.Findings.Refused()
		to = append(to, Piece{asked(p.Task), p.Findings})
	}
	if refused {
		return append(to[:before], redactRefused(readAgain(bytes.Trim(line, space), how, slices.Clone(to[before:])))...)
	}
	return to
}

// space is what JSON takes for white space.
const space = " \t\r\n"

// readAgain reads a line again after AINL's reader refused a piece of it. pieces are those of
// that reader.
func readAgain(line []byte, how envelope.Reading, pieces []Piece) []Piece {
	if bytes.HasPrefix(line, []byte("\ufeff")) {
		return pieces
	}
	spans := envelope.Split(line, func(object []byte) bool { return answerable(object, how) })
	if d := markedAs(line); len(spans) == 1 && d != envelope.AINL {
		return []Piece{decode(d, line, how)}
	} else if len(spans) == 1 {
		return pieces
	}
	pieces = pieces[:0]
	for _, s := range spans {
		p := decode(markedAs(s.Raw), s.Raw, how)
		if !s.Fragment {
			p.Findings = append(p.Findings, envelope.SharedLine)
		}
		pieces = append(pieces, p)
	}
	return dropAnswered(pieces)
}

// answerable is envelope.Answerable for an object of any dialect. A refused object of another
// dialect than AINL must have its own id and its sender.
func answerable(object []byte, how envelope.Reading) bool {
	d := envelope.MarkedAs(object)
	if d == envelope.AINL {
		return envelope.Answerable(object, how)
	}
	p := decode(d, object, how)
	return !p.Findings.Refused() || p.Message.From != "" && (p.Message.Task != "" || p.Message.ID != "")
}

// markedAs returns the dialect of an object, or of a fragment of one.
func markedAs(text []byte) envelope.Dialect {
	if d := envelope.MarkedAs(text); d != envelope.AINL {
		return d
	}
	if _, findings := envelope.ContentHash(text); findings.Kind() != envelope.InvalidJSON {
		return envelope.AINL
	}
	marked := envelope.AINL
	for d, bears := range map[envelope.Dialect]bool{
		envelope.CLowl: envelope.Scrap(text, "clowl") != "", envelope.CAP: envelope.Scrap(text, "sender_id") != "",
		envelope.Clutch: strings.HasPrefix(envelope.Scrap(text, "v"), "clutch/"),
	} {
		switch {
		case !bears:
		case marked != envelope.AINL:
			return envelope.AINL
		default:
			marked = d
		}
	}
	return marked
}

func decode(d envelope.Dialect, raw []byte, how envelope.Reading) Piece {
	c, ok := Of(d)
	if !ok {
		c = ainlCodec{}
	}
	m, findings := c.Decode(raw, how)
	return Piece{m, findings}
}

// dropAnswered removes the name of the task from a fragment if a complete piece has it too: the
// sender was cut off, tried again, and waits for the answer to the complete piece.
func dropAnswered(pieces []Piece) []Piece {
	taken := map[envelope.ID]bool{}
	for _, p := range pieces {
		taken[p.Message.Task] = taken[p.Message.Task] || !p.Findings.Refused()
	}
	for i, p := range pieces {
		if p.Findings.Refused() && taken[p.Message.Task] {
			pieces[i].Message.Task, pieces[i].Message.Request.ID = "", ""
		}
	}
	return pieces
}

// TooLong returns the Piece of a line that is longer than limit, in bytes. It is refused, with
// the names of its task and its sender if the outline has them.
func TooLong(line envelope.LongLine, limit int64) Piece {
	p := decode(envelope.MarkedAs(line.Outline), line.Outline, envelope.Strict)
	p.Findings = envelope.Findings{line.Finding(limit)}
	m := &p.Message
	m.Raw, m.Hash = line.Head, line.Hash()
	m.Request.Raw, m.Request.Hash = m.Raw, m.Hash
	return redactRefused([]Piece{p})[0]
}

// DecodeTask reads the request of a message that was accepted before, as the ledger keeps it.
// The findings refuse a message that requests nothing.
func DecodeTask(d envelope.Dialect, raw []byte, how envelope.Reading) (envelope.Task, envelope.Findings) {
	if d == "" || d == envelope.AINL {
		return envelope.DecodeTask(raw, how)
	}
	c, ok := Of(d)
	if !ok {
		return envelope.Task{}, envelope.Findings{{Kind: envelope.InvalidEnvelope, Message: "is in the unknown dialect " + string(d)}}
	}
	m, findings := c.Decode(raw, how)
	if !findings.Refused() && !asks(m.Act) {
		findings = append(findings, envelope.Finding{Kind: envelope.InvalidEnvelope, Message: "asks for nothing"})
	}
	return m.Request, findings
}
