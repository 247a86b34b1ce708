package agent

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// Files of a run directory for agents with a conversation or a definition.
const (
	conversationFile = "conversation.jsonl" // the request and later messages, one a line
	systemFile       = "system_prompt.txt"  // the instructions of its definition (CAP-02)
)

// Speaks returns the dialect of the agent's requests and answers.
func (b Binding) Speaks() envelope.Dialect { return cmp.Or(b.Dialect, envelope.AINL) }

func (b Binding) checkDialect() *FieldError {
	if _, ok := dialect.Of(b.Speaks()); !ok {
		return wrong("dialect", "%q is not one of ainl, clowl, cap, clutch", b.Dialect)
	}
	if b.Worker != nil && b.Speaks() != envelope.AINL && b.Speaks() != envelope.Clutch {
		return wrong("dialect", "a worker speaks ainl or clutch")
	}
	return nil
}

// hasConversation reports whether the agent gets a conversation file: always in a dialect
// of messages, and in AINL if there are messages beside the request.
func (g *Agent) hasConversation(j task.Job) bool {
	return g.binding.Speaks() != envelope.AINL || len(j.Conversation) > 0
}

// writeInput writes the agent's input files except the prompt.
func (g *Agent) writeInput(j task.Job) error {
	if err := create(inDir(j, requestFile), dialect.Translate(j.Task, g.binding.Speaks())); err != nil {
		return err
	}
	if d := g.binding.Definition; d != nil {
		if err := create(inDir(j, systemFile), []byte(d.SystemPrompt)); err != nil {
			return err
		}
	}
	if g.hasConversation(j) {
		return create(inDir(j, conversationFile), g.conversation(j))
	}
	return nil
}

// conversation returns the request and later messages in the agent's dialect, one a line.
func (g *Agent) conversation(j task.Job) []byte {
	codec, _ := dialect.Of(g.binding.Speaks())
	request := jsontext.Value(slices.Clone(dialect.Translate(j.Task, g.binding.Speaks())))
	_ = request.Compact() // a request that a run printed may span several lines
	b := append(request, '\n')
	for _, m := range j.Conversation {
		line, _ := codec.Encode(m)
		b = append(append(b, line...), '\n')
	}
	return b
}

// addFiles sets the paths of the files that this run has.
func (g *Agent) addFiles(f *facts, j task.Job) {
	if g.hasConversation(j) {
		f.ConversationFile = inDir(j, conversationFile)
	}
	if g.binding.Definition != nil {
		f.SystemFile = inDir(j, systemFile)
	}
}
