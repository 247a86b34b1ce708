package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// complaint says what is wrong first, in the order of the document's places,
// so that it is the same each time.
func complaint(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	first := invalid
	for leaf := range leaves(invalid) {
		if first == invalid || before(leaf, first) < 0 {
			first = leaf
		}
	}
	what := first.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if len(first.InstanceLocation) == 0 {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %s", strings.Join(first.InstanceLocation, "."), what)
}

func before(a, b *jsonschema.ValidationError) int {
	return cmp.Or(
		slices.Compare(a.InstanceLocation, b.InstanceLocation),
		cmp.Compare(a.SchemaURL, b.SchemaURL),
		slices.Compare(a.ErrorKind.KeywordPath(), b.ErrorKind.KeywordPath()),
	)
}

// leaves yields the errors that have no causes of their own.
func leaves(e *jsonschema.ValidationError) func(yield func(*jsonschema.ValidationError) bool) {
	return func(yield func(*jsonschema.ValidationError) bool) { walk(e, yield) }
}

func walk(e *jsonschema.ValidationError, yield func(*jsonschema.ValidationError) bool) bool {
	if len(e.Causes) == 0 {
		return yield(e)
	}
	for _, cause := range e.Causes {
		if !walk(cause, yield) {
			return false
		}
	}
	return true
}

// oneLine returns the words of an error of the library, which come as a list.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
