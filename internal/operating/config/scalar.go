package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalarProblem says why a value is not of a type; "" when it is.
func scalarProblem(n *yaml.Node, want reflect.Type) string {
	switch {
	case want == reflect.TypeFor[time.Duration]():
		return durationProblem(n.Value)
	case want.Kind() == reflect.Bool:
		if _, err := strconv.ParseBool(n.Value); err != nil {
			return fmt.Sprintf("%q is neither true nor false", n.Value)
		}
	case want.Kind() == reflect.Int, want.Kind() == reflect.Int64:
		return numberProblem(n)
	case want.Kind() == reflect.String:
		if tag := n.ShortTag(); tag == "!!bool" || tag == "!!timestamp" {
			return fmt.Sprintf("%s is no text to YAML: write it in quotes", n.Value)
		}
	}
	return ""
}

// durationProblem refuses a number without a unit: 600 would be 600 nanoseconds, which
// nobody means. Zero needs no unit.
func durationProblem(text string) string {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%s has no unit: write %[1]ss for seconds", text)
	}
	if _, err := time.ParseDuration(text); err != nil {
		return fmt.Sprintf("%q is no duration: write one such as 90s, 10m or 24h", text)
	}
	return ""
}

func numberProblem(n *yaml.Node) string {
	if f, err := strconv.ParseFloat(n.Value, 64); n.ShortTag() == "!!float" && err == nil {
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return fmt.Sprintf("%s is not a whole number", n.Value)
		}
		return ""
	}
	var number int64
	if n.ShortTag() == "!!int" {
		if n.Decode(&number) != nil {
			return fmt.Sprintf("%s is too large", n.Value)
		}
		return ""
	}
	if _, err := strconv.ParseInt(n.Value, 0, 64); err != nil {
		return fmt.Sprintf("%q is not a whole number", n.Value)
	}
	return ""
}
