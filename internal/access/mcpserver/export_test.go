package mcpserver

import (
	"context"
	"reflect"
	"strings"
	"time"
)

// Arguments lists the names of the arguments that each tool decodes.
func Arguments() map[string][]string {
	return map[string][]string{
		"list_agents": names[agentArgs](), "send_task": names[sendArgs](), "read_result": names[taskArgs](), "wait_result": names[waitArgs](),
		"list_tasks": names[listArgs](), "show_task": names[taskArgs](), "cancel_task": names[cancelArgs](),
		"claim_task": names[claimArgs](), "submit_result": names[submitArgs](),
	}
}

func names[T any]() (all []string) {
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}

// KeepClaim keeps a claim with a lease until then; answered is closed when it
// is answered.
func KeepClaim(ctx context.Context, until time.Time, answered chan struct{}, renew func() (time.Time, error)) {
	c := &claim{id: "t1", agent: "a", lease: "secret", until: until, over: answered}
	c.keep(ctx, func(context.Context, *claim) (time.Time, error) { return renew() })
}
