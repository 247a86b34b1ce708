package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocols are the oldest one that editors still speak, and the newest that
// the SDK knows.
var protocols = []string{"2025-06-18", mcp.SupportedProtocolVersions()[0]}

// An mcpEditor has started a mailboxd mcp of its own.
type mcpEditor struct {
	*mcp.ClientSession
	t        *testing.T
	server   *exec.Cmd
	changed  chan string    // resources that it was told of
	progress chan string    // of calls that go on
	calls    sync.WaitGroup // that run beside the test
}

// editor starts an editor that speaks a protocol.
func (m *manager) editor(protocol string) *mcpEditor { return m.editorAs("ed", protocol) }

// editorAs starts an editor with a name of its own.
func (m *manager) editorAs(name, protocol string) *mcpEditor {
	m.t.Helper()
	e := &mcpEditor{t: m.t, changed: make(chan string, 100), progress: make(chan string, 100)}
	cmd := exec.Command("mailboxd", "mcp", "--config", filepath.Join(m.dir, "config.yaml"), "--as", name)
	cmd.Env, cmd.Stderr = m.env, os.Stderr
	e.server = cmd
	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			select {
			case e.changed <- r.Params.URI:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case e.progress <- r.Params.Message:
			default:
			}
		},
	})
	var err error
	if e.ClientSession, err = client.Connect(m.t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: protocol}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		e.Close()
		e.calls.Wait()
	})
	return e
}

// ask calls a tool and decodes its structured answer.
func (e *mcpEditor) ask(tool, arguments string, answer any) error {
	result, err := e.CallTool(e.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: jsontext.Value(arguments)})
	if err != nil {
		return err
	}
	return e.decode(result, answer)
}

// decode reads the structured answer of a tool.
func (e *mcpEditor) decode(result *mcp.CallToolResult, answer any) error {
	if result.IsError {
		return errors.New(result.Content[0].(*mcp.TextContent).Text)
	}
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// must is ask for what has to work.
func (e *mcpEditor) must(tool, arguments string, answer any) {
	e.t.Helper()
	if err := e.ask(tool, arguments, answer); err != nil {
		e.t.Fatalf("%s(%s): %v", tool, arguments, err)
	}
}

// ended is what read_result and wait_result answer.
type ended struct {
	Finished bool   `json:"finished"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Result   struct {
		Status string `json:"status"`
		Output struct {
			Summary string `json:"summary"`
		} `json:"output"`
		Error struct {
			Kind string `json:"kind"`
		} `json:"error"`
	} `json:"result"`
}

// exhibit is what show_task answers.
type exhibit struct {
	Parent string `json:"parent"`
	Task   struct {
		State     string `json:"state"`
		Requester string `json:"requester"`
	} `json:"task"`
}

// wait waits for the end of a task, however many calls that takes.
func (e *mcpEditor) wait(id string) (end ended) {
	e.t.Helper()
	for range 3 {
		if e.must("wait_result", fmt.Sprintf(`{"task_id":%q}`, id), &end); end.Finished {
			return end
		}
	}
	e.t.Fatalf("task %s has not ended: %+v", id, end)
	return end
}

// configure writes the configuration of the daemon and of the editors.
func (m *manager) configure(config string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		m.t.Fatal(err)
	}
}
