package acp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// stubVariable has what this test binary does as an agent, in words that follow each other.
const stubVariable = "ACP_STUB"

func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(stubVariable); ok {
		(&stub{in: bufio.NewReader(os.Stdin), mode: "auto", does: strings.Fields(what)}).serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type object = map[string]any

// A stub is an agent that does what it was told, word by word.
type stub struct {
	in   *bufio.Reader
	mode string
	does []string
	last int // the id of its last request

	servers json.RawMessage // the MCP servers of its session
}

func (s *stub) has(word string) bool {
	for _, w := range s.does {
		if w == word {
			return true
		}
	}
	return false
}

func (s *stub) send(m object) {
	m["jsonrpc"] = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func (s *stub) update(u object) {
	s.send(object{"method": "session/update", "params": object{"sessionId": "s1", "update": u}})
}

func (s *stub) say(text string) {
	s.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
}

// message is what the host sends.
type message struct {
	ID     *int
	Method string
	Params json.RawMessage
	Result json.RawMessage
}

func (s *stub) read() message {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		panic(err)
	}
	return m
}

func (s *stub) serve() {
	if s.has("exit") {
		fmt.Fprintln(os.Stderr, "no settings")
		os.Exit(3)
	}
	for {
		m := s.read()
		switch m.Method {
		case "initialize":
			s.initialize(m)
		case "session/new", "session/resume", "session/load":
			s.open(m)
		case "session/set_config_option":
			if !s.has("stubborn") {
				var p struct{ Value string }
				_ = json.Unmarshal(m.Params, &p)
				s.mode = p.Value
			}
			s.send(object{"id": m.ID, "result": object{"configOptions": s.options()}})
		case "session/prompt":
			s.prompt(m)
		default:
			if m.ID != nil {
				s.send(object{"id": m.ID, "error": object{"code": -32601, "message": "Method not found"}})
			}
		}
	}
}

func (s *stub) initialize(m message) {
	switch {
	case s.has("silent"):
		s.read()
	case s.has("noise"):
		fmt.Println("Welcome!")
	case s.has("large"):
		fmt.Println(`{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", 17<<20) + `"}`)
	}
	can := object{}
	if s.has("loads") {
		can["loadSession"] = true
	}
	if s.has("resumes") {
		can["sessionCapabilities"] = object{"resume": object{}}
	}
	if s.has("http") {
		can["mcpCapabilities"] = object{"http": true}
	}
	s.send(object{"id": m.ID, "result": object{"protocolVersion": 1, "agentCapabilities": can}})
}

func (s *stub) options() []object {
	return []object{{"id": "mode", "currentValue": s.mode}}
}

func (s *stub) open(m message) {
	if s.has("logged-out") {
		s.send(object{"id": m.ID, "error": object{"code": -32000, "message": "Authentication required"}})
		return
	}
	if m.Method != "session/new" && s.has("forgets") {
		s.send(object{"id": m.ID, "error": object{"code": -32602, "message": "no such session"}})
		return
	}
	if m.Method == "session/load" {
		s.say("an old answer")
		s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "old", "status": "completed"})
	}
	var p struct{ McpServers json.RawMessage }
	_ = json.Unmarshal(m.Params, &p)
	s.servers = p.McpServers
	result := object{"sessionId": "s1", "configOptions": s.options()}
	if s.has("modeless") {
		result["configOptions"] = nil
	}
	s.send(object{"id": m.ID, "result": result})
}

// ask asks for a call and returns the outcome.
func (s *stub) ask(session string, call object, options ...object) string {
	if options == nil {
		options = []object{
			{"optionId": "always", "name": "Always", "kind": "allow_always"}, {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
			{"optionId": "no", "name": "No", "kind": "reject_once"},
		}
	}
	s.last++
	s.send(object{"id": s.last, "method": "session/request_permission", "params": object{"sessionId": session, "toolCall": call, "options": options}})
	var result struct {
		Outcome struct{ Outcome, OptionId string }
	}
	_ = json.Unmarshal(s.read().Result, &result)
	return strings.TrimSpace(result.Outcome.Outcome + " " + result.Outcome.OptionId)
}

func shell(id, command string) object {
	return object{"toolCallId": id, "title": "`" + command + "`", "kind": "execute", "rawInput": object{"command": command}}
}

func (s *stub) prompt(m message) {
	stop := "end_turn"
	for _, word := range s.does {
		switch word {
		case "say-servers":
			s.say(string(s.servers))
		case "say":
			var p struct{ Prompt []struct{ Text string } }
			_ = json.Unmarshal(m.Params, &p)
			s.say("You said: ")
			s.say(p.Prompt[0].Text)
		case "ask":
			call := shell("c1", "ls")
			s.update(object{
				"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "pending", "title": "`ls`", "kind": "execute",
				"locations": []object{{"path": "src"}},
			})
			outcome := s.ask("s1", call)
			if outcome == "selected yes" {
				s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"})
			}
			s.say(outcome)
		case "ask-again":
			s.say(s.ask("s1", shell("c1", "ls")) + ", ")
			s.say(s.ask("s1", shell("c1", "ls")) + ", ")
			s.say(s.ask("s1", shell("c1", "rm -rf /")))
		case "ask-edit":
			s.say(s.ask("s1", object{"toolCallId": "e1", "title": "Edit a.txt", "kind": "edit", "rawInput": object{"file_path": "/w/a.txt"},
				"content": []object{{"type": "diff", "path": "/w/a.txt", "oldText": "one\ntwo\n", "newText": "one\nthree\n"}}}))
		case "ask-tools":
			for i, call := range []object{
				{"title": "mcp__mailboxd-tools__s__t", "kind": "other"}, {"title": "mailboxd-tools_s__t", "kind": "other"},
				{"title": "mailboxd-tools_s__t", "kind": "execute"}, {"title": "mailboxd-tools_s__t; ls", "kind": "other"},
				{"title": "Use mailboxd-tools_s__t", "kind": "other"},
			} {
				call["toolCallId"] = fmt.Sprint("t", i)
				s.say(s.ask("s1", call) + ", ")
			}
		case "ask-always":
			s.say(s.ask("s1", shell("c1", "ls"), object{"optionId": "always", "name": "Always", "kind": "allow_always"}))
		case "ask-elsewhere":
			s.say(s.ask("s2", shell("c1", "ls")))
		case "disobey":
			s.ask("s1", shell("c1", "ls"))
			s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"})
		case "ask-much":
			s.say(s.ask("s1", object{"toolCallId": "m1", "kind": "execute", "rawInput": object{"command": "ls", "note": strings.Repeat("x", 2<<20)}}) + ", ")
			s.say(s.ask("s1", shell("m2", strings.Repeat("x", 2<<20))))
		case "give-up":
			s.ask("s1", shell("c1", "ls"))
			stop = "cancelled"
		case "act":
			s.update(object{
				"sessionUpdate": "tool_call", "toolCallId": "u1", "status": "in_progress", "title": "touch x", "kind": "execute",
				"rawInput": object{"command": "touch x"},
			})
			s.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "u1", "status": "completed"})
		case "stray":
			s.update(object{"sessionUpdate": "current_mode_update", "currentModeId": "bypass"})
			s.read()
		case "cost":
			s.update(object{"sessionUpdate": "usage_update", "used": 7, "size": 100, "cost": object{"amount": 0.25, "currency": "USD"}})
		case "odd":
			s.update(object{"sessionUpdate": "something_new", "x": 1})
			s.send(object{"method": "_stub/note", "params": object{}})
		case "fs":
			s.last++
			s.send(object{"id": s.last, "method": "fs/read_text_file", "params": object{"path": "/etc/passwd"}})
			s.read()
		case "break":
			fmt.Println(`{"jsonrpc":"2.0","method":"session/upd`)
		case "leave":
			os.Exit(0)
		case "refuse":
			stop = "refusal"
		}
	}
	s.send(object{"id": m.ID, "result": object{"stopReason": stop, "usage": object{"inputTokens": 30, "outputTokens": 12, "totalTokens": 42}}})
}
