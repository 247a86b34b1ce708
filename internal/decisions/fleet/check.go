package fleet

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Times of the protocol.
const (
	ClaimWait = 10 * time.Second // how long a claim is pending
	BeatEvery = 10 * time.Second // the pause after a Beat of a runner with runs
	VoidAfter = 30 * time.Second // after which an assigned token that isn't listed is voided
)

// Sizes of the protocol. A larger message is refused.
const (
	MaxInline  = 32 << 10  // of a Work or an Outcome in a message
	MaxMessage = 768 << 10 // of a message
	MaxJobs    = 16        // in a Reply
	MaxRuns    = 4096      // in a Report
	MaxObjects = 4096      // in a Done or a Work
	MaxFile    = 256 << 20 // of a file of a run that travels
	MaxLeft    = 16        // in an Outcome
	maxName    = 64
	maxText    = 4096
)

// options encode durations as nanoseconds and leave out what is zero, so that decoding returns equal values.
var options = json.JoinOptions(jsonv1.FormatDurationAsNano(true), json.OmitZeroStructFields(true), json.ExperimentalSupportFormatTag(true))

// Encode returns a message as JSON. It refuses one that is larger than MaxMessage.
func Encode(message any) ([]byte, error) {
	text, err := json.Marshal(message, options)
	if err == nil && len(text) > MaxMessage {
		err = fmt.Errorf("message has %d bytes; at most %d are sent", len(text), MaxMessage)
	}
	return text, err
}

// EncodeLarge returns a Work or an Outcome as JSON, of any size.
func EncodeLarge(value any) (jsontext.Value, error) { return json.Marshal(value, options) }

// Decode reads a message of the other side, which may be hostile. Members that it doesn't know are ignored,
// because the other side may be newer.
func Decode(text []byte, message interface{ Check() error }) error {
	if len(text) > MaxMessage {
		return fmt.Errorf("message has %d bytes; at most %d are accepted", len(text), MaxMessage)
	}
	if err := json.Unmarshal(text, message, options); err != nil {
		return err
	}
	return message.Check()
}

// DecodeLarge reads a Work or an Outcome whose size was checked.
func DecodeLarge(text []byte, value any) error { return json.Unmarshal(text, value, options) }

// A Token names one assignment of one attempt: epoch, task, revision, attempt and a random part, with a
// hyphen between them. It is safe in a subject and as the name of a file.
type Token string

// NewToken returns a token. The random part has at most 32 letters and digits, and is unique.
func NewToken(epoch, task int64, revision, attempt int, random string) Token {
	return Token(fmt.Sprintf("%d-%d-%d-%d-%s", epoch, task, revision, attempt, random))
}

// Epoch returns the epoch of the owner that made the token.
func (t Token) Epoch() int64 {
	epoch, _, _ := strings.Cut(string(t), "-")
	n, _ := strconv.ParseInt(epoch, 10, 64)
	return n
}

// Task returns the sequence number of its task, and which revision and attempt it is.
func (t Token) Task() (seq int64, revision, attempt int) {
	parts := strings.Split(string(t), "-")
	if len(parts) != 5 {
		return 0, 0, 0
	}
	seq, _ = strconv.ParseInt(parts[1], 10, 64)
	revision, _ = strconv.Atoi(parts[2])
	attempt, _ = strconv.Atoi(parts[3])
	return seq, revision, attempt
}

// Check returns an error for a text that is no token.
func (t Token) Check() error {
	parts := strings.Split(string(t), "-")
	if len(parts) != 5 || len(t) > 128 {
		return fmt.Errorf("token %.40q: want epoch-task-revision-attempt-random", string(t))
	}
	for _, part := range parts[:4] {
		if n, err := strconv.ParseInt(part, 10, 64); err != nil || n < 0 || strconv.FormatInt(n, 10) != part {
			return fmt.Errorf("token %.40q: %.20q is no number", string(t), part)
		}
	}
	return check("token", parts[4], 32, "")
}

// NameRule says which names a runner or a root may have: they are parts of subjects, names of buckets, and
// arguments of programs.
const NameRule = "1 to 32 of a-z 0-9 _ -, the first a letter or a digit"

// Name returns an error for a text that can't name a runner or a root; see NameRule.
func Name(name string) error {
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "_") || strings.ToLower(name) != name {
		return fmt.Errorf("name %.80q: want %s", name, NameRule)
	}
	return check("name", name, 32, "-_")
}

// Key returns an error for a text that can't name an object in a bucket.
func Key(key string) error { return check("key", key, 128, "-_") }

// LocalName returns an error for a text that can't name a file below a run directory.
func LocalName(name string) error {
	switch {
	case name == "" || len(name) > 1024 || strings.ContainsAny(name, "\x00\\"):
	case path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
	default:
		return nil
	}
	return fmt.Errorf("name %.80q: want a path below the run directory, without \"..\"", name)
}

// Digest returns an error for a text that is no SHA-256 in lower-case hexadecimal.
func Digest(digest string) error {
	isHex := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	if len(digest) != 64 || strings.ContainsFunc(digest, func(r rune) bool { return !isHex(r) }) {
		return fmt.Errorf("sha256 %.80q: want 64 hexadecimal digits", digest)
	}
	return nil
}

// check returns an error for a text that is empty, too long, or has other characters than ASCII letters,
// digits and those of extra.
func check(what, text string, most int, extra string) error {
	if text == "" || len(text) > most {
		return fmt.Errorf("%s %.80q: want 1 to %d characters", what, text, most)
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(extra, r) {
			return fmt.Errorf("%s %.80q: character %q isn't allowed", what, text, r)
		}
	}
	return nil
}

// Check returns what is wrong with an Object.
func (o Object) Check() error {
	kinds := []ObjectKind{ObjectWork, ObjectBundle, ObjectInput, ObjectPatch, ObjectLog, ObjectEvidence, ObjectArtifact, ObjectOutcome}
	if !slices.Contains(kinds, o.Kind) {
		return fmt.Errorf("object: kind %.40q is unknown", string(o.Kind))
	}
	err := errors.Join(Key(o.Key), Digest(o.SHA256))
	if o.Size < 0 {
		err = errors.Join(err, fmt.Errorf("object: size is %d", o.Size))
	}
	named := o.Kind == ObjectArtifact || o.Kind == ObjectInput
	switch {
	case named:
		err = errors.Join(err, LocalName(o.Name))
	case o.Name != "":
		err = errors.Join(err, fmt.Errorf("object: kind %s has no name", o.Kind))
	}
	return err
}
