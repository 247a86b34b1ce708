package envelope

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// The metadata keys with which a sender sets where and how the agent works, and how people find
// the task. Only an AINL line may have them.
const (
	LabelsKey   = "mbx.labels"   // an object of text: see ParseLabel
	WorkdirKey  = "mbx.workdir"  // the absolute path of the directory in which the agent works
	WorktreeKey = "mbx.worktree" // true: the agent works in a copy of the repository there
	BaseKey     = "mbx.base"     // the branch, tag or commit that the copy begins with; HEAD otherwise
	EditKey     = "mbx.edit"     // true: the task is to edit files, so that a run without any change is reviewed
	AfterKey    = "mbx.after"    // an object: see Task.After
	PriorityKey = "mbx.priority" // a whole number: see Task.Priority
	ContinueKey = "mbx.continue" // the id of a task: see Task.Continues
	RoundKey    = "mbx.round_of" // an object: see Task.RoundOf
)

// The metadata keys with which a task names its step of a workflow. In Clutch these are members
// of meta.
const (
	WorkflowKey = "mbx.workflow"
	StepKey     = "mbx.step"
)

// SenderKeys are the "mbx." metadata keys that a sender may set, in an AINL line only.
var SenderKeys = []string{LabelsKey, WorkdirKey, WorktreeKey, BaseKey, EditKey, AfterKey, PriorityKey, ContinueKey, RoundKey}

const (
	maxLabels     = 16
	maxLabelKey   = 40   // bytes
	maxLabelValue = 100  // characters
	maxWorkdir    = 4095 // bytes; the longest path of the kernel
	maxBase       = 255  // bytes
)

// Labels returns the labels of the task; nil for none.
func (t Task) Labels() map[string]string {
	var labels map[string]string
	if value, ok := t.Metadata[LabelsKey]; !ok || json.Unmarshal(value, &labels) != nil {
		return nil
	}
	return labels
}

// Workdir returns the directory in which the sender wants the agent to work; "" for none.
func (t Task) Workdir() string { return t.Named(WorkdirKey) }

// Worktree reports whether the agent shall work in a copy of a repository.
func (t Task) Worktree() bool { return string(t.Metadata[WorktreeKey]) == "true" }

// Edit reports whether the task is to edit files.
func (t Task) Edit() bool { return string(t.Metadata[EditKey]) == "true" }

// Base returns the branch, tag or commit with which the copy of a repository begins; "" for HEAD.
func (t Task) Base() string { return t.Named(BaseKey) }

// Continues returns the task whose session with the program of its agent this one continues; ""
// for none.
func (t Task) Continues() ID { return ID(t.Named(ContinueKey)) }

// MaxPriority is the highest priority of a task. The lowest one is -MaxPriority.
const MaxPriority = 9

// Priority returns the priority that the task asks for, and whether it asks for one. Of the
// tasks that wait, the one with the highest priority starts first.
func (t Task) Priority() (priority int, asked bool) {
	value, ok := t.Metadata[PriorityKey]
	if !ok {
		return 0, false
	}
	priority, err := strconv.Atoi(string(value))
	return priority, err == nil
}

// priority checks the value of PriorityKey.
func (r *request) priority(at int) {
	n, err := strconv.Atoi(string(r.value(at)))
	if err != nil || n < -MaxPriority || n > MaxPriority {
		r.refuse(at, fmt.Sprintf("must be a whole number from -%d to %d", MaxPriority, MaxPriority))
	}
}

// The values of if_failed: what happens to a task if the task that it waits for doesn't end ok.
const (
	RejectIfFailed = "reject" // the default
	RunIfFailed    = "run"
)

// after is the value of AfterKey.
type after struct {
	TaskID   ID     `json:"task_id"`
	IfFailed string `json:"if_failed"`
}

// After returns the task that this one waits for, "" for none, and what happens if that task
// doesn't end ok: RejectIfFailed or RunIfFailed.
func (t Task) After() (other ID, ifFailed string) {
	value, ok := t.Metadata[AfterKey]
	if !ok {
		return "", RejectIfFailed
	}
	var a after
	if json.Unmarshal(value, &a) != nil {
		return "", RejectIfFailed
	}
	return a.TaskID, cmp.Or(a.IfFailed, RejectIfFailed)
}

// after checks the value of AfterKey.
func (r *request) after(at int) {
	if !r.is(at, '{') {
		return
	}
	id := r.member(at, "task_id")
	if id == none {
		r.refuse(at, "needs the member task_id")
		return
	}
	r.id(id)
	if then := r.member(at, "if_failed"); then != none {
		if text := r.name(then); text != RejectIfFailed && text != RunIfFailed {
			r.refuse(then, "must be reject or run")
		}
	}
}

// ParseLabel returns the key and the value of a label such as area=auth.
func ParseLabel(text string) (key, value string, err error) {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return "", "", errors.New("must be KEY=VALUE")
	}
	if err := checkLabelKey(key); err != nil {
		return "", "", fmt.Errorf("key %s %w", quote(key), err)
	}
	if err := checkLabelValue(value); err != nil {
		return "", "", fmt.Errorf("value %w", err)
	}
	return key, value, nil
}

func checkLabelKey(key string) error {
	other := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}
	if key == "" || len(key) > maxLabelKey || strings.ContainsFunc(key, other) {
		return fmt.Errorf("must be 1 to %d of the characters a-z, 0-9, '.', '_' and '-'", maxLabelKey)
	}
	return nil
}

func checkLabelValue(value string) error {
	switch {
	case !utf8.ValidString(value):
		return errors.New("is not valid text")
	case utf8.RuneCountInString(value) > maxLabelValue:
		return fmt.Errorf("is longer than %d characters", maxLabelValue)
	case strings.ContainsFunc(value, hidden):
		return errors.New("contains a control or invisible character")
	}
	return nil
}

// senderKey checks a metadata value with a key of SenderKeys, and reports whether the task has
// it. A wrong value refuses the task: the agent must not work in another place than the sender
// meant.
func (r *request) senderKey(key string, at int) bool {
	before := len(r.findings)
	switch {
	case r.kind(at) == 'n':
		return false
	case key == LabelsKey:
		r.labels(at)
	case key == WorkdirKey:
		r.workdir(at)
	case key == BaseKey:
		r.base(at)
	case key == AfterKey:
		r.after(at)
	case key == PriorityKey:
		r.priority(at)
	case key == ContinueKey:
		r.id(at)
	case key == RoundKey:
		r.round(at)
	case r.kind(at) != 't' && r.kind(at) != 'f':
		r.refuse(at, "must be true or false")
	}
	return len(r.findings) == before
}

func (r *request) labels(at int) {
	if !r.is(at, '{') {
		return
	}
	count := 0
	for name, value := range r.members(at) {
		if count++; count > maxLabels {
			r.refuse(at, fmt.Sprintf("has more than %d labels", maxLabels))
			return
		}
		key, ok := r.text(name)
		if err := checkLabelKey(key); err != nil || !ok {
			r.refuse(value, "the key "+checkLabelKey("").Error())
			continue
		}
		if !r.is(value, '"') {
			continue
		}
		text, ok := r.text(value)
		if err := checkLabelValue(text); err != nil {
			r.refuse(value, err.Error())
		} else if !ok {
			r.refuse(value, "contains half of a surrogate pair")
		}
	}
}

func (r *request) workdir(at int) {
	path := r.name(at)
	switch {
	case path == "": // refused
	case !strings.HasPrefix(path, "/"):
		r.refuse(at, "must be an absolute path")
	case len(path) > maxWorkdir:
		r.refuse(at, fmt.Sprintf("is longer than %d bytes", maxWorkdir))
	}
}

// base checks the name of a branch, tag or commit. Expressions of git, such as HEAD~3 or a
// date, are refused: their meaning changes with time.
func (r *request) base(at int) {
	name := r.name(at)
	switch {
	case name == "": // refused
	case len(name) > maxBase:
		r.refuse(at, fmt.Sprintf("is longer than %d bytes", maxBase))
	case strings.HasPrefix(name, "-") || strings.Contains(name, "..") || strings.ContainsAny(name, " ~^:?*[\\@{}") || strings.ContainsFunc(name, hidden):
		r.refuse(at, "must be the name of a branch or tag, or a commit")
	}
}
