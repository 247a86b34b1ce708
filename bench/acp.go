package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// playACP makes this program an agent that asks before its calls, over the Agent Client Protocol.
const playACP = "play-acp"

// askedCalls is the number of calls about which an agent asks, one after the other.
const askedCalls = 500

// An acpReport is the answer of the agent: what it measured.
type acpReport struct {
	P50  float64 `json:"p50_ms"` // of a question, until its answer
	P99  float64 `json:"p99_ms"`
	RSS  float64 `json:"host_mb"`      // resident memory of its host, after the last answer
	Peak float64 `json:"host_peak_mb"` // at most, which is at its start
}

// acp measures how long an agent waits for the answer to a call that a rule allows.
func acp(ctx context.Context, l *lab) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	rows := []row{
		{who: "answer to an allowed call, p50", tasks: askedCalls, unit: "ms"},
		{who: "answer to an allowed call, p99", tasks: askedCalls, unit: "ms"},
		{who: "RSS of the host", unit: "MB"}, {who: "its peak, when it started", unit: "MB"},
	}
	const binding = "profile: acp, exec: {command: ['%s', %s]}, acp: {rules: [{kind: read, do: allow}]}, allow_unmetered: true"
	p := plan{slots: 1, agent: fmt.Sprintf(binding, self, playACP)}
	for range l.rounds {
		err := l.in(ctx, func(dir string) error {
			var report acpReport
			h, _, err := l.drain(ctx, dir, p, 1)
			if err == nil {
				report, err = h.acpReport()
			}
			for i, figure := range []float64{report.P50, report.P99, report.RSS, report.Peak} {
				rows[i].got = append(rows[i].got, figure)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// acpReport reads what the agent measured from the result of its task.
func (h *daemon) acpReport() (r acpReport, err error) {
	raw, err := os.ReadFile(filepath.Join(h.results(), id(0)+".json"))
	if err != nil {
		return r, err
	}
	var result struct{ Output struct{ Summary string } }
	if err := json.Unmarshal(raw, &result); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(result.Output.Summary), &r); err != nil {
		return r, fmt.Errorf("read report %q: %w", result.Output.Summary, err)
	}
	return r, nil
}

// An acpFrame is a message of the protocol.
type acpFrame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
}

// An object is a JSON object.
type object = map[string]any

// askForCalls is an agent of the protocol: to a prompt, it asks about calls, and answers with how long
// that took.
func askForCalls(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2<<20)
	send := func(f acpFrame) error {
		f.Version = "2.0"
		line, err := json.Marshal(f)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		return err
	}
	for lines.Scan() {
		var f acpFrame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return err
		}
		var err error
		switch f.Method {
		case "initialize":
			err = send(acpFrame{ID: f.ID, Result: object{"protocolVersion": 1, "agentCapabilities": object{}}})
		case "session/new":
			err = send(acpFrame{ID: f.ID, Result: object{"sessionId": "s"}})
		case "session/prompt":
			if err = reportCalls(lines, send); err == nil {
				err = send(acpFrame{ID: f.ID, Result: object{"stopReason": "end_turn"}})
			}
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// reportCalls asks about calls, and sends what it measured as the words of the agent.
func reportCalls(lines *bufio.Scanner, send func(acpFrame) error) error {
	var took []float64
	for n := range askedCalls {
		call := object{"toolCallId": fmt.Sprint("c", n), "kind": "read", "title": "Read a", "locations": []object{{"path": "a"}}}
		options := []object{{"optionId": "y", "name": "Allow", "kind": "allow_once"}, {"optionId": "n", "name": "Reject", "kind": "reject_once"}}
		began := time.Now()
		if err := send(acpFrame{ID: fmt.Appendf(nil, "%d", n), Method: "session/request_permission", Params: object{
			"sessionId": "s", "toolCall": call, "options": options,
		}}); err != nil {
			return err
		}
		if !lines.Scan() {
			return io.ErrUnexpectedEOF
		}
		took = append(took, time.Since(began).Seconds()*1000)
		var reply struct {
			Result struct{ Outcome struct{ OptionID string } }
		}
		if err := json.Unmarshal(lines.Bytes(), &reply); err != nil || reply.Result.Outcome.OptionID != "y" {
			return fmt.Errorf("call %d was not allowed: %s", n, lines.Bytes())
		}
	}
	host, err := status(os.Getppid())
	if err != nil {
		return err
	}
	words, err := json.Marshal(acpReport{quantile(took, 0.5), quantile(took, 0.99), host.rss / 1e6, host.peak / 1e6})
	if err != nil {
		return err
	}
	return send(acpFrame{Method: "session/update", Params: object{"sessionId": "s", "update": object{
		"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": string(words)},
	}}})
}
