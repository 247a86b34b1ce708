package agent

import (
	"io"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"
)

// parseElement parses one element of a command.
func parseElement(element string) (*template.Template, error) {
	return template.New("command").Option("missingkey=error").Parse(element)
}

// checkElement parses an element of a command and executes it once, so that an unknown name
// is found early.
func checkElement(field, element string) *FieldError {
	if strings.ContainsRune(element, 0) {
		return wrong(field, "contains a NUL character")
	}
	t, err := parseElement(element)
	if err != nil {
		return wrong(field, "%s; double braces begin a template, such as {{.TaskFile}}", strings.TrimPrefix(err.Error(), "template: command:1: "))
	}
	known := factNames()
	for name := range namesIn(t.Root) {
		if _, ok := reflect.TypeFor[facts]().FieldByName(name); !ok {
			return wrong(field, "unknown field %s; known: %s", name, known)
		}
	}
	if err := t.Execute(io.Discard, facts{}); err != nil {
		return wrong(field, "%s", strings.TrimPrefix(err.Error(), "template: command:"))
	}
	return nil
}

// factNames lists what a template may name.
func factNames() string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[facts]()) {
		names = append(names, field.Name)
	}
	return strings.Join(names, ", ")
}

// namesIn yields the first name of every field that a template uses.
func namesIn(node parse.Node) func(yield func(string) bool) {
	return func(yield func(string) bool) { walkTemplate(node, yield) }
}

func walkTemplate(node parse.Node, yield func(string) bool) bool {
	var inner []parse.Node
	switch n := node.(type) {
	case *parse.FieldNode:
		return yield(n.Ident[0])
	case *parse.ListNode:
		if n != nil {
			inner = n.Nodes
		}
	case *parse.ActionNode:
		inner = []parse.Node{n.Pipe}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			inner = append(inner, c)
		}
	case *parse.CommandNode:
		inner = n.Args
	case *parse.IfNode:
		inner = []parse.Node{n.Pipe, n.List, n.ElseList}
	}
	for _, n := range inner {
		if !walkTemplate(n, yield) {
			return false
		}
	}
	return true
}
