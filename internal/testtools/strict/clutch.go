package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// clutchMembers are the members of a ClutchMessage (section 1.2), and whether each is required.
// parent_task_id is: the reference schema of Clutch wants it, null or not.
var clutchMembers = map[string]bool{
	"v": true, "id": true, "ts": true, "thread_id": true, "run_id": true, "task_id": true, "parent_task_id": true,
	"trace": false, "from": true, "to": true, "type": true, "domain": false, "payload_type": false, "schema_ref": false,
	"payload": true, "requires": false, "prefers": false, "security": false, "attachments": false,
	"idempotency_key": false, "attempt": false, "meta": false,
}

// clutchPayloads check the payload of each of the types of section 2.
var clutchPayloads = map[string]func(object) error{
	"task.request": nil, "task.accept": nil, "task.progress": clutchProgress, "task.result": clutchResult,
	"task.error": clutchError, "task.cancel": nil, "task.timeout": clutchError,
	"chat.message": nil, "chat.system": nil,
	"tool.call": wantsTexts("tool"), "tool.result": nil, "tool.error": clutchError,
	"agent.register": clutchCard, "agent.heartbeat": nil, "agent.update": nil,
	"routing.decision": clutchDecision, "routing.failure": wantsTexts("reason"),
}

// clutchTime is ISO 8601 in UTC with milliseconds, as in the examples of the protocol.
var clutchTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// Clutch says what is wrong with a line as a message of Clutch Protocol v0; nil when nothing
// is. It holds it to the strictest of what its references say.
func Clutch(line []byte) error {
	o, err := parse(line)
	if err != nil {
		return err
	}
	for name := range o {
		if _, known := clutchMembers[name]; !known {
			return fmt.Errorf("%s is no member of the protocol", name)
		}
	}
	for name, required := range clutchMembers {
		if _, there := o[name]; required && !there {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"id", "thread_id", "run_id", "task_id", "type", "domain", "payload_type", "schema_ref", "idempotency_key"} {
		if _, err := o.text(name, false); err != nil {
			return err
		}
	}
	for _, check := range []func(object) error{clutchHead, clutchParties, clutchMaterial, clutchSecurity, clutchAttachments, clutchPayload} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

func clutchHead(o object) error {
	if version, _ := str(o["v"]); version != "clutch/0.1" {
		return errors.New(`v must be "clutch/0.1"`)
	}
	if stamp, _ := str(o["ts"]); !clutchTime.MatchString(stamp) {
		return errors.New("ts must be in UTC with milliseconds")
	}
	if string(o["parent_task_id"]) == "null" {
		return nil
	}
	parent, err := o.text("parent_task_id", true)
	if own, _ := str(o["task_id"]); err == nil && parent == own {
		err = errors.New("parent_task_id is the task itself")
	}
	return err
}

// clutchParties checks the sender and the recipients (sections 1.1 and Appendix B).
func clutchParties(o object) error {
	from, err := members("from", o["from"])
	if err != nil {
		return err
	}
	if err := party("from.", from, "agent:"); err != nil {
		return err
	}
	to, err := list("to", o["to"])
	if err != nil {
		return err
	}
	for i, raw := range to {
		where := fmt.Sprintf("to[%d]", i)
		who, err := members(where, raw)
		if err == nil {
			err = party(where+".", who, "agent:", "group:")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func party(where string, o object, prefixes ...string) error {
	if err := o.only(where, "agent_id", "role"); err != nil {
		return err
	}
	if _, err := o.text("role", false); err != nil {
		return fmt.Errorf("%s%w", where, err)
	}
	name, err := o.text("agent_id", true)
	if err != nil {
		return fmt.Errorf("%s%w", where, err)
	}
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && rest != "*" {
			return nil
		}
	}
	return fmt.Errorf("%sagent_id must begin with %s", where, strings.Join(prefixes, " or "))
}

// clutchMaterial checks the members that say what the message needs.
func clutchMaterial(o object) error {
	for _, name := range []string{"requires", "prefers"} {
		if err := names(name, o[name]); err != nil {
			return err
		}
	}
	if raw, there := o["trace"]; there {
		trace, err := members("trace", raw)
		if err == nil {
			err = trace.only("trace.", "trace_id", "span_id")
		}
		if err == nil {
			err = wantsNoEmptyTexts(trace)
		}
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
	}
	if raw, there := o["attempt"]; there {
		if n, err := strconv.Atoi(string(raw)); err != nil || n < 1 {
			return errors.New("attempt must be an integer, 1 or more")
		}
	}
	if raw, there := o["meta"]; there {
		if _, err := members("meta", raw); err != nil {
			return err
		}
	}
	return nil
}

func clutchSecurity(o object) error {
	raw, there := o["security"]
	if !there {
		return nil
	}
	security, err := members("security", raw)
	if err == nil {
		err = security.only("security.", "auth", "policy")
	}
	if err != nil {
		return err
	}
	if raw, there := security["auth"]; there {
		auth, err := members("security.auth", raw)
		if err == nil {
			err = auth.only("security.auth.", "scheme", "kid", "sig")
		}
		if err != nil {
			return err
		}
	}
	if raw, there = security["policy"]; !there {
		return nil
	}
	policy, err := members("security.policy", raw)
	if err == nil {
		err = policy.only("security.policy.", "sandbox", "tool_allowlist", "network")
	}
	if err != nil {
		return err
	}
	if boolean(policy["sandbox"]) != nil {
		return errors.New("security.policy.sandbox must be a boolean")
	}
	if network, err := policy.text("network", false); err != nil || network != "" && !slices.Contains([]string{"none", "egress-restricted", "egress-allowed"}, network) {
		return errors.New("security.policy.network is none of the protocol's")
	}
	return names("security.policy.tool_allowlist", policy["tool_allowlist"])
}

// clutchAttachments checks what is handed over. Each kind has a member of its own.
func clutchAttachments(o object) error {
	raw, there := o["attachments"]
	if !there {
		return nil
	}
	all, err := list("attachments", raw)
	if err != nil {
		return err
	}
	own := map[string]string{"artifact_ref": "ref", "inline": "content", "url": "url"}
	for i, raw := range all {
		where := fmt.Sprintf("attachments[%d]", i)
		a, err := members(where, raw)
		if err == nil {
			err = a.only(where+".", "kind", "ref", "content", "url", "mime_type")
		}
		if err != nil {
			return err
		}
		kind, _ := str(a["kind"])
		if own[kind] == "" {
			return fmt.Errorf("%s.kind is none of the protocol's", where)
		}
		if a[own[kind]] == nil {
			return fmt.Errorf("%s.%s is missing", where, own[kind])
		}
	}
	return nil
}

// clutchPayload checks the payload of the types that have a form. A payload may be any JSON.
func clutchPayload(o object) error {
	word, _ := str(o["type"])
	check, known := clutchPayloads[word]
	switch {
	case !known:
		return fmt.Errorf("type %q is none of the protocol's", word)
	case word == "chat.system" && !strings.Contains(string(o["from"]), `"agent:mailboxd"`):
		return errors.New("chat.system must come from the system")
	case check == nil:
		return nil
	}
	payload, err := members("payload", o["payload"])
	if err == nil {
		err = check(payload)
	}
	if err != nil {
		return fmt.Errorf("payload of %s: %w", word, err)
	}
	return nil
}

func wantsTexts(names ...string) func(object) error {
	return func(payload object) error {
		for _, name := range names {
			if _, err := payload.text(name, true); err != nil {
				return err
			}
		}
		return nil
	}
}

// wantsNoEmptyTexts wants members that are strings, and none that is empty.
func wantsNoEmptyTexts(o object) error {
	for name := range o {
		if _, err := o.text(name, true); err != nil {
			return err
		}
	}
	return nil
}

func clutchProgress(payload object) error {
	if _, err := payload.text("status", true); err != nil {
		return err
	}
	if raw, there := payload["progress"]; there {
		if n, err := strconv.ParseFloat(string(raw), 64); err != nil || n < 0 || n > 100 {
			return errors.New("progress must be from 0 to 100")
		}
	}
	return nil
}

// clutchResult checks a task.result, which says success (section 2.1).
func clutchResult(payload object) error {
	if success, there := payload["success"]; there && string(success) != "true" {
		return errors.New("success must be true")
	}
	return nil
}

// clutchError checks an error response (section 5.4).
func clutchError(payload object) error {
	code, err := payload.text("code", true)
	switch {
	case err != nil:
		return err
	case strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "":
		return errors.New("code must be in upper case")
	}
	if _, err := str(payload["message"]); err != nil {
		return fmt.Errorf("message %w", err)
	}
	if boolean(payload["retryable"]) != nil {
		return errors.New("retryable must be a boolean")
	}
	if raw, there := payload["details"]; there {
		_, err = members("details", raw)
	}
	return err
}

// clutchCard checks an AgentCard (section 1.4).
func clutchCard(payload object) error {
	for name, prefix := range map[string]string{"v": "clutch/0.1", "agent_id": "agent:"} {
		if said, err := payload.text(name, true); err != nil || !strings.HasPrefix(said, prefix) {
			return fmt.Errorf("%s must begin with %s", name, prefix)
		}
	}
	if _, err := members("endpoints", payload["endpoints"]); err != nil {
		return err
	}
	all, err := list("capabilities", payload["capabilities"])
	if err != nil {
		return err
	}
	for i, raw := range all {
		where := fmt.Sprintf("capabilities[%d]", i)
		capability, err := members(where, raw)
		if err == nil {
			_, err = capability.text("id", true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// clutchDecision checks a routing decision (section 4.3).
func clutchDecision(payload object) error {
	if err := wantsTexts("selected", "reason")(payload); err != nil {
		return err
	}
	if err := names("candidates", payload["candidates"]); err != nil {
		return err
	}
	_, err := members("scores", payload["scores"])
	return err
}

// list wants a list, which is not null.
func list(name string, raw json.RawMessage) (items []json.RawMessage, err error) {
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, fmt.Errorf("%s must be a list", name)
	}
	return items, nil
}

// names wants a list of strings that are not empty, or nothing.
func names(name string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	items, err := list(name, raw)
	if err != nil {
		return err
	}
	for i, item := range items {
		if s, err := str(item); err != nil || s == "" {
			return fmt.Errorf("%s[%d] must be a string that is not empty", name, i)
		}
	}
	return nil
}
