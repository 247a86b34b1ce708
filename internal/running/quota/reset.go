package quota

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// grace is how old a time of day may be that a message names. Programs round the end
	// of a limit, and say "resets 11pm" also shortly after 11pm.
	grace = 15 * time.Minute
	// longest is how far away the end of a limit may be. Limits last hours, weeks, or a
	// month of billing; anything later is misread.
	longest = 35 * 24 * time.Hour
)

var (
	epoch  = regexp.MustCompile(`limit reached\|(\d{10})(?:\d{3})?(?:\D|$)`)
	before = regexp.MustCompile(`(?:resets?|try again|retry|when your monthly cycle ends)(?: (?:at|in|after|on))?:? +`)

	isoDate  = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})(?:[t ]+|$|\b)`)
	usDate   = regexp.MustCompile(`^(\d{1,2})/(\d{1,2})/(\d{4})(?:,? +|$|\b)`)
	wordDate = regexp.MustCompile(`^(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? +(\d{4}))?(?:,? +(?:at +)?|$|\b)`)
	weekday  = regexp.MustCompile(`^(sun|mon|tue|wed|thu|fri|sat)[a-z]*,? +(?:at +)?`)
	clock12  = regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))? ?([ap])\.?m\b`)
	clock24  = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::\d{2}(?:\.\d+)?)?`)
	zone     = regexp.MustCompile(`^\.? ?(?:\(([^()]+)\)|(utc|gmt|z)\b|([+-])(\d{2}):?(\d{2}))`)
)

// Reset returns when the limit ends that a failure message names. The program printed the
// message at now, whose location is the local one: a time without a zone is local. ok is
// false if the message names no time, or none that can be read. The time may be shortly
// before now.
func Reset(message string, now time.Time) (at time.Time, ok bool) {
	text := normal(message)
	if m := epoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		return plausible(time.Unix(seconds, 0), now)
	}
	for _, found := range before.FindAllStringIndex(text, -1) {
		rest := text[found[1]:]
		if wait, ok := duration(rest); ok {
			return plausible(now.Add(wait), now)
		}
		if at, ok := instant(rest, message, now); ok {
			return plausible(at, now)
		}
	}
	return time.Time{}, false
}

// At returns a time that a program reports in seconds since 1970, if a limit can end then.
func At(seconds int64, now time.Time) (time.Time, bool) { return plausible(time.Unix(seconds, 0), now) }

func plausible(at, now time.Time) (time.Time, bool) {
	if at.Before(now.Add(-24*time.Hour)) || at.After(now.Add(longest)) {
		return time.Time{}, false
	}
	return at, true
}

var units = map[string]time.Duration{
	"day": 24 * time.Hour, "d": 24 * time.Hour, "hour": time.Hour, "hr": time.Hour, "h": time.Hour,
	"minute": time.Minute, "min": time.Minute, "m": time.Minute, "second": time.Second, "sec": time.Second, "s": time.Second,
	"ms": time.Millisecond,
}

// duration reads a length of time such as "4 days 7 hours 3 minutes", "19h51m3s" or "45.3s".
func duration(text string) (sum time.Duration, ok bool) {
	if strings.HasPrefix(text, "less than a minute") {
		return time.Minute, true
	}
	for {
		text = strings.TrimLeft(text, " ,")
		text = strings.TrimPrefix(text, "and ")
		digits := len(text) - len(strings.TrimLeft(text, "0123456789."))
		rest := strings.TrimPrefix(text[digits:], " ")
		letters := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		name := rest[:letters]
		unit := units[name]
		if unit == 0 {
			unit = units[strings.TrimSuffix(name, "s")]
		}
		n, err := strconv.ParseFloat(strings.TrimRight(text[:digits], "."), 64)
		part := n * float64(unit)
		if err != nil || unit == 0 || part > float64(longest-sum) {
			return sum, ok && err != nil
		}
		sum, ok, text = sum+time.Duration(part), true, rest[letters:]
	}
}

// instant reads a date, a time of day, or both, with an optional zone. The original text has
// the zone's name in its own case.
func instant(text, original string, now time.Time) (time.Time, bool) {
	d := date{year: now.Year()}
	text = d.read(text)
	hour, minute, text, clocked := clock(text)
	if !clocked && !d.given {
		return time.Time{}, false
	}
	location, ok := location(text, original, now.Location())
	if !ok {
		return time.Time{}, false
	}
	return d.at(hour, minute, clocked, now.In(location))
}

// A date is the date in a message, or the day of the week.
type date struct {
	year, month, day int
	given, yearless  bool
	weekday          int // 1 to 7 from Sunday; 0 for none
}

// read reads a date from the beginning of a text, and returns the rest.
func (d *date) read(text string) string {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	if m := isoDate.FindStringSubmatch(text); m != nil {
		d.year, d.month, d.day, d.given = number(m[1]), number(m[2]), number(m[3]), true
		return text[len(m[0]):]
	}
	if m := usDate.FindStringSubmatch(text); m != nil {
		d.year, d.month, d.day, d.given = number(m[3]), number(m[1]), number(m[2]), true
		return text[len(m[0]):]
	}
	if m := wordDate.FindStringSubmatch(text); m != nil {
		d.month, d.day, d.given, d.yearless = strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", m[1])/3+1, number(m[2]), true, m[3] == ""
		if !d.yearless {
			d.year = number(m[3])
		}
		return text[len(m[0]):]
	}
	if m := weekday.FindStringSubmatch(text); m != nil {
		d.weekday = strings.Index("sunmontuewedthufrisat", m[1])/3 + 1
		return text[len(m[0]):]
	}
	return text
}

// at returns the time of day on the date: without one, the next such time.
func (d *date) at(hour, minute int, clocked bool, now time.Time) (time.Time, bool) {
	if !d.given {
		for day := range 8 { // today, and one week
			at := time.Date(now.Year(), now.Month(), now.Day()+day, hour, minute, 0, 0, now.Location())
			if !at.Before(now.Add(-grace)) && (d.weekday == 0 || int(at.Weekday())+1 == d.weekday) {
				return at, true
			}
		}
		return time.Time{}, false
	}
	if d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 {
		return time.Time{}, false
	}
	if !clocked { // the day itself: until it has begun
		hour, minute = 0, 0
	}
	at := time.Date(d.year, time.Month(d.month), d.day, hour, minute, 0, 0, now.Location())
	if d.yearless && at.Before(now.Add(-24*time.Hour)) {
		at = time.Date(d.year+1, time.Month(d.month), d.day, hour, minute, 0, 0, now.Location())
	}
	return at, true
}

// clock reads a time of day from the beginning of a text, and returns the rest.
func clock(text string) (hour, minute int, rest string, ok bool) {
	if m := clock12.FindStringSubmatch(text); m != nil {
		hour, _ = strconv.Atoi(m[1])
		minute, _ = strconv.Atoi(m[2])
		ok = hour >= 1 && hour <= 12 && minute < 60
		hour %= 12
		if m[3] == "p" {
			hour += 12
		}
		return hour, minute, text[len(m[0]):], ok
	}
	if m := clock24.FindStringSubmatch(text); m != nil {
		hour, _ = strconv.Atoi(m[1])
		minute, _ = strconv.Atoi(m[2])
		return hour, minute, text[len(m[0]):], hour < 24 && minute < 60
	}
	return 0, 0, text, false
}

// location returns the zone at the beginning of a text, or the local one. ok is false for a
// zone that isn't known.
func location(text, original string, local *time.Location) (*time.Location, bool) {
	m := zone.FindStringSubmatch(text)
	switch {
	case m == nil:
		return local, true
	case m[2] != "":
		return time.UTC, true
	case m[3] != "":
		hours, _ := strconv.Atoi(m[4])
		minutes, _ := strconv.Atoi(m[5])
		offset := hours*3600 + minutes*60
		if m[3] == "-" {
			offset = -offset
		}
		return time.FixedZone("", offset), true
	}
	name := regexp.MustCompile(`(?i)\(` + regexp.QuoteMeta(m[1]) + `\)`).FindString(original)
	location, err := time.LoadLocation(strings.Trim(name, "()"))
	return location, err == nil && location != time.Local
}
