package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxIDBytes is the longest task id: with ".json" it makes a 255 byte file
// name, the most a file system and AINL's read_result accept (AINL-31).
const MaxIDBytes = 250

// An ID names a task. It becomes the file name results/<id>.json, so it holds only characters
// that cannot leave a directory or deceive a reader. The zero value means that no id could be
// read.
type ID string

// ParseID checks an id from outside; no other function makes one. It accepts ids that AINL's
// read_result can open and that people can tell apart (AINL-31): 1 to 250 bytes of NFC UTF-8
// without "/", "..", control or format characters.
func ParseID(s string) (ID, error) {
	switch {
	case s == "":
		return "", errors.New("must not be empty")
	case len(s) > MaxIDBytes:
		return "", fmt.Errorf("is %d bytes long, more than %d", len(s), MaxIDBytes)
	case !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError):
		return "", errors.New("is not valid text")
	case strings.Contains(s, "/"):
		return "", errors.New(`must not contain "/"`)
	case strings.Contains(s, ".."):
		return "", errors.New(`must not contain ".."`)
	case strings.ContainsFunc(s, hidden):
		return "", errors.New("contains a control or invisible character")
	case strings.ContainsFunc(s, beyondASCII) && !norm.NFC.IsNormalString(s):
		return "", errors.New("is not in Unicode normal form C")
	}
	return ID(s), nil
}

// beyondASCII reports whether a character may have more than one form.
func beyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// hidden reports characters that a terminal acts on or does not show: C0, C1,
// DEL, line separators, and format characters such as zero-width and bidi marks.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == '\x7f'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// visible reports whether a name can be shown and compared: it is not empty, and no character
// is hidden.
func visible(name string) bool {
	return name != "" && !strings.ContainsFunc(name, hidden)
}

// Dir returns a directory name for the task: the id itself, or a digest for ".", the one valid
// id that no directory can have.
func (id ID) Dir() string {
	if id != "." {
		return string(id)
	}
	sum := sha256.Sum256([]byte(id))
	return "h-" + hex.EncodeToString(sum[:16])
}
