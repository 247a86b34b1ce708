package mcpserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// toolList is what every model reads before its first word, so it is kept
// short.
//
//go:embed tools.json
var toolList []byte

// A tool is one entry of the list, its schemas as they are written there.
type tool struct {
	Name         string         `json:"name"`
	Description  string         `json:"description"`
	InputSchema  jsontext.Value `json:"inputSchema"`
	OutputSchema jsontext.Value `json:"outputSchema"`
	Annotations  *annotations   `json:"annotations"`
}

// annotations are what the protocol assumes the worst of when it is not said.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// tools returns the list.
func tools() []tool {
	var list []tool
	if err := json.Unmarshal(toolList, &list, json.RejectUnknownMembers(true)); err != nil {
		panic("read tools.json: " + err.Error())
	}
	return list
}

// addTools joins the list with what does the work.
func (s *server) addTools() {
	work := map[string]func(signature) mcp.ToolHandler{
		"list_agents":   handle(s.listAgents),
		"send_task":     handle(s.sendTask),
		"read_result":   handle(s.readResult),
		"wait_result":   handle(s.waitResult),
		"list_tasks":    handle(s.listTasks),
		"show_task":     handle(s.showTask),
		"cancel_task":   handle(s.cancelTask),
		"claim_task":    handle(s.claimTask),
		"submit_result": handle(s.submitResult),
	}
	for _, t := range tools() {
		s.mcp.AddTool(t.described(), work[t.Name](signatureOf(t)))
	}
}

func (t tool) described() *mcp.Tool {
	described := &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
	if a := t.Annotations; a != nil {
		described.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
	}
	return described
}

// A call is a request for a tool, for those that need more than its arguments.
type call struct {
	session  *mcp.ServerSession
	progress any // the token to report progress under; nil: nobody asked
}

// handle makes handlers of a function with arguments and an answer of its own
// types. Arguments are decoded from what came on the wire, because the SDK
// would round the numbers of a payload. What goes wrong is told to the model,
// which may do something about it.
func handle[In any, Out any](do func(context.Context, call, In) (Out, error)) func(signature) mcp.ToolHandler {
	return func(takes signature) mcp.ToolHandler {
		return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			in, err := decode[In](takes, jsontext.Value(r.Params.Arguments))
			if err != nil {
				return failure(err), nil
			}
			out, err := do(ctx, call{session: r.Session, progress: r.Params.GetProgressToken()}, in)
			if err != nil {
				return failure(explained(err)), nil
			}
			text, err := json.Marshal(out)
			if err != nil {
				return failure(err), nil
			}
			return &mcp.CallToolResult{
				Content:           []mcp.Content{&mcp.TextContent{Text: string(text)}},
				StructuredContent: jsontext.Value(text),
			}, nil
		}
	}
}

// decode checks and decodes the arguments of a tool.
func decode[In any](takes signature, raw jsontext.Value) (in In, err error) {
	if err := takes.check(raw); err != nil || len(raw) == 0 {
		return in, err
	}
	if err := json.Unmarshal(raw, &in, json.RejectUnknownMembers(true)); err != nil {
		return in, unreadable(err)
	}
	return in, nil
}

func failure(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}, IsError: true}
}

// explained adds what helps.
func explained(err error) error {
	if errors.Is(err, client.ErrDown) {
		return fmt.Errorf("%w; a person can start it with: mailboxd serve", err)
	}
	return err
}

// survive answers in the place of a handler that panicked, and keeps the server
// up for the others. Each error that a handler returns has a code from then on.
func (s *server) survive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			s.opts.Log.Error().Str("method", method).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("mcp request panicked")
			broken := errors.New("mailboxd mcp has a bug here; its log says where")
			if result, err = nil, coded(broken, jsonrpc.CodeInternalError); method == "tools/call" {
				result, err = failure(broken), nil
			}
		}()
		if result, err = next(ctx, method, r); err != nil {
			err = coded(err, jsonrpc.CodeInternalError)
		}
		return result, err
	}
}

// taskID reads the task_id of some arguments.
func taskID(text string) (envelope.ID, error) {
	id, err := envelope.ParseID(text)
	if err != nil {
		return "", fmt.Errorf("task_id: %w", err)
	}
	return id, nil
}
