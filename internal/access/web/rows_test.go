package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

var rowVersion = regexp.MustCompile(`data-v="([^"]+)" id="([^"]+)"`)

// update asks for a page again, as the script does: with the versions of the rows of an earlier answer.
func (v *visitor) update(path, shown string) string {
	v.w.t.Helper()
	var rows []string
	for _, row := range rowVersion.FindAllStringSubmatch(shown, -1) {
		rows = append(rows, row[2]+"="+row[1])
	}
	_, text := v.send(http.MethodGet, path, nil, func(r *http.Request) { r.Header.Set("Rows", strings.Join(rows, " ")) })
	return text
}

func TestAnUpdateHasTheRowsThatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(t, w, 230)
	v := w.visit(w.open())
	_, first := v.get("/tasks")
	if n := len(rowVersion.FindAllString(first, -1)); n != 100 {
		t.Fatalf("the list has %d rows with a version; want 100", n)
	}
	text := v.update("/tasks", first)
	if rows, same := strings.Count(text, "<tr data-row"), strings.Count(text, "data-same"); rows != 0 || same != 100 {
		t.Errorf("an update without a change has %d rows, and %d without content; want 0 and 100", rows, same)
	}
	w.do(func(daemon *client.Client) (err error) {
		for _, id := range []string{"work-229", "work-200", "work-180", "work-150", "work-140"} {
			_, err = daemon.Cancel(t.Context(), envelope.ID(id), client.ControlOptions{})
		}
		return err
	})
	text = v.update("/tasks", first)
	if rows, same := strings.Count(text, "<tr data-row"), strings.Count(text, "data-same"); rows != 5 || same != 95 || len(text) > 20<<10 {
		t.Errorf("an update of five tasks has %d rows, %d without content, and %d bytes; want 5, 95, and at most 20 KB", rows, same, len(text))
	}
	t.Logf("the list is %d bytes, and an update of five tasks %d", len(first), len(text))
}

func TestAnUpdateOfTheFirstPageHasTheRowsThatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(t, w, 60)
	v := w.visit(w.open())
	_, first := v.get("/")
	if text := v.update("/", first); strings.Count(text, "data-same") != 20 || len(text) > 20<<10 {
		t.Errorf("an update without a change has %d rows without content, and %d bytes; want 20, and at most 20 KB",
			strings.Count(text, "data-same"), len(text))
	}
}

func TestTheFirstPageCountsMoreThanItLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Pause(t.Context(), client.AgentOptions{Agent: "writer"})
		return err
	})
	fillFor(t, w, "writer", "later", 1005)
	fill(t, w, 30)
	v := w.visit(w.open())
	_, text := v.get("/")
	for _, want := range []string{"30 tasks wait for you", "10 more", `href="/tasks/work-0"`, "1,005 more wait for something else"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the first page does not have %q; it begins:\n%.3000s", want, text)
		}
	}
	fillFor(t, w, "deployer", "more", 1070)
	if _, text = v.get("/"); !strings.Contains(text, "1,100 tasks wait for you") {
		t.Errorf("the first page does not count 1,100 tasks that wait for a person:\n%.3000s", text)
	}
}
