package brokered

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/runner"
)

// readFrom reads a file of a run directory from a place on.
func readFrom(dir, name string, from int64) ([]byte, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func unavailable(why string) envelope.ToolReturn {
	return envelope.ToolReturn{Failure: envelope.Failure{Kind: envelope.DependencyFailed, Code: envelope.ToolUnavailable, Message: why}}
}

func failed(why string) envelope.ToolReturn {
	return envelope.ToolReturn{Failure: envelope.Failure{Kind: envelope.DependencyFailed, Message: why}}
}

// returnedSince returns what came of calls that were made one after the other, from a place in the record
// of their broker on.
func returnedSince(dir string, from int64) (all []envelope.ToolReturn, err error) {
	text, err := readFrom(dir, broker.CallsFile, from)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		data := readLine(line)
		switch use := cmp.Or(data.Called, data.Refused); {
		case use == nil || !strings.Contains(use.Tool, "/"): // a question, or a server that didn't list its tools
		case data.Refused != nil:
			all = append(all, refused(*use))
		default:
			r, err := resultOf(dir, *use)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// refused returns why a call was refused.
func refused(use task.ToolUse) envelope.ToolReturn {
	r := failed(use.Why)
	if server, unnamed := strings.CutSuffix(use.Tool, "/"); unnamed {
		const why = "mcp:%s names no tool, and the run has not just one of that server: name it, as mcp:%s/TOOL"
		r.Failure.Message = fmt.Sprintf(why, server, server)
	}
	if r.Failure.Kind = cmp.Or(use.Kind, envelope.PolicyViolation); r.Failure.Kind == envelope.DependencyFailed {
		r.Failure.Code = envelope.ToolUnavailable
	}
	return r
}

// resultOf returns what a tool returned, which its broker has kept in a file.
func resultOf(dir string, use task.ToolUse) (envelope.ToolReturn, error) {
	if use.Result == "" {
		return unavailable(use.Why), nil
	}
	lost := failed("the tool was called, and its result is lost")
	text, err := keptResult(dir, use.ID)
	if runner.Passing(err) {
		return lost, err
	}
	if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != use.Result {
		return lost, nil
	}
	if use.Failed {
		return failed(textsOf(text)), nil
	}
	return envelope.ToolReturn{Result: text}, nil
}

func keptResult(dir, id string) ([]byte, error) {
	f, err := open(dir, broker.BodiesFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return broker.Result(f, id)
}

// textsOf returns the texts in the result of a tool.
func textsOf(result jsontext.Value) string {
	var data struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	var texts []string
	if json.Unmarshal(result, &data, lenient) == nil {
		for _, content := range data.Content {
			texts = append(texts, content.Text)
		}
	}
	return cmp.Or(strings.TrimSpace(strings.Join(texts, "\n")), "the tool failed, and doesn't say why")
}
