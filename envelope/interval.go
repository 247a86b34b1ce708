package envelope

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// windows reads change_window (AINL-58): one interval or a list of them. An unreadable window
// refuses the task: it must not mean "any time".
func (r *request) windows(at int) []Window {
	switch {
	case at == none:
		return nil
	case r.kind(at) == '"':
		return r.window(nil, at)
	case r.kind(at) != '[':
		r.refuse(at, "must be an interval or a list of intervals")
		return nil
	case int(r.nodes[at].next) == at+1:
		r.refuse(at, "must not be empty")
		return nil
	}
	var windows []Window
	for _, item := range r.items(at) {
		windows = r.window(windows, item)
	}
	return windows
}

func (r *request) window(windows []Window, at int) []Window {
	if !r.is(at, '"') {
		return windows
	}
	w, err := parseWindow(r.prose(at))
	if err != nil {
		r.refuse(at, err.Error())
		return windows
	}
	return append(windows, w)
}

// parseWindow reads an ISO 8601 interval: start/end or start/duration.
func parseWindow(s string) (Window, error) {
	from, to, ok := strings.Cut(s, "/")
	if !ok || strings.Contains(to, "/") {
		return Window{}, fmt.Errorf("must be start/end or start/duration, not %s", quote(s))
	}
	start, err := parseInstant(from)
	if err != nil {
		return Window{}, fmt.Errorf("must start at a time with a zone, not %s", quote(from))
	}
	end, err := parseInstant(to)
	if strings.HasPrefix(to, "P") {
		var length time.Duration
		length, err = parseDuration(to)
		end = start.Add(length)
	}
	switch {
	case err != nil:
		return Window{}, fmt.Errorf("must end at a time with a zone or after a duration such as PT1H, not %s", quote(to))
	case !end.After(start):
		return Window{}, errors.New("must end after it starts")
	}
	return Window{Start: start, End: end}, nil
}

// duration is an ISO 8601 duration in units of fixed length; months and years
// have none. The digits are few enough for the sum to fit a time.Duration.
var duration = regexp.MustCompile(`^P(?:(\d{1,3})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?$`)

func parseDuration(s string) (time.Duration, error) {
	parts := duration.FindStringSubmatch(s)
	if parts == nil || strings.HasSuffix(s, "T") {
		return 0, errors.New("is not a duration")
	}
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(parts[i+1]) // "" is 0; the expression allows nothing else that fails
		sum += time.Duration(n) * unit
	}
	return sum, nil
}
