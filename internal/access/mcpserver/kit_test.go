package mcpserver_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// versions are the oldest handshake that editors still use, and the newest one
// that the SDK knows.
var versions = []string{"2025-06-18", mcp.SupportedProtocolVersions()[0]}

// An editor is a client at one end of a transport.
type editor struct{ *mcp.ClientSession }

// connect serves a mailbox to an editor until the test is over.
func connect(t *testing.T, version string, box mcpserver.Mailbox, opts mcpserver.Options, received *mcp.ClientOptions) editor {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := mcpserver.Serve(ctx, there, box, opts); err != nil {
			t.Error(err)
		}
	})
	session, err := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, received).
		Connect(ctx, here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	t.Cleanup(func() {
		if session != nil {
			session.Close()
		}
		stop()
		serving.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return editor{session}
}

// call calls a tool and returns its answer; what the model was told when it
// failed is an error.
func (e editor) call(ctx context.Context, name, arguments string) (map[string]jsontext.Value, error) {
	result, err := e.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: jsontext.Value(arguments)})
	if err != nil {
		return nil, err
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return nil, errors.New(text)
	}
	var answer map[string]jsontext.Value
	return answer, json.Unmarshal([]byte(text), &answer)
}

// empty is a mailbox that nobody has served, where nothing can be sent.
func empty(t *testing.T) mcpserver.Mailbox {
	return mcpserver.Mailbox{
		Root:   t.TempDir(),
		Agents: func() ([]mcpserver.Agent, error) { return nil, nil },
		Read:   func(_ context.Context, do func(*client.Client) error) error { return do(nil) },
		Send: func(context.Context, []byte) (func(context.Context) (bool, error), error) {
			return nil, errors.New("no space left on device")
		},
		Watch: func(ctx context.Context, look func()) error {
			look()
			<-ctx.Done()
			return nil
		},
		Daemon: func(context.Context) (*client.Client, error) { return nil, client.ErrDown },
	}
}
