// Command words counts the words of a text. It is an agent for mailboxd that
// answers with plain JSON: bind it with `output: json`.
//
// The contract of an exec agent, as it is used here:
//   - the request comes on standard input (and lies in $MAILBOX_TASK_FILE);
//   - the answer is one JSON object on standard output, which becomes the output;
//   - a line of JSON appended to $MAILBOX_PROGRESS_FILE is a sign of life;
//   - exit 75 means "not now, try again", as often as `retries` allows; any other
//     exit but 0 is a failure, and the last words on standard error say why.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
)

// errTryAgain marks what may pass by itself.
var errTryAgain = errors.New("try again")

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		if errors.Is(err, errTryAgain) {
			os.Exit(75) // EX_TEMPFAIL of sysexits.h
		}
		os.Exit(1)
	}
}

// run answers one request.
func run(stdin io.Reader, stdout io.Writer) error {
	raw, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("read request: %w: %w", err, errTryAgain)
	}
	var request struct {
		Input struct {
			Payload struct {
				Text *string `json:"text"`
			} `json:"payload"`
		} `json:"input"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	text := request.Input.Payload.Text
	if text == nil {
		return errors.New("input.payload.text: required")
	}
	if err := progress("counting"); err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(answerTo(*text)); err != nil {
		return fmt.Errorf("write answer: %w: %w", err, errTryAgain)
	}
	return nil
}

// An answer becomes the output of the result. Only a summary is asked for;
// everything else is our own.
type answer struct {
	Summary   string  `json:"summary"`
	Words     int     `json:"words"`
	Different int     `json:"different"`
	Frequent  []count `json:"most_frequent"`
}

type count struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

// most is how many of the frequent words are worth telling.
const most = 5

func answerTo(text string) answer {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number) && r != '\'' && r != '’'
	})
	times := map[string]int{}
	for _, word := range words {
		times[word]++
	}
	frequent := []count{}
	for word, n := range times {
		frequent = append(frequent, count{word, n})
	}
	slices.SortFunc(frequent, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
	})
	return answer{
		Summary:   fmt.Sprintf("The text has %d words, %d of them different.", len(words), len(times)),
		Words:     len(words),
		Different: len(times),
		Frequent:  frequent[:min(most, len(frequent))],
	}
}

// progress shows a sign of life, if anybody looks.
func progress(note string) error {
	path := os.Getenv("MAILBOX_PROGRESS_FILE")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "{\"note\":%q}\n", note)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("write progress: %w: %w", err, errTryAgain)
	}
	return nil
}
