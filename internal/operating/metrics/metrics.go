// Package metrics writes metrics in Prometheus's text form.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Metric is one metric with its samples.
type Metric struct {
	Name    string // with its unit; a counter ends in _total
	Type    Type
	Help    string
	Samples []Sample
}

// A Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter Type = "counter"
	Gauge   Type = "gauge"
	Summary Type = "summary" // without quantiles: samples have the suffixes _sum and _count
)

// A Sample is one value of a metric.
type Sample struct {
	Suffix string
	Labels []Label
	Value  float64
}

// A Label distinguishes the samples of a metric.
type Label struct{ Name, Value string }

// ContentType is the type of the text form.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Write writes families, in their order. A family without samples is left out.
func Write(w io.Writer, families []Metric) error {
	var b bytes.Buffer
	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpEscapes.Replace(f.Help), f.Name, f.Type)
		for _, s := range f.Samples {
			b.WriteString(f.Name + s.Suffix)
			for i, l := range s.Labels {
				b.WriteByte("{,"[min(i, 1)])
				b.WriteString(l.Name + `="` + labelEscapes.Replace(strings.ToValidUTF8(l.Value, "\uFFFD")) + `"`)
			}
			if len(s.Labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteString(" " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// WriteFile puts families in a file that other users can read, for the textfile collector of
// the node exporter. A reader never sees a part of it.
func WriteFile(path string, families []Metric) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".mailboxd-*")
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	err = Write(file, families)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// RunCounts are sums over the ended runs of an agent.
type RunCounts struct {
	Runs             int64
	Took             time.Duration
	Tokens, USDCents int64
}
