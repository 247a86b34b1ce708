package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
)

// sendFlags describe a task, and what to do after sending it.
type sendFlags struct {
	file                                string
	agent, taskType, description, role  string
	payload, payloadFile, requester, id string
	asJSON, wait                        bool
	timeout                             time.Duration
	termFlags

	extra map[string]any // further members of the envelope
}

func sendCommand(g *globals) *cobra.Command {
	f := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send [-f FILE|-]",
		Short: "Send a task",
		Long: `Append a task line to the mailbox. The daemon checks the task when it reads the
line, now or at its next start. Describe the task with flags, or give whole lines
with -f: task envelopes, or messages of CLowl, CAP and Clutch.`,
		Example: `  mailboxd send --agent openclaw.monitor --type execute_monitor \
      --payload '{"sla_hours": 24}' --wait
  mailboxd send --agent reviewer --type review --payload-file pr.json \
      --approval pre --deadline 2h --usd-cents 50 --priority 2
  mailboxd send -f request.json
  some-program | mailboxd send -f - --wait --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return send(cmd, g, f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with tasks or messages; - is standard input")
	flags.StringVar(&f.agent, "agent", "", "target_agent: the agent that does the task")
	flags.StringVar(&f.taskType, "type", "", "task_type: the kind of work")
	flags.StringVar(&f.description, "description", "", "description: what to do, in words")
	flags.StringVar(&f.role, "role", "executor", "target_role: executor, advisor or reviewer")
	flags.StringVar(&f.payload, "payload", "", "input.payload, as JSON")
	flags.StringVar(&f.payloadFile, "payload-file", "", "file that holds input.payload")
	flags.StringVar(&f.requester, "requester", "", "requester_id: the sender (default: you)")
	flags.StringVar(&f.id, "id", "", "task_id (default: a new one)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON; with --wait, the result itself")
	flags.BoolVar(&f.wait, "wait", false, "wait for the result, and exit with its code")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait; 0: no limit")
	cmd.MarkFlagsMutuallyExclusive("payload", "payload-file")
	f.add(cmd)
	for _, part := range append([]string{"agent", "type", "description", "role", "payload", "payload-file", "requester", "id"}, termFlagNames...) {
		cmd.MarkFlagsMutuallyExclusive("file", part)
	}
	completeFlag(cmd, "agent", completeAgents(g))
	completeFlag(cmd, "after", completeTasks(g, true))
	completeFlag(cmd, "if-failed", cobra.FixedCompletions([]string{envelope.RejectIfFailed, envelope.RunIfFailed}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func send(cmd *cobra.Command, g *globals, f *sendFlags) error {
	cfg, err := g.partial(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	requests, err := f.requests(cmd)
	if err != nil {
		return err
	}
	if f.file == "" {
		if err := f.check(cmd, cfg, requests[0]); err != nil {
			return err
		}
	}
	for _, request := range requests { // before the first is sent
		if err := checkLength(cfg.Intake, request); err != nil {
			return err
		}
		near := reader.NearMisses(request, cfg.Intake.Reading(), nearMissesOf(cfg))
		if near.Refused() {
			return exit.With(exit.Usage, "not sent: %s", near)
		}
		for _, f := range near {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", term.Escape(f.String()))
		}
	}
	var all []reader.Submission
	for _, request := range requests {
		s, err := appendTask(cmd.Context(), cfg, request, f.wait)
		if err != nil {
			return err
		}
		all = append(all, s)
		if !f.wait {
			if err := s.Print(cmd.OutOrStdout(), f.asJSON); err != nil {
				return err
			}
		}
	}
	if !f.wait {
		return nil
	}
	return waitFor(cmd, locationOf(cfg), all, f.timeout, f.asJSON)
}

// check refuses a task that no daemon would take, and warns of an agent that is not
// configured: another daemon or a later one may know it.
func (f *sendFlags) check(cmd *cobra.Command, cfg config.Config, request []byte) error {
	roles, index := reader.Roles, slices.IndexFunc(cfg.Agents, func(e config.Entry) bool { return e.ID == f.agent })
	if index < 0 && len(cfg.Agents) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: no agent %q is configured, so the daemon may reject the task; see: mailboxd agents\n", f.agent)
	} else if index >= 0 {
		if m := cfg.ReadAgents()[index].Subject.Manifest; m != nil && len(m.RoleTypes) > 0 {
			roles = m.RoleTypes
		}
	}
	return reader.CheckRequest(request, roles, nearMissesOf(cfg))
}

// nearMissesOf is how strictly fields are refused that are nearly controls.
func nearMissesOf(cfg config.Config) envelope.Mode {
	return cfg.Policy.Rules().Modes[envelope.ControlNearMisses]
}

// appendTask appends a line, unless it is too long. With wait, the result can be
// awaited.
func appendTask(ctx context.Context, cfg config.Config, request []byte, wait bool) (reader.Submission, error) {
	if err := checkLength(cfg.Intake, request); err != nil {
		return reader.Submission{}, err
	}
	return locationOf(cfg).Submit(ctx, request, wait)
}

// requests returns the lines to send.
func (f *sendFlags) requests(cmd *cobra.Command) ([][]byte, error) {
	switch {
	case f.file == "-":
		return reader.Lines("standard input", cmd.InOrStdin())
	case f.file != "":
		file, err := os.Open(f.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return reader.Lines(f.file, file)
	}
	request, err := f.request(cmd)
	return [][]byte{request}, err
}

// request makes an envelope from the flags.
func (f *sendFlags) request(cmd *cobra.Command) ([]byte, error) {
	for flag, value := range map[string]string{"agent": f.agent, "type": f.taskType} {
		if value == "" {
			return nil, exit.With(exit.Usage, "--%s is needed, or -f with a whole task", flag)
		}
	}
	payload, err := f.input()
	if err != nil {
		return nil, err
	}
	id := f.id
	if _, err := envelope.ParseID(id); id != "" && err != nil {
		return nil, exit.With(exit.Usage, "--id %q %w", id, err)
	}
	if id == "" {
		unique, err := uuid.NewRandom() // its first characters are a short id; those of a UUIDv7 are the time
		if err != nil {
			return nil, err
		}
		id = unique.String()
	}
	members := map[string]any{
		"schema_version": envelope.SchemaVersion,
		"task_id":        id,
		"requester_id":   f.requesterID(),
		"target_agent":   f.agent,
		"target_role":    f.role,
		"task_type":      f.taskType,
		"description":    f.description,
		"input":          map[string]any{"refs": []any{}, "payload": payload},
	}
	terms, err := f.members(cmd, time.Now())
	if err != nil {
		return nil, err
	}
	maps.Copy(members, terms)
	maps.Copy(members, f.extra)
	return envelope.RequestLine(members)
}

func (f *sendFlags) input() (jsontext.Value, error) {
	text := []byte(f.payload)
	if f.payloadFile != "" {
		var err error
		if text, err = os.ReadFile(f.payloadFile); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return jsontext.Value("{}"), nil
	}
	value := jsontext.Value(text)
	if !value.IsValid() {
		return nil, exit.With(exit.Usage, "the payload is not JSON")
	}
	return value, nil
}

func (f *sendFlags) requesterID() string {
	if f.requester != "" {
		return f.requester
	}
	return loginName()
}

// loginName is the name of the user.
func loginName() string { return reader.UserName() }

// checkLength refuses a line that the daemon would refuse for its length.
func checkLength(i config.Intake, line []byte) error {
	if length := int64(len(line)); length > i.MaxLineBytes {
		return exit.With(exit.Usage, "the task is %d bytes long, more than the %d of intake.max_line_bytes; put large input into a file and name it in input.refs", length, i.MaxLineBytes)
	}
	return nil
}
