package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// A Loaded is a configuration with what was read from the files that it names.
type Loaded struct {
	Config  Config
	Agents  []Agent
	Secrets map[string]string // of senders, by name
}

// LoadAll reads the configuration as Load does, and the files that it names.
func LoadAll(path, root string) (Loaded, error) {
	c, err := Load(path, root)
	if err != nil {
		return Loaded{}, err
	}
	return c.ReadAll()
}

// ReadAll reads the files that the configuration names.
func (c Config) ReadAll() (Loaded, error) {
	secrets, err := c.Secrets()
	return Loaded{Config: c, Agents: c.ReadAgents(), Secrets: secrets}, err
}

// reloadable are the sections that a daemon takes from the file while it runs. It reads
// the others when it starts.
var reloadable = []string{
	"agents", "approval", "approvers", "approvers_file", "conversation", "groups", "policy", "routing", "senders", "signatures", "tools", "workflows",
}

// Reload returns what a running daemon has in force after it read next: the sections that
// are reloadable are those of next.
func (l Loaded) Reload(next Loaded) Loaded {
	now := l.Config
	from := reflect.ValueOf(next.Config)
	for i := range from.NumField() {
		if slices.Contains(reloadable, from.Type().Field(i).Tag.Get("mapstructure")) {
			reflect.ValueOf(&now).Elem().Field(i).Set(from.Field(i))
		}
	}
	now.written, now.file, now.dir = next.Config.written, next.Config.file, next.Config.dir
	return Loaded{Config: now, Agents: next.Agents, Secrets: next.Secrets}
}

// Diff returns the differences between a configuration and the next one, in the order of
// the example, those of agents last. It shows no secret.
func (l Loaded) Diff(next Loaded) []client.ConfigChange {
	was, is := l.Config, next.Config
	agents, nextAgents := was.written, is.written
	was.Agents, is.Agents = nil, nil
	list := diffSettings(settingsOf(reflect.ValueOf(was), ""), settingsOf(reflect.ValueOf(is), ""))
	list = slices.DeleteFunc(list, func(c client.ConfigChange) bool { return c.Key == "agents" })
	for i, c := range list {
		section := c.Key[:strings.IndexAny(c.Key+".", ".[")]
		list[i].Restart = !slices.Contains(reloadable, section)
	}
	for name, secret := range next.Secrets {
		if before, known := l.Secrets[name]; known && before != secret {
			list = append(list, client.ConfigChange{Key: "senders." + name, Change: client.Changed})
		}
	}
	return append(list, diffAgents(agents, nextAgents, l.Agents, next.Agents)...)
}

// diffSettings returns the settings that differ.
func diffSettings(was, is []Setting) (list []client.ConfigChange) {
	before := map[string]Setting{}
	for _, s := range was {
		before[s.Key] = s
	}
	for _, s := range is {
		old, known := before[s.Key]
		delete(before, s.Key)
		switch {
		case !known:
			list = append(list, client.ConfigChange{Key: s.Key, Change: client.Added, Is: encode(s.Value)})
		case !reflect.DeepEqual(old.raw, s.raw):
			c := client.ConfigChange{Key: s.Key, Change: client.Changed, Was: encode(old.Value), Is: encode(s.Value)}
			if string(c.Was) == string(c.Is) {
				c.Was, c.Is = nil, nil // only a hidden part differs
			}
			list = append(list, c)
		}
	}
	for _, s := range was {
		if _, gone := before[s.Key]; gone {
			list = append(list, client.ConfigChange{Key: s.Key, Change: client.Removed, Was: encode(s.Value)})
		}
	}
	return slices.DeleteFunc(list, func(c client.ConfigChange) bool { return c.Change != client.Changed && isEmpty(c.Was) && isEmpty(c.Is) })
}

// isEmpty reports whether a value is absent, or stands for no entries: each entry of a list
// is a key of its own.
func isEmpty(v jsontext.Value) bool { return v == nil || string(v) == "[]" || string(v) == "null" }

// encode returns a value as JSON; null for what JSON does not have.
func encode(value any) jsontext.Value {
	text, err := json.Marshal(value)
	if err != nil {
		return jsontext.Value("null")
	}
	return text
}

// diffAgents returns the differences between the entries of agents, and between their
// manifests and definitions.
func diffAgents(was, is []Entry, wasRead, isRead []Agent) (list []client.ConfigChange) {
	for _, e := range is {
		at := slices.IndexFunc(was, func(old Entry) bool { return old.ID == e.ID })
		if at < 0 {
			list = append(list, client.ConfigChange{Agent: e.ID, Change: client.Added})
			continue
		}
		changes := diffSettings(settingsOf(reflect.ValueOf(was[at]), ""), settingsOf(reflect.ValueOf(e), ""))
		if len(changes) == 0 && !reflect.DeepEqual(was[at].defined, e.defined) {
			changes = []client.ConfigChange{{Key: "definition, the file", Change: client.Changed}}
		}
		if len(changes) == 0 && !reflect.DeepEqual(manifestsOf(e.ID, wasRead), manifestsOf(e.ID, isRead)) {
			changes = []client.ConfigChange{{Key: "manifest, the file", Change: client.Changed}}
		}
		if len(changes) == 0 && !reflect.DeepEqual(cardsOf(e.ID, wasRead), cardsOf(e.ID, isRead)) {
			changes = []client.ConfigChange{{Key: "card, the file", Change: client.Changed}}
		}
		for _, c := range changes {
			c.Agent = e.ID
			list = append(list, c)
		}
	}
	for _, e := range was {
		if !slices.ContainsFunc(is, func(next Entry) bool { return next.ID == e.ID }) {
			list = append(list, client.ConfigChange{Agent: e.ID, Change: client.Removed})
		}
	}
	return list
}

// cardsOf returns what was read of the cards of an entry's agents.
func cardsOf(id string, agents []Agent) (list []*envelope.Card) {
	for _, a := range agents {
		if a.Entry.ID == id || a.Entry.replica == id {
			list = append(list, a.Card)
		}
	}
	return list
}

// manifestState is what was read of the manifest of an agent.
type manifestState struct {
	manifest *envelope.Manifest
	unfit    string
}

// manifestsOf returns what was read of the manifests of an entry's agents.
func manifestsOf(id string, agents []Agent) (list []manifestState) {
	for _, a := range agents {
		if a.Entry.ID == id || a.Entry.replica == id {
			list = append(list, manifestState{a.Subject.Manifest, a.Subject.Unfit})
		}
	}
	return list
}
