package mcpserver

import (
	"reflect"
	"strings"
)

// Arguments lists the names of the arguments that each tool decodes.
func Arguments() map[string][]string {
	return map[string][]string{
		"send_task": names[sendArgs](), "read_result": names[taskArgs](), "wait_result": names[waitArgs](),
		"list_tasks": names[listArgs](), "show_task": names[taskArgs](), "cancel_task": names[cancelArgs](),
	}
}

func names[T any]() (all []string) {
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}
