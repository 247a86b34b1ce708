package setup

import "testing"

func TestAnEntryIsAddedToTheFileOfAnEditorAndRemovedAgain(t *testing.T) {
	const before = `{
  "theme": "dark",
  "mcp": {
    "other": {
      "type": "remote"
    }
  },
  "model": "a/b"
}
`
	const after = `{
  "theme": "dark",
  "mcp": {
    "other": {
      "type": "remote"
    },
    "mailboxd": [
      "mcp"
    ]
  },
  "model": "a/b"
}
`
	got, err := withMember([]byte(before), "mcp", "mailboxd", []string{"mcp"})
	if string(got) != after || err != nil {
		t.Errorf("with the entry: %s, %v; want\n%s", got, err, after)
	}
	if again, err := withMember(got, "mcp", "mailboxd", []string{"mcp"}); string(again) != after || err != nil {
		t.Errorf("with the entry twice: %s, %v; want\n%s", again, err, after)
	}
	if gone, err := withMember(got, "mcp", "mailboxd", nil); string(gone) != before || err != nil {
		t.Errorf("without the entry: %s, %v; want\n%s", gone, err, before)
	}
}

func TestAFileWithoutOurEntryIsNotWrittenToRemoveIt(t *testing.T) {
	for _, text := range []string{"", "{}", `{"mcp":{"other":{}},  "x": 1}`} {
		if got, err := withMember([]byte(text), "mcp", "mailboxd", nil); string(got) != text || err != nil {
			t.Errorf("%q becomes %q, %v; want it as it is", text, got, err)
		}
	}
}

func TestAFileThatWouldLoseSomethingIsRefused(t *testing.T) {
	for _, text := range []string{"{\n// mine\n}", "[]", `{"mcp": []}`, `{"mcp": {}`, `{"a": 1, "a": 2}`, "theme: dark"} {
		if got, err := withMember([]byte(text), "mcp", "mailboxd", []string{"mcp"}); err == nil {
			t.Errorf("%q becomes %q; want an error", text, got)
		}
	}
}
