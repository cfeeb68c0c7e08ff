package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"muster"
	"muster/internal/editdist"
	"muster/llm/catalogue"
)

// The providers that a model's name can begin with.
const (
	Anthropic       = "anthropic"
	OpenAI          = "openai" // Responses at the vendor's endpoint, Chat Completions at any other
	OpenAIChat      = "openai-chat"
	OpenAIResponses = "openai-responses"
	Script          = "script" // a rehearsal read from a file
)

// howNamed tells users how to write the name of a model.
const howNamed = "a model is named like anthropic/claude-sonnet-5, openai/gpt-5.5, " +
	"openai/qwen3@http://localhost:11434/v1 or script/FILE"

// maxName is how many bytes the name of a model may have, with its endpoint or its file.
const maxName = 4096

// Choice is a model as an adapter needs it. It has no key: the adapter is given that beside it.
type Choice struct {
	Provider string // one of providers or the name of a vendor; of Choose, never OpenAI
	Name     string // the model, or the script's file
	URL      string // the endpoint; "" is the vendor's
}

// ParseModel splits the name of a model: provider/model or provider/model@URL. For script/FILE, Name is the file.
// Errors are Invalid.
func ParseModel(s string) (Choice, error) {
	invalid := func(format string, args ...any) (Choice, error) {
		return Choice{}, muster.Errorf(muster.Invalid, format, args...)
	}
	provider, model, ok := strings.Cut(s, "/")
	c := Choice{Provider: provider, Name: model}
	switch {
	// A name may come from a record. It stands in requests and messages, so it is short and printable.
	case !isShort(s):
		return invalid("a model's name is printable and has at most %d bytes, not %d: %s", maxName, len(s), howNamed)
	case !ok || strings.ContainsAny(provider, ":@ "):
		if guess := editdist.DidYouMean(NearModels(s, catalogue.All())); guess != "" {
			return invalid("%q is not a model's name%s: muster models lists all that are known", s, guess)
		}
		return invalid("%q is not a model's name: %s", withoutQuery(s), howNamed)
	case !slices.Contains(providerNames(), provider):
		return c, errNoProvider(provider)
	case provider == Script && model == "":
		return invalid("script/ needs a file: script/FILE")
	case provider == Script:
		return c, nil
	}
	// An error names the model without its endpoint, which may have a key in it.
	if name, at, ok := cutEndpoint(model); ok {
		u, err := url.Parse(at)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return invalid("the endpoint after the @ of model %q is not a URL such as http://localhost:11434/v1", name)
		case u.User != nil: // a key in a URL would be printed and stored wherever the model's name is
			return invalid("the endpoint of model %q has a name or a key in its URL: "+
				"leave it out and set OPENAI_API_KEY or ANTHROPIC_API_KEY", name)
		}
		c.Name, c.URL = name, at
	}
	if c.Name == "" {
		return invalid("%q names no model: %s", provider+"/", howNamed)
	}
	return c, nil
}

// NearModels returns up to three names of models that word may mean, as provider/model: what contains it, or else what
// differs by a slip of the fingers.
func NearModels(word string, all []catalogue.Model) (near []string) {
	const most = 3
	word = strings.ToLower(word)
	if len(word) < 3 {
		return nil
	}
	distances := map[string]int{}
	for _, m := range all {
		full, name := m.Provider+"/"+m.Name, strings.ToLower(m.Name)
		switch d := min(editdist.Distance(word, strings.ToLower(full)), editdist.Distance(word, name)); {
		case d <= 2:
			distances[full] = d
		case strings.Contains(strings.ToLower(full), word):
			distances[full] = 1
		default:
			continue
		}
		near = append(near, full)
	}
	slices.SortStableFunc(near, func(a, b string) int { return distances[a] - distances[b] })
	return near[:min(len(near), most)]
}

// errNoProvider is the error for the name of a model that begins with no provider. The name may be that of an endpoint
// that the user had.
func errNoProvider(name string) error {
	if guess := editdist.Suggest(name, providerNames()); guess != "" {
		return muster.Errorf(muster.Invalid, "there is no provider %q%s: %s", name, guess, howNamed)
	}
	return muster.Errorf(muster.Invalid, "there is no provider %q, and no endpoint of yours has this name: %s",
		name, howNamed).WithHint("another model:      --model MODEL\na server of yours:  " +
		"endpoints: {NAME: {url: URL}} in your own config.yaml, and then NAME/MODEL")
}

// isShort reports whether the name of a model is printable and not too long.
func isShort(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Server returns what in the name of a model only the user may choose: the endpoint, with whose key is sent there, or
// the file whose words stand for a model's. It is "" for a name that the vendor's own endpoint serves. Two names with
// the same Server send the same key to the same place. It has no credentials: a query is one question mark.
func (c Choice) Server() string {
	if c.Provider == Script {
		return c.Provider + "/" + c.Name
	}
	u, err := url.Parse(c.URL)
	if c.URL == "" || err != nil {
		return c.URL
	}
	// The three kinds of OpenAI's interface send the same key.
	key, _, _ := strings.Cut(c.Provider, "-")
	host, query := strings.ToLower(u.Host), ""
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		query = "?"
	}
	return key + "@" + u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/") + query
}

// Stored returns the name of a model as records have it: without what may be a secret in its endpoint.
func Stored(model string) string {
	name, endpoint, ok := cutEndpoint(model)
	if provider, _, _ := strings.Cut(model, "/"); !ok || provider == Script {
		return model
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return name
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return name + "@" + u.String()
}

// cutEndpoint splits at the @ of an endpoint. An @ before something that is no address belongs to the model's name.
func cutEndpoint(model string) (name, endpoint string, ok bool) {
	name, endpoint, ok = strings.Cut(model, "@")
	return name, endpoint, ok && strings.ContainsAny(endpoint, ":/")
}

// providers are the names that a model's name can begin with, beside those of vendors. An endpoint of the user may have
// the name of a vendor that is not among them.
var providers = []string{Anthropic, OpenAI, OpenAIChat, OpenAIResponses, Script}

// Choose resolves the name of a model with the environment. The empty name means the model whose key is set.
// ANTHROPIC_BASE_URL, OPENAI_BASE_URL and so on give endpoints. The vendors' own endpoints need a key. Errors are
// Invalid.
func Choose(name string, environ []string) (Choice, error) {
	env := environment(environ)
	if name == "" {
		if name, _ = modelByKey(env); name == "" {
			return Choice{}, noKey("no vendor's key is set, such as ANTHROPIC_API_KEY or OPENAI_API_KEY")
		}
	}
	c, err := ParseModel(name)
	if err != nil || c.Provider == Script { // a script needs neither a key nor an endpoint
		return c, err
	}
	v, _ := vendorOf(c.Provider)
	c.URL = cmp.Or(c.URL, strings.TrimSpace(env[v.baseURL()]), v.url)
	// Only the vendors' own endpoints are known to need a key. A local server mostly needs none.
	own := v.isAt(c.URL)
	if c.Provider == OpenAI {
		c.Provider = OpenAIChat
		if own {
			c.Provider = OpenAIResponses
		}
	}
	access := v.access(env)
	if own && access.Key == "" {
		return Choice{}, noKey(v.keys[0] + " is not set")
	}
	return c, checkKey(access.KeyName, access.Key)
}

// noKey is the error for a model that cannot be used without a key. It says which variable is missing, and how to use
// a model without a key.
func noKey(missing string) error {
	return muster.Errorf(muster.Invalid,
		"%s (a model without a key: --model openai/qwen3@http://localhost:11434/v1)", missing)
}

func modelByKey(env map[string]string) (model string, source Source) {
	for _, v := range vendors {
		access := v.access(env)
		if v.model != "" && access.Key != "" && (access.IsBearer || access.KeyName == v.keys[0]) {
			return v.name + "/" + v.model, fromEnv(access.KeyName)
		}
	}
	return "", FromDefault
}

// withoutQuery removes what may be a secret: the query of an endpoint, and a name or password before its host.
func withoutQuery(model string) string {
	name, endpoint, ok := cutEndpoint(model)
	if !ok {
		return model
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return name + "@..."
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = "..."
	}
	return name + "@" + u.String()
}
