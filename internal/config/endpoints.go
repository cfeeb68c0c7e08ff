package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/redact"
	"muster/internal/yamldoc"
)

// Endpoints are the model servers of the user's own file, by their names. A model is named NAME/MODEL there. Only the
// user's own file has any, so a record or a repository may name one: it chooses among servers that the user chose. The
// zero value has none.
type Endpoints struct {
	byName map[string]endpoint
	models map[string]modelSetting // what the user says about models, by their names
}

// endpoint is a model server of the user's own file, with its key, which is read together with the file.
type endpoint struct {
	endpointInFile
	access Access
	err    error // why the server cannot be used now
}

// Access is what a model's server wants in each request beside the model's name. It holds secrets.
type Access struct {
	Key string
	// KeyName is the variable or the file that has the key or should have it, as messages name it, or key_command. It
	// is "" for an endpoint without a key.
	KeyName string
	// IsBearer says that the key is sent as a bearer token, also where the interface has another header for it.
	IsBearer bool
	// Source is where the key can be read again: a server that refuses it may take the one that is there later.
	Source KeySource
	Header map[string]string
	// Extra are fields of the request's body; one that is null is left out.
	Extra map[string]json.RawMessage
	// Requests and Tokens are how many the user allows in a minute; 0 means what the server allows.
	Requests, Tokens int
}

// KeySource is where a key stands. The zero value is a key that stays the same while the process runs.
type KeySource struct {
	File string // the path of a file that has only the key
	// Command prints the key, in the directory Dir. It is not run together with the reading of the file: the key of
	// Access is "" there.
	Command, Dir string
}

// endpointInFile is an endpoint as the file has it.
type endpointInFile struct {
	URL     string            `yaml:"url"`
	API     string            `yaml:"api"` // in an endpoint: Anthropic, OpenAIChat or OpenAIResponses
	KeyEnv  string            `yaml:"key_env"`
	KeyFile string            `yaml:"key_file"`
	Command string            `yaml:"key_command"`
	Headers map[string]string `yaml:"headers"`
	Extra   map[string]any    `yaml:"extra_body"`
	// What the user allows in a minute.
	Requests int `yaml:"requests_per_minute"`
	Tokens   int `yaml:"tokens_per_minute"`
	// A key in the file itself is refused: these are copied, shown and backed up.
	Key    any `yaml:"key"`
	APIKey any `yaml:"api_key"`
}

// endpointName is the name of an endpoint.
var endpointName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Choose resolves the name of a model with the endpoints and the environment, as the function Choose does without
// endpoints. A configured endpoint gets its own key and never that of a vendor. Errors are Invalid.
func (e Endpoints) Choose(model string, environ []string) (Choice, Access, error) {
	x, ok := e.models[model]
	if !ok {
		return e.choose(model, environ)
	}
	provider, rest, _ := strings.Cut(model, "/")
	c, access, err := e.choose(cmp.Or(x.Endpoint, provider)+"/"+rest, environ)
	return c, x.apply(access), cmp.Or(err, x.err)
}

// choose is Choose without what the user says about the model.
func (e Endpoints) choose(model string, environ []string) (Choice, Access, error) {
	name, rest, _ := strings.Cut(model, "/")
	if x, ok := e.byName[name]; ok {
		c := Choice{Provider: x.API, Name: rest, URL: x.URL}
		// A proxy of a vendor's may have the vendor's name, and then serves the vendor's models.
		if v, ok := vendorOf(name); ok && v.api == x.API {
			c.Provider = v.name
		}
		return c, x.access, cmp.Or(e.CheckModel(model), x.err)
	}
	c, err := Choose(model, environ)
	v, _ := vendorOf(c.Provider)
	return c, v.access(environment(environ)), err
}

// CheckModel reports what is wrong with the name of a model. Errors are Invalid.
func (e Endpoints) CheckModel(model string) error {
	name, rest, _ := strings.Cut(model, "/")
	if _, ok := e.byName[name]; !ok {
		_, err := ParseModel(model)
		return err
	}
	if _, _, hasURL := cutEndpoint(rest); rest == "" || hasURL || !isShort(model) {
		return muster.Errorf(muster.Invalid,
			"a model of your endpoint %s is named %[1]s/MODEL, with no URL behind it", name)
	}
	return nil
}

// isUnknown reports whether a model's name begins with the name of an endpoint that the user does not have.
func (e Endpoints) isUnknown(model string) bool {
	name, _, ok := strings.Cut(model, "/")
	_, isKnown := e.byName[name]
	return ok && endpointName().MatchString(name) && !isKnown && !slices.Contains(providerNames(), name)
}

// Secrets returns the keys of the endpoints and what else is secret in their requests.
func (e Endpoints) Secrets() (values []string) {
	for _, x := range e.byName {
		values = append(append(values, x.access.Key), redact.InURLs(x.URL)...)
		values = append(values, x.access.inHeader()...)
	}
	for _, x := range e.models {
		values = append(values, x.access.inHeader()...)
	}
	return values
}

// inHeader returns what is secret in the header.
func (a Access) inHeader() (values []string) {
	for name, value := range a.Header {
		values = append(values, redact.InHeader(name, value)...)
	}
	return values
}

func (e Endpoints) values(source Source) (list []Value) {
	for _, name := range slices.Sorted(maps.Keys(e.byName)) {
		x := e.byName[name]
		about := "no key"
		switch name := x.keyName(); {
		case x.Command != "":
			about = "key from " + name
		case name != "":
			about = "key in " + name
		}
		if x.Requests > 0 {
			about += fmt.Sprintf(", %d requests a minute", x.Requests)
		}
		if x.Tokens > 0 {
			about += fmt.Sprintf(", %d tokens a minute", x.Tokens)
		}
		if x.err != nil {
			about = x.err.Error()
		}
		list = append(list, Value{Name: "endpoints." + name, Source: source,
			Value:       strings.TrimPrefix(withoutQuery("@"+x.URL), "@"),
			Description: fmt.Sprintf("a model server of yours (%s, %s): --model %s/MODEL", x.API, about, name)})
	}
	return list
}

// ReadEndpoints returns the endpoints of the user's own file alone. It is for what must know the keys before the
// settings are read. A file that is wrong has none; Load says what is wrong.
func ReadEndpoints(o Options) Endpoints {
	l := newLoader(o)
	f := fileLoader{loader: l, name: UserFile(o.UserDir)}
	if root, err := f.parse(f.name); err == nil {
		_ = f.servers(root)
	}
	return l.Endpoints
}

// servers reads the model servers of a file, and then what it says about models, which may be of these servers.
func (l *fileLoader) servers(root ast.Node) error {
	err := l.section(root, endpointsKey, "endpoints are expected here, each as name: {url: URL}", l.endpoint)
	if err != nil {
		return err
	}
	return l.section(root, modelsKey, "models are expected here, each as provider/model: {window: TOKENS}", l.model)
}

// keyName returns what has the key of an endpoint, as Access.KeyName has it.
func (in endpointInFile) keyName() string {
	if in.Command != "" {
		return "key_command"
	}
	return cmp.Or(in.KeyEnv, in.KeyFile)
}

// section calls read with each entry below a key. expected is the error for something else there.
func (l *fileLoader) section(root ast.Node, key, expected string, read func(*ast.MappingValueNode) error) error {
	for _, v := range yamldoc.Entries(root) {
		if v.Key.GetToken().Value != key {
			continue
		}
		if yamldoc.Entries(v.Value) == nil && v.Value.Type() != ast.NullType {
			return l.errorAt(v.Value, expected)
		}
		for _, v := range yamldoc.Entries(v.Value) {
			if err := read(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *fileLoader) setExtra(v *ast.MappingValueNode, fields map[string]any, to *Access) error {
	to.Extra = map[string]json.RawMessage{}
	for field, value := range fields {
		data, err := json.Marshal(value)
		if err != nil {
			return l.errorAt(v.Key, "the field "+field+" of extra_body cannot be sent: "+err.Error())
		}
		to.Extra[field] = data
	}
	return nil
}

func (l *fileLoader) endpoint(v *ast.MappingValueNode) error {
	var in endpointInFile
	if err := decode(l.name, v.Value, &in); err != nil {
		return err
	}
	name := v.Key.GetToken().Value
	if problem := checkEndpoint(name, in); problem != "" {
		return l.errorAt(v.Key, "the endpoint "+name+" "+problem)
	}
	if in.API = cmp.Or(in.API, OpenAI); in.API == OpenAI {
		in.API = OpenAIChat
		if v, _ := vendorOf(OpenAI); v.isAt(in.URL) {
			in.API = OpenAIResponses
		}
	}
	x := endpoint{endpointInFile: in, access: Access{Requests: in.Requests, Tokens: in.Tokens}}
	if err := l.setExtra(v, in.Extra, &x.access); err != nil {
		return err
	}
	if x.err = l.readKeys(in, &x.access); x.err != nil {
		x.err = muster.Errorf(muster.Invalid, "the endpoint %s cannot be used: %w", name, x.err)
	}
	l.Endpoints.byName[name] = x
	return nil
}

// checkEndpoint returns what is wrong with an endpoint, after its name, and "" if nothing is.
func checkEndpoint(name string, in endpointInFile) string {
	u, err := url.Parse(in.URL)
	switch {
	case !endpointName().MatchString(name):
		return "needs a name of letters, digits, dots and dashes, at most 64"
	case slices.Contains(providers, name):
		return "has the name of a provider: take another"
	case in.Key != nil || in.APIKey != nil:
		return "has a key in the file: name its variable with key_env, a file that has only the key with key_file, " +
			"or a command that prints it with key_command"
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "needs a url such as http://localhost:11434/v1"
	case u.User != nil:
		return "has a name or a key in its url: use key_env, key_file, key_command or headers"
	case !slices.Contains([]string{"", Anthropic, OpenAI, OpenAIChat, OpenAIResponses}, in.API):
		return "has an api that is not anthropic, openai, openai-chat or openai-responses"
	case in.Requests < 0 || in.Tokens < 0:
		return "has a negative limit: leave it out to allow what the server allows"
	case in.KeyEnv != "" && in.KeyFile != "":
		return "has both key_env and key_file: leave one out"
	case in.Command != "" && in.KeyEnv+in.KeyFile != "":
		return "has a key_command beside key_env or key_file: leave one out"
	}
	return ""
}

// readKeys reads the key of an endpoint, and the variables that its headers name as $NAME.
func (l *fileLoader) readKeys(in endpointInFile, to *Access) (err error) {
	get := func(variable string) string {
		v := trimKey(l.environ[variable])
		switch problem := checkKey(variable, v); {
		case !redact.IsCredential(variable):
			err = errors.New(variable +
				" may be seen by commands: take a variable with KEY, TOKEN or SECRET in its name")
		case v == "":
			err = errors.New(variable + " is not set")
		case problem != nil:
			err = problem
		}
		return v
	}
	to.Header = map[string]string{}
	for name, value := range in.Headers {
		to.Header[name] = strings.TrimSpace(os.Expand(value, get))
		isSendable := httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(to.Header[name])
		if err == nil && !isSendable {
			err = fmt.Errorf("the header %q cannot be sent: a name has letters, digits and dashes, "+
				"and a value is one line", name)
		}
	}
	if to.KeyName = in.keyName(); in.KeyEnv != "" {
		to.Key = get(in.KeyEnv)
	}
	if in.Command != "" {
		to.Source = KeySource{Command: in.Command, Dir: filepath.Dir(l.name)}
	}
	if in.KeyFile == "" || err != nil {
		return err
	}
	path := InHome(l.environ["HOME"], []string{in.KeyFile})[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(l.name), path)
	}
	to.Source.File = path
	to.Key, err = ReadKeyFile(path)
	return err
}
