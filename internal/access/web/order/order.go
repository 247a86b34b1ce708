// Package order makes of a form of the page the command that sends a task, and says in lines what it
// sends, so that a person can compare them at the terminal.
package order

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Anyone is the value of a form that leaves the choice of the agent to routing.
const Anyone = "*"

// An Order is a task to send.
type Order struct {
	Title   string   // what it does, such as "Send a task to claude"
	Content string   // what is sent, in lines
	Args    []string // of mailboxd
	Input   string   // its standard input
}

// lines are the names and values of a Content.
type lines struct{ strings.Builder }

// add adds a line, unless its value is empty.
func (l *lines) add(name, value string) {
	if value != "" {
		fmt.Fprintf(l, "    %-10s%s\n", name, strings.ReplaceAll(strings.TrimRight(value, "\n"), "\n", "\n              "))
	}
}

// Ask is a task in words for one of the agents, or for anyone.
func Ask(form url.Values, agents []string) (Order, error) {
	agent, words := form.Get("agent"), strings.TrimSpace(form.Get("words"))
	dir, tree := strings.TrimSpace(form.Get("in")), form.Get("worktree") != ""
	switch {
	case words == "":
		return Order{}, errors.New("words: say what the agent should do")
	case agent != Anyone && !slices.Contains(agents, agent):
		return Order{}, fmt.Errorf("agent: no agent %q is configured", agent)
	case agent == Anyone && (dir != "" || tree):
		return Order{}, errors.New("agent: a directory needs an agent that you name")
	case dir != "" && !filepath.IsAbs(dir):
		return Order{}, errors.New("directory: must be a whole path, which begins with /")
	}
	terms, said, err := termsOf(form)
	if err != nil {
		return Order{}, err
	}
	var l lines
	l.add("words", words)
	l.add("in", dir)
	if tree {
		l.add("worktree", "yes")
	}
	l.WriteString(said)
	if agent == Anyone {
		args := slices.Concat([]string{"send", "--agent=" + Anyone, "--type=task", "--description=" + words}, terms)
		return Order{Title: "Send a task to the agent that fits best", Content: l.String(), Args: args}, nil
	}
	args := slices.Concat([]string{"ask", "--no-wait"}, terms)
	if dir != "" {
		args = append(args, "--in="+dir)
	}
	if tree {
		args = append(args, "--worktree")
	}
	return Order{Title: "Send a task to " + agent, Content: l.String(), Args: append(args, "--", agent, "-"), Input: words}, nil
}

// approvals are the values of approval_required that a form may have.
var approvals = []string{"pre", "post", "both"}

// termsOf reads approval, budget and priority of a form, as arguments and as lines.
func termsOf(form url.Values) (args []string, said string, err error) {
	var l lines
	if when := form.Get("approval"); slices.Contains(approvals, when) {
		args = append(args, "--approval="+when)
		l.add("approval", when)
	} else if when != "" {
		return nil, "", fmt.Errorf("approval: must be one of %s", strings.Join(approvals, ", "))
	}
	for _, one := range []struct {
		name, flag  string
		least, most int64
	}{{"tokens", "tokens", 1, 1 << 40}, {"usd_cents", "usd-cents", 1, 1 << 30}, {"priority", "priority", -9, 9}} {
		text := strings.TrimSpace(form.Get(one.name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < one.least || n > one.most {
			return nil, "", fmt.Errorf("%s: must be a number from %d to %d", one.name, one.least, one.most)
		}
		args = append(args, fmt.Sprintf("--%s=%d", one.flag, n))
		l.add(one.name, text)
	}
	return args, l.String(), nil
}

// FollowUp is a question to the agent of a done task, in the same session.
func FollowUp(id envelope.ID, form url.Values) (Order, error) {
	words := strings.TrimSpace(form.Get("words"))
	if words == "" {
		return Order{}, errors.New("words: the question is empty")
	}
	var l lines
	l.add("words", words)
	l.add("after", string(id))
	return Order{
		Title: "Ask further in the session of " + string(id), Content: l.String(),
		Args: []string{"ask", "--no-wait", "--continue=" + string(id), "--", "-"}, Input: words,
	}, nil
}

// Copy is the request of a task once more, as a new task.
func Copy(id envelope.ID, description string) Order {
	var l lines
	l.add("copy of", string(id))
	l.add("words", description)
	return Order{Title: "Send a copy of " + string(id), Content: l.String(), Args: []string{"again", "--", string(id)}}
}

// Edit is a new revision of a task that has not started: its request as JSON.
func Edit(id envelope.ID, request string) (Order, error) {
	line := jsontext.Value(request)
	if err := line.Compact(); err != nil {
		return Order{}, fmt.Errorf("request: is not JSON: %w", err)
	}
	changed, findings := envelope.DecodeTask(line, envelope.Strict)
	switch {
	case changed.ID != id:
		return Order{}, fmt.Errorf("task_id: must stay %s", id)
	case findings.Refused():
		return Order{}, fmt.Errorf("request: %s", findings)
	}
	var l lines
	l.add("request", strings.ReplaceAll(strings.TrimSpace(request), "\r\n", "\n"))
	return Order{Title: "Change the task " + string(id), Content: l.String(), Args: []string{"send", "-f", "-"}, Input: string(line) + "\n"}, nil
}

// WithPriority returns a request with another priority, from -9 to 9.
func WithPriority(request []byte, priority string) (string, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(priority), 10, 64)
	if err != nil || n < -9 || n > 9 {
		return "", errors.New("priority: must be a number from -9 to 9")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(bytes.TrimSpace(request), &members); err != nil {
		return "", fmt.Errorf("read request: %w", err)
	}
	metadata := map[string]jsontext.Value{}
	if old := members["metadata"]; old != nil {
		if err := json.Unmarshal(old, &metadata); err != nil {
			return "", fmt.Errorf("read metadata: %w", err)
		}
	}
	metadata[envelope.PriorityKey] = jsontext.Value(strconv.FormatInt(n, 10))
	if members["metadata"], err = json.Marshal(metadata, json.Deterministic(true)); err != nil {
		return "", err
	}
	text, err := json.Marshal(members, json.Deterministic(true), jsontext.WithIndent("  "))
	return string(text), err
}
