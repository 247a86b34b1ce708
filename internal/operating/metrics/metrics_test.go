package metrics_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/operating/metrics"
)

func TestTheTextFormEscapesWhatLabelsHave(t *testing.T) {
	var text strings.Builder
	err := metrics.Write(&text, []metrics.Metric{
		{Name: "a_total", Type: metrics.Counter, Help: "Line\nand \\.", Samples: []metrics.Sample{
			{Labels: []metrics.Label{{Name: "agent", Value: "a\"b\\c\nd"}, {Name: "status", Value: "\xff"}}, Value: 3},
		}},
		{Name: "empty", Type: metrics.Gauge, Help: "Nothing."},
		{Name: "b_seconds", Type: metrics.Summary, Help: "B.", Samples: []metrics.Sample{{Suffix: "_sum", Value: 0.5}, {Suffix: "_count", Value: 1e9}}},
	})
	want := "# HELP a_total Line\\nand \\\\.\n# TYPE a_total counter\na_total{agent=\"a\\\"b\\\\c\\nd\",status=\"\uFFFD\"} 3\n" +
		"# HELP b_seconds B.\n# TYPE b_seconds summary\nb_seconds_sum 0.5\nb_seconds_count 1e+09\n"
	if err != nil || text.String() != want {
		t.Errorf("Write = %v, and wrote\n%s\nwant\n%s", err, text.String(), want)
	}
}

func TestTheTextfileIsReplacedWholeAndReadableByOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.prom")
	for range 2 {
		if err := metrics.WriteFile(path, []metrics.Metric{{Name: "a", Type: metrics.Gauge, Help: "A.", Samples: []metrics.Sample{{Value: 1}}}}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("Stat = %v, %v; want mode 0644", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".mailboxd-*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := metrics.WriteFile(filepath.Join(dir, "none", "m.prom"), nil); err == nil {
		t.Error("a file in a missing directory was written")
	}
}
