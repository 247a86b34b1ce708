package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// The files of a run directory that only an agent has with which there is more to
// say than its request.
const (
	conversationFile = "conversation.jsonl" // the request and what was said about it, a message a line
	systemFile       = "system_prompt.txt"  // what its definition tells it (CAP-02)
)

// Speaks returns the dialect in which the agent is asked, and answers.
func (b Binding) Speaks() envelope.Dialect { return cmp.Or(b.Dialect, envelope.AINL) }

func (b Binding) checkDialect() error {
	if _, ok := dialect.Of(b.Speaks()); !ok {
		return fmt.Errorf("dialect: %q is not one of ainl, clowl, cap", b.Dialect)
	}
	if b.Worker != nil && b.Speaks() != envelope.AINL {
		return errors.New("dialect: a worker speaks ainl")
	}
	return nil
}

// converses reports whether the agent gets the conversation: always where it is
// one, and in AINL when something was said beside the request.
func (g *Agent) converses(j task.Job) bool {
	return g.binding.Speaks() != envelope.AINL || len(j.Conversation) > 0
}

// brief writes what the agent reads of the job beside the prompt.
func (g *Agent) brief(j task.Job) error {
	if err := create(inDir(j, requestFile), dialect.Retell(j.Task, g.binding.Speaks())); err != nil {
		return err
	}
	if d := g.binding.Definition; d != nil {
		if err := create(inDir(j, systemFile), []byte(d.SystemPrompt)); err != nil {
			return err
		}
	}
	if g.converses(j) {
		return create(inDir(j, conversationFile), g.conversation(j))
	}
	return nil
}

// conversation is the request, as it stands in its file, and what was said since,
// in the agent's dialect.
func (g *Agent) conversation(j task.Job) []byte {
	codec, _ := dialect.Of(g.binding.Speaks())
	request := jsontext.Value(slices.Clone(dialect.Retell(j.Task, g.binding.Speaks())))
	_ = request.Compact() // a request that somebody printed may take several lines
	b := append(request, '\n')
	for _, m := range j.Conversation {
		line, _ := codec.Encode(m)
		b = append(append(b, line...), '\n')
	}
	return b
}

// addFiles says where the files are that this run has.
func (g *Agent) addFiles(f *facts, j task.Job) {
	if g.converses(j) {
		f.ConversationFile = inDir(j, conversationFile)
	}
	if g.binding.Definition != nil {
		f.SystemFile = inDir(j, systemFile)
	}
}
