package quota_test

import (
	"strings"
	"testing"
	"time"

	"mailboxd/internal/running/quota"
)

// berlin is the local zone of these tests.
func berlin(t *testing.T) *time.Location {
	t.Helper()
	location, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	return location
}

func TestTheEndOfALimitIsReadFromTheMessageOfEachProgram(t *testing.T) {
	now := time.Date(2026, 11, 23, 21, 30, 0, 0, berlin(t)) // a Monday
	for message, want := range map[string]string{
		"You've hit your limit · resets 11pm (Europe/Berlin)":                                                             "2026-11-23T23:00:00+01:00",
		"You've hit your limit · resets 11pm":                                                                             "2026-11-23T23:00:00+01:00",
		"You’ve hit your session limit · resets 3:45pm (America/New_York)":                                                "2026-11-23T21:45:00+01:00",
		"You've hit your limit · resets 8pm (Europe/Berlin)":                                                              "2026-11-24T20:00:00+01:00", // past: the next day
		"You've hit your limit · resets 9:20pm (Europe/Berlin)":                                                           "2026-11-23T21:20:00+01:00", // just past
		"You've hit your limit · resets 12am (UTC)":                                                                       "2026-11-24T01:00:00+01:00",
		"You've hit your weekly limit · resets Nov 26, 7am (Europe/Zurich)":                                               "2026-11-26T07:00:00+01:00",
		"You've hit your limit · resets Nov 27 at 4pm (America/Recife)":                                                   "2026-11-27T20:00:00+01:00",
		"Weekly limit reached · resets 10am (Asia/Seoul) · /upgrade to Max or turn on /extra-usage":                       "2026-11-24T02:00:00+01:00",
		"5-hour limit reached ∙ resets 2am":                                                                               "2026-11-24T02:00:00+01:00",
		"You've hit your weekly limit · resets Thu 9am":                                                                   "2026-11-26T09:00:00+01:00",
		"Claude AI usage limit reached|1795474800":                                                                        "2026-11-24T00:00:00+01:00",
		"Claude AI usage limit reached|1795474800000":                                                                     "2026-11-24T00:00:00+01:00",
		"Your limit will reset at 5pm (Asia/Shanghai).":                                                                   "2026-11-24T10:00:00+01:00",
		"resets 2026-11-24 00:00 UTC":                                                                                     "2026-11-24T01:00:00+01:00",
		"resets at 2026-11-24T00:00:00Z":                                                                                  "2026-11-24T01:00:00+01:00",
		"You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 10:34 PM.":         "2026-11-23T22:34:00+01:00",
		"You've hit your usage limit. To get more access now, send a request or try again at Nov 28th, 2026 9:07 AM.":     "2026-11-28T09:07:00+01:00",
		"You've hit your usage limit. Upgrade to Pro or try again in 5 days 22 hours 11 minutes.":                         "2026-11-29T19:41:00+01:00",
		"You've hit your usage limit. Try again in less than a minute.":                                                   "2026-11-23T21:31:00+01:00",
		"usage limit reached, try again in 3 hours":                                                                       "2026-11-24T00:30:00+01:00",
		"You have exhausted your capacity on this model. Your quota will reset after 19h51m3s.":                           "2026-11-24T17:21:03+01:00",
		"Your quota will reset after 3h. (RESOURCE_EXHAUSTED)":                                                            "2026-11-24T00:30:00+01:00",
		"Quota exceeded for metric: x. Please retry in 45.5s.":                                                            "2026-11-23T21:30:45+01:00",
		"[API Error: You exceeded your current quota.\nSuggested retry after 3600s.]\nPlease wait and try again later.":   "2026-11-23T22:30:00+01:00",
		"Your quota will reset after 5s.. Retrying after 6173ms...":                                                       "2026-11-23T21:30:05+01:00",
		"*You've hit your free requests limit. Your usage limits will reset when your monthly cycle ends on 12/17/2026.*": "2026-12-17T00:00:00+01:00",
		"You've hit your limit · resets Jan 2, 9am":                                                                       "", // too far away
		"You've hit your limit · resets Dec 24, 9am":                                                                      "2026-12-24T09:00:00+01:00",
		"You've hit your limit · resets 11pm (Middle/Earth)":                                                              "",
		"You've hit your limit · resets 11pm (../../etc/passwd)":                                                          "",
		"You've hit your limit · resets 25pm":                                                                             "",
		"You've hit your limit · resets 13:99":                                                                            "",
		"You've hit your usage limit. Try again later.":                                                                   "",
		"Claude AI usage limit reached|1":                                                                                 "",
		"Claude AI usage limit reached|9999999999":                                                                        "",
		"resets in 3 months":                   "",
		"resets in 99999999999999999999 hours": "",
		"resets 2026-99-99":                    "",
		"":                                     "",
	} {
		at, ok := quota.Reset(message, now)
		got := ""
		if ok {
			got = at.In(now.Location()).Truncate(time.Second).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("Reset(%q) = %q; want %q", message, got, want)
		}
	}
}

func TestTimesAreReadWithTheirZonesAndAtTheirLimits(t *testing.T) {
	now := time.Date(2026, 11, 23, 21, 30, 0, 0, time.UTC)
	for message, want := range map[string]string{
		"resets 23:15":                           "2026-11-23T23:15:00Z",
		"resets 23:59":                           "2026-11-23T23:59:00Z",
		"resets 23:60":                           "",
		"resets 24:00":                           "",
		"resets 1am":                             "2026-11-24T01:00:00Z",
		"resets 11:60pm":                         "",
		"resets 2026-11-24 08:15:00 +05:30":      "2026-11-24T02:45:00Z",
		"resets 2026-11-24 08:15:00 -03:30":      "2026-11-24T11:45:00Z",
		"resets 11pm (Local)":                    "", // names no zone
		"resets Mon 9:20pm":                      "2026-11-23T21:20:00Z",
		"resets Mon 9pm":                         "2026-11-30T21:00:00Z",
		"resets Nov 23, 9am":                     "2026-11-23T09:00:00Z", // past: not the next year
		"resets Nov 22, 9pm":                     "",
		"resets Dec 1, 9am":                      "2026-12-01T09:00:00Z",
		"resets Dec 0, 9am":                      "",
		"resets in 2d":                           "2026-11-25T21:30:00Z",
		"resets in 35 days":                      "2026-12-28T21:30:00Z",
		"resets in 35 days 1 second":             "",
		"resets in 20 days 15 days":              "2026-12-28T21:30:00Z",
		"resets in 20 days 20 days; retry in 1h": "2026-11-23T22:30:00Z", // the first is misread
	} {
		at, ok := quota.Reset(message, now)
		got := ""
		if ok {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("Reset(%q) = %q; want %q", message, got, want)
		}
	}
}

func TestTheLastDayOfAYearIsADay(t *testing.T) {
	now := time.Date(2026, 12, 30, 12, 0, 0, 0, time.UTC)
	if at, ok := quota.Reset("resets 2026-12-31", now); !ok || at.Format(time.DateOnly) != "2026-12-31" {
		t.Errorf("Reset = %v, %v; want 31 December 2026", at, ok)
	}
}

func TestTheNextYearIsMeantInDecember(t *testing.T) {
	now := time.Date(2026, 12, 30, 12, 0, 0, 0, time.UTC)
	if at, ok := quota.Reset("resets Jan 2, 9am", now); !ok || at.Format(time.DateOnly) != "2027-01-02" {
		t.Errorf("Reset = %v, %v; want 2 January 2027", at, ok)
	}
}

func TestOnlyThePhrasesOfAProgramAreAReason(t *testing.T) {
	for message, want := range map[string]struct {
		program string
		kind    quota.Kind
	}{
		"You've hit your limit · resets 11pm (Europe/Berlin)":      {"claude", quota.Quota},
		"You’ve hit your session limit":                            {"claude", quota.Quota},
		"Weekly limit reached · resets 10am":                       {"claude", quota.Quota},
		"Credit balance is too low":                                {"claude", quota.Quota},
		"You've hit your usage limit. Try again later.":            {"codex", quota.Quota},
		"ConnectError: [resource_exhausted] Error":                 {"cursor", quota.Quota},
		"You have exhausted your daily quota on this model.":       {"gemini", quota.Quota},
		"The usage limit has been reached":                         {"opencode", quota.Quota},
		"Monthly usage limit reached":                              {"opencode", quota.Quota},
		"exceeded retry limit, last status: 429 Too Many Requests": {"codex", quota.Rate},
		"Resource has been exhausted (e.g. check quota).":          {"gemini", quota.Rate},
		"[API Error: You exceeded your current quota, please check your plan and billing details.\nSuggested retry after 60s.]": {"gemini", quota.Rate},
		"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.":      {"claude", quota.Rate},
		"Rate limit reached for the model on tokens per min (TPM). Please try again in 20s.":                                    {"opencode", quota.Rate},
		"API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.":                        {"claude", quota.Overload},
		"API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}":              {"claude", quota.Overload},
		"Selected model is at capacity. Please try a different model.":                                                          {"codex", quota.Overload},
		"exceeded retry limit, last status: 503 Service Unavailable":                                                            {"codex", quota.Overload},
		`[API Error: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE","details":[]}}]`:          {"gemini", quota.Overload},
		"write /x: disk quota exceeded":                                     {},
		"the rate limit of the proxy has to be set":                         {},
		"Reached maximum budget ($0.13)":                                    {},
		"max turns reached":                                                 {},
		"Your organization has disabled access. Try again at 11pm.":         {},
		"the test asserts 429 too many requests":                            {},
		"unexpected status 401 Unauthorized: Missing bearer authentication": {},
	} {
		for _, p := range []string{"claude", "codex", "cursor", "gemini", "opencode"} {
			if got := quota.KindOf(p, message); want.kind == 0 && got != 0 || p == want.program && got != want.kind {
				t.Errorf("KindOf(%s, %q) = %v; want %v of %s", p, message, got, want.kind, want.program)
			}
		}
	}
}

func FuzzResetNamesAPlausibleTimeOrNone(f *testing.F) {
	for _, s := range []string{"resets 11pm (Europe/Berlin)", "try again in 3 hours", "limit reached|1795474800", "resets Nov 26, 7am (UTC)", "ends on 12/17/2026"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 23, 21, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, message string) {
		at, ok := quota.Reset(strings.Repeat(message, 2), now)
		if ok && (at.Before(now.Add(-24*time.Hour)) || at.After(now.Add(36*24*time.Hour))) {
			t.Errorf("Reset(%q) = %v", message, at)
		}
	})
}
