package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
)

// scheme begins the name of every resource.
const scheme = "mailbox://"

// A topic is what a resource is about.
type topic struct {
	kind string // tasks or results
	id   envelope.ID
}

// topicOf reads the name of a resource, as mailbox://results/nightly. What a
// URI may not hold is spelled with percent signs in it.
func topicOf(uri string) (topic, error) {
	rest, ours := strings.CutPrefix(uri, scheme)
	kind, escaped, _ := strings.Cut(rest, "/")
	if !ours || kind != "tasks" && kind != "results" {
		return topic{}, fmt.Errorf("resource %q: is neither mailbox://tasks/ID nor mailbox://results/ID", uri)
	}
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return topic{}, fmt.Errorf("resource %q: %w", uri, err)
	}
	id, err := taskID(text)
	if err != nil {
		return topic{}, fmt.Errorf("resource %q: %w", uri, err)
	}
	return topic{kind, id}, nil
}

// addResources offers what there is of each task. There may be a million, so
// that they have a pattern and no list.
func (s *server) addResources() {
	for name, description := range map[string]string{
		"tasks":   "All that is known of a task, and why it is where it is.",
		"results": "The final result of a task; there is none until it is done.",
	} {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			Name: name, URITemplate: scheme + name + "/{id}", MIMEType: "application/json", Description: description,
		}, s.readResource)
	}
}

func (s *server) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	at, err := topicOf(uri)
	if err != nil {
		return nil, notFound(err)
	}
	text, err := s.content(ctx, at)
	if errors.Is(err, errMissing) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{URI: uri, MIMEType: "application/json", Text: string(text)},
	}}, nil
}

// notFound is the error for a name that no resource can have. The SDK gives the
// same code to a resource that is not there.
func notFound(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
}

// content is what a resource holds now; an error that wraps errMissing says that
// there is none.
func (s *server) content(ctx context.Context, at topic) (jsontext.Value, error) {
	if at.kind == "tasks" {
		file, err := s.taskDetails(ctx, at.id)
		if err != nil {
			return nil, err
		}
		return json.Marshal(file)
	}
	a, err := s.answer(ctx, at.id)
	if err == nil && !a.Finished {
		err = missing(at.id)
	}
	return a.Result, err
}
