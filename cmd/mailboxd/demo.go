package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
	"mailboxd/mailbox"
)

func demoCommand() *cobra.Command {
	onPage := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show one task from request to result",
		Long: `Serve a mailbox in a temporary directory, send a task to a built-in agent, approve
the task, and print the result. The demo needs no configuration and no key, and it
removes the directory.

With --web, serve a mailbox full of tasks to your browser until Ctrl-C: agents work,
fail, ask each other, and wait for you.`,
		Example: "  mailboxd demo\n  mailboxd demo --web",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "mailboxd-demo-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // so that the directory is removed when the reader of a pipe ends
			if onPage {
				return demoPage(cmd.Context(), cmd.OutOrStdout(), dir)
			}
			return runDemo(cmd.Context(), cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().BoolVar(&onPage, "web", false, "show a mailbox full of tasks in your browser")
	return cmd
}

// demoTask is the request of the demo.
const demoTask = `{"schema_version": "1.0", "task_id": "demo-1", "requester_id": "demo.program", "target_agent": "demo.counter", "target_role": "executor", "task_type": "count_words", "description": "How many words does the text have?", "input": {"refs": [], "payload": {"text": "never lose a task, never run one twice"}}}`

// demoManifest requires an approval.
const demoManifest = `{"schema_version": "1.0", "agent_id": "demo.counter", "role_types": ["executor"], "available_tools": [], "requires_human_approval": {"default": true}}`

// runDemo serves a mailbox below dir, and runs one task.
func runDemo(ctx context.Context, w io.Writer, dir string) error {
	cfg, err := demoConfig(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(cfg.Root, 0o700); err != nil {
		return err
	}
	s := term.ScreenOf(w)
	fmt.Fprintln(s, s.Paint(term.Bold, "One task, from request to result"))
	step(s, 1, "A daemon serves a mailbox in %s.", cfg.Root)

	running, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	var work errgroup.Group
	work.Go(func() error {
		log := zerolog.New(zerolog.ConsoleWriter{Out: w, NoColor: !s.Colour, PartsExclude: []string{"time"}}).Level(zerolog.WarnLevel)
		return daemon.Serve(running, cfg, daemon.Options{Version: version(), Ephemeral: true}, term.Console{Log: log})
	})
	work.Go(func() error {
		defer stop()
		return roundTrip(running, s, cfg)
	})
	if err := work.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(s, "\nThe demo removes its directory now. %s:\n", s.Paint(term.Bold, "Next"))
	return nextSteps(ctx, os.Args[0]).Print(s)
}

// nextSteps lists what to type after the demo that the caller started as program, and
// what that does.
func nextSteps(ctx context.Context, program string) *term.Table {
	steps := &term.Table{}
	if strings.Contains(program, "/go-build") { // by "go run": the file is gone after it
		steps.Add(term.Cell{Text: "  " + goInstall}, term.Cell{Text: "install mailboxd"})
		program = installed(ctx)
	}
	steps.Add(term.Cell{Text: "  " + program + " init"}, term.Cell{Text: "write a configuration with a first agent"})
	steps.Add(term.Cell{Text: "  " + program + " serve"}, term.Cell{Text: "run the daemon"})
	steps.Add(term.Cell{Text: "  " + program + " doctor"}, term.Cell{Text: "check the installation"})
	return steps
}

// goInstall installs mailboxd from its checkout.
const goInstall = "go install ./cmd/mailboxd"

// installed returns what to type for the program that goInstall installs: its path
// if PATH doesn't have it.
func installed(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Target}}", "./cmd/mailboxd").Output()
	target := strings.TrimSpace(string(out))
	if err != nil || target == "" || slices.Contains(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(target)) {
		return "mailboxd"
	}
	return target
}

// roundTrip appends the task and prints its result.
func roundTrip(ctx context.Context, s term.Screen, cfg config.Config) error {
	file, _, err := mailbox.Append(cfg.Root, []byte(demoTask))
	if err != nil {
		return err
	}
	step(s, 2, "A program appends a task line to %s:\n     %q", file, "How many words does the text have?")
	if err := approveDemo(ctx, s, locationOf(cfg)); err != nil {
		return err
	}
	raw, err := reader.AwaitResult(ctx, locationOf(cfg), "demo-1")
	if err != nil {
		return err
	}
	step(s, 5, "The agent runs. The daemon writes its answer to results/demo-1.json:\n")
	return view.PrintResult(s.Writer, raw, false)
}

// approveDemo waits until the task is held, shows it, and approves it on the control
// socket.
func approveDemo(ctx context.Context, s term.Screen, at reader.Location) error {
	following, held := context.WithCancel(ctx)
	defer held()
	err := at.Watch(following, func(ctx context.Context, d *reader.Reader) error {
		task, err := d.Latest(ctx, "demo-1")
		if exit.CodeOf(err) == exit.NoTask || err == nil && !view.WaitsForApproval(task) {
			return nil // not yet
		}
		if err == nil {
			held()
		}
		return err
	})
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	step(s, 3, "The manifest of the agent requires an approval, so the task is held.\n     mailboxd ps says:\n")
	return at.Read(ctx, func(ctx context.Context, d *reader.Reader) error {
		if err := (&psFlags{}).show(ctx, d, s); err != nil {
			return err
		}
		step(s, 4, "A person approves it: mailboxd approve demo-1")
		_, err := d.Client.Approve(ctx, "demo-1", client.Decision{Note: "approved by the demo", Unseen: true})
		return err
	})
}

// step prints one numbered step of the demo.
func step(s term.Screen, number int, format string, args ...any) {
	fmt.Fprintf(s, "\n%s  "+format+"\n", append([]any{s.Paint(term.Green, fmt.Sprintf("%3d", number))}, args...)...)
}

// demoConfig is a configuration whose only agent is this program.
func demoConfig(dir string) (config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return config.Config{}, err
	}
	entry := config.DefaultEntry()
	entry.ID = "demo.counter"
	entry.Exec.Command = []string{self, "demo-agent"}
	entry.Manifest = filepath.Join(dir, "demo.counter.json")
	if err := os.WriteFile(entry.Manifest, []byte(demoManifest), 0o600); err != nil {
		return config.Config{}, err
	}
	return config.Config{
		Root:     filepath.Join(dir, "mailbox"),
		StateDir: filepath.Join(dir, "state"),
		Log:      config.Log{Level: "info", Format: "console"},
		Intake:   config.Intake{MaxLineBytes: 1 << 20, Rescan: time.Second, FirstStart: "process"},
		Limits:   config.Limits{Concurrency: 1, Queue: 100, ShutdownGrace: time.Second},
		Agents:   []config.Entry{entry},

		StopAgentsOnExit: true,
	}, nil
}

// demoAgentCommand is the demo's agent. It reads a request and prints an
// AgentTaskResult.
func demoAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-agent [ROLE]",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return demo.Act(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			request, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				return err
			}
			answer, err := countWords(request)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(answer)
			return err
		},
	}
}

func countWords(request []byte) ([]byte, error) {
	t, findings := envelope.DecodeTask(bytes.TrimSpace(request), envelope.Strict)
	if findings.Refused() {
		return nil, fmt.Errorf("read request: %s", findings)
	}
	var payload struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(t.Payload, &payload); err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	n := len(bytes.Fields([]byte(payload.Text)))
	confidence := 1.0
	r := envelope.Result{
		TaskID: t.ID, AgentID: t.Agent, Status: envelope.OK, Confidence: &confidence,
		Output: envelope.Output{
			Summary: fmt.Sprintf("The text has %d words.", n),
			Actions: []envelope.Action{{Kind: "count", Description: "Counted the words of the text.", Status: "executed"}},
			Extra:   jsontext.Value(fmt.Sprintf(`{"words":%d}`, n)),
		},
		Cost: &envelope.Cost{},
	}
	return r.Encode(), nil
}
