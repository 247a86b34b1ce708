package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/metrics"
	"mailboxd/internal/stores/ledger"
)

// What promtool check metrics complains about: https://prometheus.io/docs/practices/naming/.
var (
	metricName   = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	metricSample = regexp.MustCompile(`^([a-z0-9_]+)(?:\{([a-z_]+="(?:[^"\\]|\\.)*",?)+\})? [-+0-9.e]+$`)
	badUnits     = []string{"milliseconds", "ms", "minutes", "hours", "days", "kilobytes", "kb", "mb", "percent", "cents", "sec", "usec"}
	typeNames    = []string{"counter", "gauge", "summary", "histogram"}
)

// lintMetrics returns what is wrong with a text form.
func lintMetrics(text string) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	name, kind, helped := "", "", ""
	families, samples := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		words := strings.SplitN(line, " ", 4)
		switch {
		case !whole:
			report("%q has no newline", line)
		case strings.HasPrefix(line, "# HELP "):
			if helped = words[2]; families[helped] || len(words) < 4 || !strings.HasSuffix(line, ".") {
				report("%s comes twice, or its help is no sentence", helped)
			}
			families[helped] = true
		case strings.HasPrefix(line, "# TYPE "):
			name, kind = words[2], words[3]
			parts := strings.Split(name, "_")
			if name != helped || !metricName.MatchString(name) || parts[0] != "mailboxd" {
				report("%s has no help before its type, or a bad name", name)
			}
			if (kind == "counter") != strings.HasSuffix(name, "_total") {
				report("%s is a %s; a counter, and only a counter, ends in _total", name, kind)
			}
			for _, part := range parts {
				if slices.Contains(badUnits, part) || slices.Contains(typeNames, part) {
					report("%s has %q in its name; want a base unit and no type", name, part)
				}
			}
			if last := parts[len(parts)-1]; kind != "summary" && (last == "count" || last == "sum" || last == "bucket") {
				report("%s ends in a suffix of summaries", name)
			}
		default:
			match := metricSample.FindStringSubmatch(line)
			if match == nil {
				report("%q is no sample", line)
				continue
			}
			base := match[1]
			if kind == "summary" {
				base = strings.TrimSuffix(strings.TrimSuffix(base, "_sum"), "_count")
			}
			key := line[:strings.LastIndexByte(line, ' ')]
			if base != name || samples[key] {
				report("%q is not of %s, or comes twice", line, name)
			}
			samples[key] = true
		}
	}
	return found
}

func TestTheMetricsFollowTheRulesOfPromtool(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "a", "b")
	families, err := h.server.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range families { // also of those without samples yet
		if len(families[i].Samples) == 0 {
			families[i].Samples = []metrics.Sample{{Labels: []metrics.Label{{Name: "agent", Value: "x"}}, Value: 1}}
		}
	}
	var text strings.Builder
	if err := metrics.Write(&text, families); err != nil {
		t.Fatal(err)
	}
	for _, problem := range lintMetrics(text.String()) {
		t.Error(problem)
	}
	for _, name := range []string{"mailboxd_open_tasks", "mailboxd_tasks_ended_total", "mailboxd_run_cost_dollars_total"} {
		if !strings.Contains(text.String(), "# TYPE "+name+" ") {
			t.Errorf("the metrics lack %s:\n%s", name, text.String())
		}
	}
}

func TestTheRulesOfPromtoolFindMistakes(t *testing.T) {
	for _, text := range []string{
		"# HELP mailboxd_a A.\n# TYPE mailboxd_a counter\nmailboxd_a 1\n",
		"# HELP mailboxd_a_total A.\n# TYPE mailboxd_a_total gauge\nmailboxd_a_total 1\n",
		"# HELP mailboxd_a_ms A.\n# TYPE mailboxd_a_ms gauge\nmailboxd_a_ms 1\n",
		"# TYPE mailboxd_a gauge\nmailboxd_a 1\n",
		"# HELP mailboxd_a A.\n# TYPE mailboxd_a gauge\nmailboxd_a 1\nmailboxd_a 2\n",
		"# HELP mailboxd_a A.\n# TYPE mailboxd_a gauge\nmailboxd_a{x=y} 1\n",
		"# HELP mailboxd_aB A.\n# TYPE mailboxd_aB gauge\nmailboxd_aB 1\n",
	} {
		if len(lintMetrics(text)) == 0 {
			t.Errorf("no mistake is found in\n%s", text)
		}
	}
}

// BenchmarkScrapeDuringAFlood is one scrape while transactions come as fast as they can. A
// scrape each second takes this part of a second from the engine, less the pause of 10 ms here:
// 20 ms are 2 %. It takes 1.6 ms on two shared cores.
func BenchmarkScrapeDuringAFlood(b *testing.B) {
	h := open(b, stranger)
	ctx, stop := context.WithCancel(b.Context())
	var flood sync.WaitGroup
	flood.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := h.addTask(n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for b.Loop() {
		families, err := h.server.Metrics(b.Context())
		if err == nil {
			err = metrics.Write(io.Discard, families)
		}
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the flood goes on between scrapes
	}
	stop()
	flood.Wait()
}

// addTask adds a task and its event in a transaction of its own.
func (h *fixture) addTask(n int) error {
	id := fmt.Sprint("t", n)
	return h.memory.Update(context.Background(), func(tx *ledger.Tx) error {
		row := task.Task{ID: envelope.ID(id), Revision: 1, State: task.Held, Reasons: []task.Reason{task.Operator}, Hash: id, Dialect: "ainl", Agent: "a", Requester: "r", Received: time.Now()}
		if _, err := tx.Add(row, line(id)); err != nil {
			return err
		}
		return tx.Log(task.Event{Time: time.Now(), Kind: task.KindTaskAccepted, Task: row.ID, Revision: 1})
	})
}

// BenchmarkFloodOfEvents is one flood, in turns of two seconds with a scrape of the control
// socket each second and without one: what they cost, as medians over the turns (-benchtime=40x
// is 40 pairs). Turns of one process see the same disk and the same size of the ledger. With
// TMPDIR in memory the noise of the disk is left out, and a task is as fast as it can be.
func BenchmarkFloodOfEvents(b *testing.B) {
	h := open(b, stranger)
	n := 0
	turn := func(scrapes int) (wall, processor float64) {
		began, used, tasks := time.Now(), processorTime(b), n
		var scraping sync.WaitGroup
		scraping.Go(func() {
			for i := range scrapes {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second)))
				if err := h.scrape(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
		for ; time.Since(began) < 2*time.Second; n++ {
			if err := h.addTask(n); err != nil {
				b.Fatal(err)
			}
		}
		scraping.Wait()
		return float64(time.Since(began)) / float64(n-tasks), float64(processorTime(b)-used) / float64(n-tasks)
	}
	var plain, ratios, costs []float64
	for pair := 0; b.Loop(); pair++ {
		var wall, processor [2]float64
		for i := range 2 {
			with := (pair + i) % 2 // each of the two comes first every other time
			wall[with], processor[with] = turn(2 * with)
		}
		plain = append(plain, wall[0])
		ratios, costs = append(ratios, wall[1]/wall[0]), append(costs, processor[1]/processor[0])
	}
	b.ReportMetric(median(plain), "ns/task")
	b.ReportMetric(median(ratios), "wall-ratio")
	b.ReportMetric(median(costs), "cpu-ratio")
}

// processorTime returns the time that this process used of the processors.
func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// scrape reads the metrics at the control socket.
func (h *fixture) scrape(ctx context.Context) error {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return h.location.Dial(ctx) }}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mailboxd/metrics", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(text), "mailboxd_open_tasks") {
		err = fmt.Errorf("status %s: %.200s", response.Status, text)
	}
	return err
}
