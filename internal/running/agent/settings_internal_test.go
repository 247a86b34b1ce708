package agent

import (
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
)

func TestThePermissionsOfOpencodeAreAddedToSettingsOfTheUser(t *testing.T) {
	r := openCodeRules(grant{permission: Edit}, task.Job{})
	got, err := r.addTo([]string{"HOME=/h", `OPENCODE_CONFIG_CONTENT={"model":"a/b","agent":{"mailboxd":{"permission":"allow"},"mine":{"mode":"primary"}}}`})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"agent":{"mailboxd":{"mode":"primary","permission":{"bash":"deny","edit":"allow","task":"deny"}},"mine":{"mode":"primary"}},"model":"a/b"}`
	if got != want {
		t.Errorf("the settings are\n%s\nwant\n%s", got, want)
	}
	if _, err := r.addTo([]string{"OPENCODE_CONFIG_CONTENT=no object"}); err == nil || !strings.HasPrefix(err.Error(), "OPENCODE_CONFIG_CONTENT in exec.env: ") {
		t.Errorf("settings that can't be read: %v; want an error that names the variable", err)
	}
	if got, err := r.addTo([]string{"HOME=/h"}); got != r.text || err != nil {
		t.Errorf("without settings of the user: %s, %v; want the permissions alone", got, err)
	}
}
