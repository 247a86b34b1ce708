package envelope_test

import (
	"maps"
	"testing"

	"mailboxd/envelope"
)

func TestATaskHasTheLabelsAndDirectoryOfItsMetadata(t *testing.T) {
	got, findings := decode(t, request("metadata", `{"mbx.labels":{"area":"auth","\u0066ix":"a=b"},"mbx.workdir":"/src/\u0061pp","mbx.worktree":true}`))
	if findings.Refused() {
		t.Fatal(findings)
	}
	if want := map[string]string{"area": "auth", "fix": "a=b"}; !maps.Equal(got.Labels(), want) {
		t.Errorf("Labels() = %v; want %v", got.Labels(), want)
	}
	if got.Workdir() != "/src/app" || !got.Worktree() {
		t.Errorf("Workdir() = %q, Worktree() = %t; want /src/app, true", got.Workdir(), got.Worktree())
	}
	got, _ = decode(t, request("metadata", `{"mbx.labels":null,"mbx.workdir":null,"mbx.worktree":false}`))
	if got.Labels() != nil || got.Workdir() != "" || got.Worktree() {
		t.Errorf("a task with null for each = %v, %q, %t; want none", got.Labels(), got.Workdir(), got.Worktree())
	}
}

func TestADirectoryOrLabelIsContent(t *testing.T) {
	hash := func(metadata string) string {
		got, _ := decode(t, request("metadata", metadata))
		return got.Hash
	}
	if hash(`{"mbx.workdir":"/a"}`) != hash(`{ "mbx.workdir" : "/\u0061" }`) {
		t.Error("the same directory, written differently, is other content")
	}
	for _, other := range []string{`{"mbx.workdir":"/b"}`, `{}`, `{"mbx.workdir":"/a","mbx.labels":{"k":"v"}}`, `{"mbx.workdir":"/a","mbx.worktree":true}`} {
		if hash(`{"mbx.workdir":"/a"}`) == hash(other) {
			t.Errorf("%s has the hash of a task in /a", other)
		}
	}
}

func TestLabelsOfTheCommandLineAreCheckedLikeThoseOfALine(t *testing.T) {
	for text, want := range map[string]string{
		"area=auth": "", "a=": "", "a=b=c": "",
		"area":    "must be KEY=VALUE",
		"Area=x":  `key "Area" must be 1 to 40 of the characters a-z, 0-9, '.', '_' and '-'`,
		"=x":      `key "" must be 1 to 40 of the characters a-z, 0-9, '.', '_' and '-'`,
		"a=b\x1b": "value contains a control or invisible character",
		"a=\xff":  "value is not valid text",
	} {
		key, value, err := envelope.ParseLabel(text)
		if got := message(err); got != want || err == nil && key+"="+value != text {
			t.Errorf("ParseLabel(%q) = %q, %q, %s; want %s", text, key, value, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
