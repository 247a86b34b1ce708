// Package broker offers the agent of one run the tools of MCP servers that it may use, as one MCP server.
// It is a process beside the keeper, outside of the sandbox of the run, and ends with the run. It has
// the credentials of the servers; the agent never sees them.
//
// What others rely on:
//   - A run whose list of tools has entries such as mcp:github/get_issue has MAILBOX_MCP_URL, the address
//     of a stateless streamable HTTP server on 127.0.0.1, and MAILBOX_MCP_TOKEN_FILE, the path of a file
//     with the token that each request has as "Authorization: Bearer TOKEN". Other runs have neither.
//   - Tools are named server__tool. tools/list has the allowed ones only, and a call of another one is an
//     invalid parameter, "unknown tool".
//   - What is refused, or fails, is a result with isError and a text that says why.
//   - A call is sent to a server at most once. It is in calls.jsonl of the run directory before that, and
//     its arguments are in calls.bodies.
//   - "mailboxd broker" reads a Config from standard input. With listen in it, the command needs no
//     keeper, prints the address, and serves until it gets SIGTERM.
//   - "mailboxd broker call" makes the calls for which the agent of an earlier run asked in messages. It reads
//     an Asked from standard input, and the broker of its own run records what comes of each.
package broker

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	machine "mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/gate"
	"mailboxd/internal/sandboxing/sandbox"
)

// Files of a run directory.
const (
	TokenFile   = "mcp.token"
	CallsFile   = "calls.jsonl"   // what the broker did and asks, one JSON object a line
	AnswersFile = "calls.answers" // what was decided about its questions
	BodiesFile  = "calls.bodies"  // their arguments and results, one JSON object a line
)

// DefaultLimit is how many calls a run may make.
const DefaultLimit = 50

// A Config is what a broker gets on standard input. It has the secrets of the servers.
type Config struct {
	Dir     string          `json:"dir"`              // the run directory
	Token   string          `json:"token"`            // that requests need
	Listen  string          `json:"listen,omitzero"`  // such as 127.0.0.1:0; "": the keeper passes a listener
	Boxed   bool            `json:"boxed,omitzero"`   // the listener comes out of a sandbox
	Servers []Server        `json:"servers"`          // that the list of tools names
	Tools   []string        `json:"tools"`            // that the run may use, such as mcp:github/get_issue
	Calls   *task.CallRules `json:"calls,omitzero"`   // nil: what the list has is allowed
	Limit   int             `json:"limit,omitzero"`   // of calls; 0: DefaultLimit
	Known   string          `json:"known,omitzero"`   // the directory that remembers tools; "": nothing does
	Timeout task.Duration   `json:"timeout,omitzero"` // of one call; 0: five minutes
}

// A Server is an MCP server with what it needs to be started.
type Server struct {
	Service task.Service `json:"service"`
	Env     []string     `json:"env,omitzero"`     // the whole environment of a child
	Secrets []string     `json:"secrets,omitzero"` // NAME=VALUE: replaced by the name in all that the agent gets
	Bearer  string       `json:"bearer,omitzero"`
}

// Encode returns a configuration as Main reads it.
func (c Config) Encode() (string, error) {
	text, err := json.Marshal(c)
	return string(text), err
}

// Main is the command of a broker.
func Main(args []string) error {
	if len(args) == 1 && args[0] == CallArgument {
		return callAsked()
	}
	var c Config
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 16<<20))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil && (len(args) > 0 || c.Dir == "" || c.Token == "") {
		err = errors.New("it needs a dir and a token, and no arguments")
	}
	if err != nil {
		return fmt.Errorf("%s: read configuration from standard input: %w", runner.BrokerName, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := c.listen()
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	if c.Listen == "" {
		unix.CloseOnExec(runner.BrokerLifeline)
		end := os.NewFile(runner.BrokerLifeline, "lifeline")
		watching.Go(func() {
			_, _ = io.Copy(io.Discard, end) // ends with the keeper
			stop()
		})
	}
	debug.SetGCPercent(200) // each message takes buffers of 32 KiB
	machine.UnmapProgram()  // a broker lives as long as its run
	return Serve(ctx, c, l) // the process ends, and the wait for the keeper with it
}

// listen returns the listener of the keeper, of the sandbox, or of its own.
func (c Config) listen() (net.Listener, error) {
	if c.Listen != "" {
		l, err := net.Listen("tcp", c.Listen)
		if err == nil {
			fmt.Printf("http://%s/mcp\n", l.Addr())
		}
		return l, err
	}
	unix.CloseOnExec(runner.BrokerSocket)
	if c.Boxed {
		return gate.Receive(runner.BrokerSocket)
	}
	f := os.NewFile(runner.BrokerSocket, "listener")
	defer f.Close()
	return net.FileListener(f)
}

// A broker serves one run.
type broker struct {
	Config
	servers map[string]*server
	known   known
	record  record
	answers answers
	schemas sync.Map       // of arguments: *schema.Set by text
	work    sync.WaitGroup // that waits for the ends of servers
}

// Serve serves the tools of a run until ctx ends, and ends all servers then.
func Serve(ctx context.Context, c Config, l net.Listener) error {
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	if c.Timeout <= 0 {
		c.Timeout = task.Duration(5 * time.Minute)
	}
	b := &broker{Config: c, servers: map[string]*server{}, known: known{dir: c.Known}, answers: answers{path: c.Dir + "/" + AnswersFile}}
	for _, s := range c.Servers {
		b.servers[s.Service.Server] = &server{Server: s, work: &b.work}
	}
	if err := b.record.open(c.Dir); err != nil {
		l.Close()
		return err
	}
	defer b.record.close()
	defer b.work.Wait()
	defer b.end()
	const headerTimeout = 30 * time.Second
	web := &http.Server{Handler: b.authorized(answered(b.handler())), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: 16 << 10}
	web.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { web.Close() })()
	err := web.Serve(l)
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve tools: %w", err)
}

// end ends all servers, each in its own time.
func (b *broker) end() {
	var ending sync.WaitGroup
	for _, s := range b.servers {
		ending.Go(s.end)
	}
	ending.Wait()
}

// authorized refuses requests without the token of the run.
func (b *broker) authorized(next http.Handler) http.Handler {
	want := []byte("Bearer " + b.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "mailboxd: the token of the run is in the file that "+sandbox.ToolsTokenVariable+" names", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// handler returns the MCP server. It answers two methods itself; what it offers beside them is nothing.
func (b *broker) handler() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "mailboxd", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			defer keepAlive(ctx)()
			switch method {
			case "tools/list":
				return b.list(ctx)
			case "tools/call":
				if p, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
					return b.call(ctx, p)
				}
			}
			return next(ctx, method, r)
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 4 * maxBody,
	})
}
