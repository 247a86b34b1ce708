package realagents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// logged returns the command of a server whose standard input is also written to a file.
func logged(log, server string, args ...string) string {
	index := filepath.Join(programs(), "node_modules", "@modelcontextprotocol", server, "dist", "index.js")
	return fmt.Sprintf("[sh, -c, %q, sh, %q, node, %q, %s]", `log=$1; shift; tee -a "$log" | "$@"`, log, index, strings.Join(args, ", "))
}

// calledIn lists the tools that were called at a server, by what it got.
func calledIn(t *testing.T, log string) (called []string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var message struct {
			Method string `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("the server got %q: %v", line, err)
		}
		if message.Method == "tools/call" {
			called = append(called, message.Params.Name)
		}
	}
	return called
}

func TestAnAgentHasExactlyTheAllowedToolsOfTwoServers(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	b := emptyBox(t, program{name: "caller", login: func(*box) []string { return nil }}, fakemodel.Start)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.write("books/a.txt", "the text of a")
	books, everything, files := filepath.Join(b.home, "books"), filepath.Join(b.home, "everything.log"), filepath.Join(b.home, "files.log")
	steps := []string{
		"list", `everything__echo {"message":"hello"}`, `everything__get-sum {"a":2,"b":3}`, `everything__get-env {}`,
		fmt.Sprintf(`files__read_text_file {"path":%q}`, books+"/a.txt"),
		fmt.Sprintf(`files__write_file {"path":%q,"content":"x"}`, books+"/b.txt"),
		fmt.Sprintf(`files__read_text_file {"path":%q}`, b.home+"/.config/mailboxd/config.yaml"),
	}
	command, err := json.Marshal(append([]string{self, toolCaller}, steps...)) // which is YAML
	if err != nil {
		t.Fatal(err)
	}
	b.write(configFile, fmt.Sprintf(`root: %q
tools:
  - {id: everything, command: %s}
  - {id: files, command: %s}
agents:
  - id: caller
    tools: ["mcp:everything/echo", "mcp:everything/get-sum", "mcp:files/read_text_file"]
    exec: {output: text, command: %s}
`, b.home+"/box", logged(everything, "server-everything", "stdio"), logged(files, "server-filesystem", books), command))
	b.serve()
	said := b.must(b.mailboxd(b.work, "ask", "caller", "Use your tools", "--wait")).out
	for _, want := range []string{
		"tools: everything__echo everything__get-sum files__read_text_file\n",
		"everything__echo: false Echo: hello\n", "everything__get-sum: false The sum of 2 and 3 is 5.\n",
		"files__read_text_file: false the text of a\n", "files__read_text_file: true Access denied - path outside allowed directories",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the agent said\n%s\nwant %q", said, want)
		}
	}
	for _, hidden := range []string{"everything__get-env", "files__write_file"} {
		if !strings.Contains(said, fmt.Sprintf("unknown tool %q", hidden)) {
			t.Errorf("the agent said\n%s\nwant that %s is unknown", said, hidden)
		}
	}
	for log, want := range map[string]string{everything: "[echo get-sum]", files: "[read_text_file read_text_file]"} {
		if got := fmt.Sprint(calledIn(t, log)); got != want {
			t.Errorf("%s has the calls %s; want %s", filepath.Base(log), got, want)
		}
	}
	if _, err := os.Stat(books + "/b.txt"); err == nil {
		t.Error("a hidden tool wrote a file")
	}
}
