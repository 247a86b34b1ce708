package broker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schema"
)

// maxBody limits the arguments and the result of a call, in bytes.
const maxBody = 1 << 20

// divider stands between a server and its tool. No id of a server has it.
const divider = "__"

// list lists the allowed tools of all servers. A server that can't be used has none; a call says why.
func (b *broker) list(ctx context.Context) (*mcp.ListToolsResult, error) {
	all := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: mcp.Cacheable{CacheScope: "private"}} // asked again each time
	for _, id := range slices.Sorted(maps.Keys(b.servers)) {
		tools, err := b.servers[id].tools(ctx)
		if err != nil {
			b.refuse(task.ToolUse{Tool: id, Failed: true, Why: "the server can't be used: " + err.Error()})
			continue
		}
		for _, tool := range tools {
			if policy.ListsMCP(b.Tools, id+"/"+tool.Name) {
				all.Tools = append(all.Tools, b.shown(id, tool))
			}
		}
	}
	return all, nil
}

// shown returns a tool as the agent sees it. Nobody has agreed to the words of a changed one.
func (b *broker) shown(server string, tool *mcp.Tool) *mcp.Tool {
	own := *tool
	own.Name = server + divider + tool.Name
	if b.hasChanged(server+"/"+tool.Name, tool) {
		own.Title, own.Annotations, own.Meta, own.OutputSchema = "", nil, nil, nil
		own.Description = "This tool has changed since it was used last. A call waits until a person approves it."
		own.InputSchema = map[string]any{"type": "object"}
	}
	return &own
}

// hasChanged reports whether a tool isn't the one that was used before, and records the change once.
func (b *broker) hasChanged(name string, tool *mcp.Tool) bool {
	changed, isNew := b.known.check(name, digestOf(tool))
	if changed && isNew {
		b.record.line("changed", task.ToolUse{Tool: name, Why: "its description or schema isn't the one that was used before"})
	}
	return changed
}

// definition returns all that a model reads of a tool.
func definition(tool *mcp.Tool) []byte {
	text, err := json.Marshal(tool)
	if err != nil {
		return []byte(err.Error()) // it came as JSON
	}
	return text
}

func digestOf(tool *mcp.Tool) string { return digest(definition(tool)) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// errUnknown is a call of a tool that the run doesn't have.
func errUnknown(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

// call decides about a call, makes it, and records it.
func (b *broker) call(ctx context.Context, p *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	id, name, _ := strings.Cut(p.Name, divider)
	s, full := b.servers[id], id+"/"+name
	arguments := []byte(p.Arguments)
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	use := task.ToolUse{Tool: cut(full), Arguments: digest(arguments)}
	refused := func(kind envelope.Kind, format string, args ...any) (*mcp.CallToolResult, error) {
		use.Kind, use.Why = kind, s.redacted(fmt.Sprintf(format, args...))
		b.refuse(use)
		return failure(p.Name, use.Why), nil
	}
	if s == nil || !policy.ListsMCP(b.Tools, full) {
		use.Kind, use.Why = envelope.PolicyViolation, "the run has no such tool"
		b.refuse(use)
		return nil, errUnknown(p.Name)
	}
	if !b.record.count(b.Limit) {
		return refused(envelope.Capacity, "a run may make %d calls, and has made them", b.Limit)
	}
	if len(arguments) > maxBody {
		return refused(envelope.ValidationFailed, "the arguments have more than %d bytes", maxBody)
	}
	tools, err := s.tools(ctx)
	if err != nil {
		return refused(envelope.DependencyFailed, "the server %s can't be used: %v", id, err)
	}
	at := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == name })
	if at < 0 {
		use.Kind, use.Why = envelope.DependencyFailed, "the server has no such tool"
		b.refuse(use)
		return nil, errUnknown(p.Name)
	}
	if err := b.checkArguments(tools[at].InputSchema, arguments); err != nil {
		return refused(envelope.ValidationFailed, "the arguments don't fit the schema of the tool: %v", err)
	}
	use.ID = rand.Text() // nobody can guess it, and ask about it before
	if why := b.decide(ctx, full, tools[at], use.ID, arguments); why != "" {
		return refused(envelope.PolicyViolation, "%s", why)
	}
	return b.send(ctx, s, p, name, arguments, use)
}

// toolSchema is the name of the schema of a tool, for the compiler alone.
const toolSchema = "schema://mcp/tool"

// checkArguments compares arguments with the schema of a tool.
func (b *broker) checkArguments(of any, arguments []byte) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	compiled, there := b.schemas.Load(string(text))
	if !there {
		set, err := schema.One(toolSchema, text)
		if err != nil {
			return fmt.Errorf("the schema can't be used: %w", err)
		}
		compiled, _ = b.schemas.LoadOrStore(string(text), set) // at most one a call
	}
	if err := compiled.(*schema.Set).Check(toolSchema, arguments); err != nil {
		return err
	}
	if jsontext.Value(arguments).Kind() != '{' {
		return errors.New("they are no object")
	}
	return nil
}

// decide decides about a call, or waits for a person. It returns why the call is refused; "" if not.
func (b *broker) decide(ctx context.Context, full string, tool *mcp.Tool, id string, arguments []byte) string {
	call := task.Call{ID: id, Kind: task.CallOther, Title: full, Raw: arguments, MCP: full}
	if b.hasChanged(full, tool) {
		call.Changed = string(definition(tool))
	}
	answer, why := policy.DecideCall(call, task.Terms{Tools: b.Tools, Calls: b.Calls})
	if answer != task.AskPerson {
		if answer == task.AllowCall {
			return ""
		}
		return why
	}
	if err := b.record.line("ask", call); err != nil {
		return fmt.Sprintf("a person can't be asked: %v", err)
	}
	awaited, stop := whileAwaited(ctx)
	defer stop()
	a, err := b.answers.await(awaited, id)
	switch {
	case err != nil:
		return fmt.Sprintf("nobody has decided about the call: %v", err)
	case a.Decision != task.AllowCall:
		return cmp.Or(a.Reason, "a person rejected the call")
	case call.Changed != "":
		if err := b.known.accept(full, digestOf(tool)); err != nil {
			return fmt.Sprintf("the approved definition can't be kept: %v", err)
		}
	}
	return ""
}

// send makes a call once, and records it before and after.
func (b *broker) send(
	ctx context.Context, s *server, p *mcp.CallToolParamsRaw, name string, arguments []byte, use task.ToolUse,
) (*mcp.CallToolResult, error) {
	err := b.record.keep(body{ID: use.ID, Arguments: string(arguments)})
	if err == nil {
		err = b.record.line("sent", use)
	}
	if err != nil {
		use.Kind, use.Why = envelope.InternalError, fmt.Sprintf("nothing was sent, since the call can't be recorded: %v", err)
		b.refuse(use)
		return failure(p.Name, use.Why), nil
	}
	began := time.Now()
	result, text, err := s.call(ctx, time.Duration(b.Timeout), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	use.TookMS = time.Since(began).Milliseconds()
	switch {
	case err != nil:
		use.Failed, use.Why = true, s.redacted(err.Error())
		result = failure(p.Name, use.Why)
	case len(text) > maxBody:
		use.Failed, use.Why = true, fmt.Sprintf("the result has more than %d bytes", maxBody)
		result = failure(p.Name, use.Why)
	default:
		use.Result, use.Failed = digest(text), result.IsError
		use.Tokens, use.USDCents = usage(text)
		if err := b.record.keep(body{ID: use.ID, Result: string(text)}); err != nil {
			use.Why = fmt.Sprintf("the result isn't kept: %v", err)
		}
	}
	_ = b.record.line("called", use) // the call was made: the agent gets its result
	return result, nil
}

// usage returns what a result says in _meta.usage that the call used; 0 for what it doesn't say.
func usage(result []byte) (tokens, cents int64) {
	var data struct {
		Meta struct {
			Usage struct {
				Tokens   int64 `json:"tokens"`
				Input    int64 `json:"input_tokens"`
				Output   int64 `json:"output_tokens"`
				USDCents int64 `json:"usd_cents"`
			} `json:"usage"`
		} `json:"_meta"`
	}
	if json.Unmarshal(result, &data) != nil {
		return 0, 0
	}
	const most = 1 << 40 // so that the sum of a run fits
	of := func(n int64) int64 { return min(max(n, 0), most) }
	u := data.Meta.Usage
	return max(of(u.Tokens), of(u.Input)+of(u.Output)), of(u.USDCents)
}

func (b *broker) refuse(use task.ToolUse) { _ = b.record.line("refused", use) }

// failure tells the agent why a call failed.
func failure(tool, why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "mailboxd: " + tool + ": " + why}}}
}

// cut shortens what an agent wrote for a record.
func cut(text string) string {
	const most = 200
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// redact replaces secrets by their names.
func redact(text []byte, secrets []string) []byte {
	const shortest = 6 // a shorter value is likely to be something else
	for _, secret := range secrets {
		name, value, _ := strings.Cut(secret, "=")
		if len(value) >= shortest {
			text = bytes.ReplaceAll(text, []byte(value), []byte("["+name+"]"))
		}
	}
	return text
}
