package dialect_test

import (
	"os"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func definition(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/cap-agent-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADefinitionSaysWhatAnAgentMayDo(t *testing.T) {
	for _, name := range []string{"pm-1", "analyst-1", "qa-1"} {
		d, findings := dialect.DecodeDefinition([]byte(definition(t, name)))
		if len(findings) > 0 || d.ID != name || d.SystemPrompt == "" {
			t.Errorf("%s: %v, %+v", name, findings, d)
		}
	}
	d, _ := dialect.DecodeDefinition([]byte(definition(t, "analyst-1")))
	if d.Overseer != "qa-1" || len(d.AllowedAgents) != 1 || !strings.HasPrefix(d.Rules["qa-1"], "When analysis is complete") || d.Bindings[0].Scopes[1] != "write:analysis" {
		t.Errorf("analyst-1 is %+v", d)
	}
	if !d.Binds("DataServer", "query_data") || d.Binds("DataServer", "drop_data") || d.Binds("DocsServer", "query_data") {
		t.Error("the bindings of analyst-1 are not held")
	}
}

func TestADefinitionIsRefusedByTheNameOfTheField(t *testing.T) {
	pm := definition(t, "pm-1")
	for _, c := range []struct{ old, new, field string }{
		{`"id": "pm-1", `, ``, "id"},
		{`"id": "pm-1"`, `"id": ""`, "id"},
		{`"id": "pm-1"`, `"id": 7`, "id"},
		{`"system_prompt": "You`, `"prompt": "You`, "system_prompt"},
		{`"allowed_agents": ["analyst-1"], `, ``, "allowed_agents"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": "analyst-1"`, "allowed_agents"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": ["analyst-1", 7]`, "allowed_agents[1]"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": ["analyst-1", "analyst-1"]`, "allowed_agents[1]"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": ["analyst-1", "qa-1"]`, "allowed_agents[1]"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": []`, "delegate_rules.analyst-1"},
		{`"allowed_agents": ["analyst-1"]`, `"allowed_agents": ["pm-1"]`, "allowed_agents[0]"},
		{`"delegate_rules": {"analyst-1"`, `"rules": {"analyst-1"`, "delegate_rules"},
		{`"delegate_rules": {"analyst-1": {`, `"delegate_rules": {"other.one": {"when_to_delegate": 7}, "analyst-1": {`, "delegate_rules.other.one.when_to_delegate"},
		{`"when_to_delegate"`, `"when"`, "delegate_rules.analyst-1.when_to_delegate"},
		{`"overseer": null`, `"overseer": 7`, "overseer"},
		{`"overseer": null`, `"overseer": "pm-1"`, "overseer"},
		{`"mcp_bindings": [`, `"mcp_bindings": ["x", `, "mcp_bindings[0]"},
		{`"server_id": "DocsServer"`, `"server": "DocsServer"`, "mcp_bindings[0].server_id"},
		{`"scopes": ["read:data"]`, `"scopes": "read:data"`, "mcp_bindings[1].scopes"},
		{`"allowed_tools": ["query_data"]`, `"tools": ["query_data"]`, "mcp_bindings[1].allowed_tools"},
	} {
		text := strings.Replace(pm, c.old, c.new, 1)
		if text == pm {
			t.Fatalf("%s is not in the definition", c.old)
		}
		_, findings := dialect.DecodeDefinition([]byte(text))
		if findings.Kind() != envelope.InvalidEnvelope || findings.Refusals()[0].Field != c.field {
			t.Errorf("%s: %v; want %s refused", c.new, findings, c.field)
		}
	}
}

func TestADefinitionMayHaveMore(t *testing.T) {
	d, findings := dialect.DecodeDefinition([]byte(strings.Replace(definition(t, "qa-1"), `"overseer": null`, `"model": "large"`, 1)))
	if findings.Refused() || string(d.Extra) != `{"model":"large"}` || d.Overseer != "" {
		t.Errorf("%v, %+v", findings, d)
	}
}
