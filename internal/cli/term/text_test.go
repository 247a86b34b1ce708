package term

import "testing"

func TestCutCountsColumns(t *testing.T) {
	if got := Cut("日本語のタスク", 6); Width(got) > 6 || got != "日本…" {
		t.Errorf("cut(wide characters, 6) = %q; want 日本…", got)
	}
}
