package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/metrics"
)

// serveMetrics answers with the metrics in Prometheus's text form.
func (d *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	families, err := d.Metrics(r.Context())
	if err != nil {
		refuse(w, r, d.opts.Log, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slow))
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = metrics.Write(w, families) // the requester is gone, or too slow
}

// Metrics returns the metrics of the daemon. Most of them are in memory, so that frequent
// questions cost little, however many tasks are open.
func (d *Server) Metrics(ctx context.Context) ([]metrics.Metric, error) {
	open, err := d.engine.Ledger.CountOpen(ctx)
	if err != nil {
		return nil, err
	}
	var oldest time.Time
	if open[task.Queued] > 0 {
		if oldest, err = d.engine.Ledger.OldestQueued(ctx); err != nil {
			return nil, err
		}
	}
	paused, err := d.engine.Ledger.Paused(ctx)
	if err != nil {
		return nil, err
	}
	last, err := d.engine.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	gauge := func(name, help string, samples ...metrics.Sample) metrics.Metric {
		return metrics.Metric{Name: name, Type: metrics.Gauge, Help: help, Samples: samples}
	}
	families := []metrics.Metric{
		gauge("mailboxd_build_info", "The version of the daemon; always 1.", sample(1, "version", d.opts.Version)),
		gauge("mailboxd_start_timestamp_seconds", "When the daemon opened its socket.", sample(seconds(d.opened))),
		gauge("mailboxd_open_tasks", "Tasks that are not done, by state.", byState(open)...),
		gauge("mailboxd_faults", "Current faults that concern more than one task, or a task file.", sample(float64(len(d.engine.Faults())))),
		gauge("mailboxd_paused_agents", "Paused agents; the pause of every agent counts as one.", sample(float64(len(paused)))),
		{Name: "mailboxd_events_total", Type: metrics.Counter, Help: "Events in the history of the mailbox.", Samples: []metrics.Sample{sample(float64(last))}},
	}
	if !oldest.IsZero() {
		families = append(families, gauge("mailboxd_oldest_queued_timestamp_seconds", "When the oldest queued task was accepted; absent without one.", sample(seconds(oldest))))
	}
	return slices.Concat(families, d.opts.Runners.metrics(), d.counted()), nil
}

// counted returns the counters since the start.
func (d *Server) counted() []metrics.Metric {
	counter := func(name, help string) metrics.Metric {
		return metrics.Metric{Name: name, Type: metrics.Counter, Help: help + " since the start of the daemon."}
	}
	accepted := counter("mailboxd_tasks_accepted_total", "Tasks that came in")
	ended := counter("mailboxd_tasks_ended_total", "Tasks that ended, by status,")
	tokens := counter("mailboxd_run_tokens_total", "Tokens that agents reported")
	dollars := counter("mailboxd_run_cost_dollars_total", "Cost that agents reported, in US dollars,")
	took := metrics.Metric{Name: "mailboxd_run_duration_seconds", Type: metrics.Summary, Help: "Ended runs, and how long they took, since the start of the daemon."}
	d.engine.Writer.Counts.Read(func(in map[string]int64, out map[store.EndedKey]int64, runs map[string]metrics.RunCounts) {
		for _, agent := range slices.Sorted(maps.Keys(in)) {
			accepted.Samples = append(accepted.Samples, sample(float64(in[agent]), "agent", agent))
		}
		keys := slices.SortedFunc(maps.Keys(out), func(a, b store.EndedKey) int {
			return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Status, b.Status))
		})
		for _, k := range keys {
			ended.Samples = append(ended.Samples, sample(float64(out[k]), "agent", k.Agent, "status", string(k.Status)))
		}
		for _, agent := range slices.Sorted(maps.Keys(runs)) {
			r := runs[agent]
			tokens.Samples = append(tokens.Samples, sample(float64(r.Tokens), "agent", agent))
			dollars.Samples = append(dollars.Samples, sample(float64(r.USDCents)/100, "agent", agent))
			sum, n := sample(r.Took.Seconds(), "agent", agent), sample(float64(r.Runs), "agent", agent)
			sum.Suffix, n.Suffix = "_sum", "_count"
			took.Samples = append(took.Samples, sum, n)
		}
	})
	return []metrics.Metric{accepted, ended, took, tokens, dollars}
}

// sample returns a sample with labels, given as names and values.
func sample(value float64, labels ...string) metrics.Sample {
	s := metrics.Sample{Value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels = append(s.Labels, metrics.Label{Name: labels[i], Value: labels[i+1]})
	}
	return s
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

// byState has a sample for each open state, also without tasks.
func byState(open map[task.State]int) (samples []metrics.Sample) {
	for _, state := range task.States() {
		if state != task.Done {
			samples = append(samples, sample(float64(open[state]), "state", string(state)))
		}
	}
	return samples
}

// textfileEvery is how often the textfile is written.
const textfileEvery = 15 * time.Second

// KeepTextfile writes the metrics to a file, again and again, until ctx ends. It returns nil
// then. It logs the first failure of several.
func (d *Server) KeepTextfile(ctx context.Context, path string) error {
	failing := false
	for {
		families, err := d.Metrics(ctx)
		if err == nil {
			err = metrics.WriteFile(path, families)
		}
		if err != nil && !failing && ctx.Err() == nil {
			d.opts.Log.Warn().Str("key", "metrics.textfile").Err(err).Msg("metrics not written")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(textfileEvery):
		}
	}
}
