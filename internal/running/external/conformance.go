package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
)

// conformanceFlag has the host be the client of @modelcontextprotocol/conformance, which appends the
// address of its server.
const conformanceFlag = "--conformance"

// conformanceTimeout is less than the tests wait for a client.
const conformanceTimeout = 20 * time.Second

// conform calls each tool of a server once, each as the run of an agent does, and fails if one has no answer.
func conform(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s %s: give the address of one server", Name, conformanceFlag)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, conformanceTimeout)
	defer cancel()
	service := task.Service{Server: "conformance", URL: args[0]}
	calls, err := exampleCalls(ctx, service)
	if err != nil {
		return err
	}
	for _, call := range calls {
		err = errors.Join(err, callAlone(ctx, call))
	}
	return err
}

// callAlone calls the tool of a service in a run directory of its own.
func callAlone(ctx context.Context, s task.Service) error {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h := &host{Options: Options{Service: s, Request: []byte(`{}`), Dir: dir, RunID: s.Tool, Stdout: io.Discard, Stderr: os.Stderr}}
	if r := h.ask(ctx); r.Kind != "" {
		return fmt.Errorf("%s: %s", r.Kind, r.Message)
	}
	return nil
}

// exampleCalls returns a call of each tool of a server, with the arguments that its schema requires.
func exampleCalls(ctx context.Context, s task.Service) (calls []task.Service, err error) {
	h := &host{Options: Options{Service: s}}
	if err := h.address(); err != nil {
		return nil, err
	}
	server, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer server.end()
	for tool, err := range server.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		call := s
		call.Tool = tool.Name
		if call.Arguments, err = exampleArguments(tool.InputSchema); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", tool.Name, err)
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// exampleArguments returns an object with a value for each required member of a schema.
func exampleArguments(schema any) ([]byte, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var of struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, err
	}
	examples := map[string]any{"boolean": true, "array": []any{}, "object": map[string]any{}, "string": "text"}
	arguments := map[string]any{}
	for _, name := range of.Required {
		kind := of.Properties[name].Type
		if value, ok := examples[kind]; ok {
			arguments[name] = value
		} else if slices.Contains([]string{"number", "integer"}, kind) {
			arguments[name] = 2
		}
	}
	return json.Marshal(arguments, json.Deterministic(true))
}
