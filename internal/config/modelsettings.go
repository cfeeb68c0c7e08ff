package config

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"muster/internal/yamldoc"
	"muster/llm/catalogue"
)

// modelsKey is what the user's own file says about models below. A name there is one as --model takes it.
const modelsKey = "models"

// modelInFile is what the user says about a model, over the catalogue.
type modelInFile struct {
	Window      int               `yaml:"window"`
	MaxOutput   int               `yaml:"max_output"`
	Images      *bool             `yaml:"images"`
	Price       *catalogue.Price  `yaml:"price"`
	Temperature *float64          `yaml:"temperature"`
	Quirks      []string          `yaml:"quirks"`
	Headers     map[string]string `yaml:"headers"`
	Extra       map[string]any    `yaml:"extra_body"`
	Endpoint    string            `yaml:"endpoint"` // of the user or of a vendor, in place of the model's own
}

// modelSetting is what the user says about a model, with what is sent in its requests.
type modelSetting struct {
	modelInFile
	access Access
	err    error // why the model cannot be used now
}

// Known returns what is known of a model and of the endpoint that Choose chose for it: what the user's own file says,
// over the catalogue. A model of which nothing is known has no Name.
func (e *Endpoints) Known(model string, c Choice) catalogue.Model {
	m, ok := catalogue.Lookup(c.Vendor(), c.Name)
	if !ok {
		m = catalogue.Model{}
	}
	m.Provider = c.Vendor()
	if e == nil {
		return m
	}
	x, isSet := e.models[model]
	if !isSet {
		return m
	}
	return x.over(m, c.Name, ok)
}

// over returns m with what the user says in place of what it has. isKnown is false where m has nothing: such a model
// may get images, until the user says that it takes none.
func (x modelSetting) over(m catalogue.Model, name string, isKnown bool) catalogue.Model {
	m.Name = name
	if m.Source != "" {
		m.Source += "; "
	}
	m.Source += "your own config.yaml"
	if x.Window > 0 {
		m.Window = x.Window
	}
	if x.MaxOutput > 0 {
		m.MaxOutput = x.MaxOutput
	}
	if m.Images = m.Images || !isKnown; x.Images != nil {
		m.Images = *x.Images
	}
	if x.Price != nil {
		m.Prices = []catalogue.Price{*x.Price}
	}
	m.Quirks = slices.Concat(m.Quirks, x.Quirks)
	return m
}

// Models returns all, and what the user says of models over them. Their providers are then the names of endpoints.
func (e *Endpoints) Models(all []catalogue.Model) []catalogue.Model {
	if e == nil {
		return all
	}
	all = slices.Clone(all)
	for _, model := range slices.Sorted(maps.Keys(e.models)) {
		provider, name, _ := strings.Cut(model, "/")
		at := slices.IndexFunc(all, func(m catalogue.Model) bool { return m.Provider == provider && m.Name == name })
		isKnown := at >= 0
		if !isKnown {
			at, all = len(all), append(all, catalogue.Model{Provider: provider, Name: name})
		}
		all[at] = e.models[model].over(all[at], name, isKnown)
	}
	return all
}

// models reads what a file says about models.
func (l *fileLoader) models(root ast.Node) error {
	for _, v := range entries(root) {
		if v.Key.GetToken().Value != modelsKey {
			continue
		}
		if entries(v.Value) == nil && v.Value.Type() != ast.NullType {
			return l.errorAt(v.Value, "models are expected here, each as provider/model: {window: TOKENS}")
		}
		for _, v := range entries(v.Value) {
			if err := l.model(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// model reads what a file says about one model. It stands in the file after its endpoint, or before.
func (l *fileLoader) model(v *ast.MappingValueNode) error {
	var x modelSetting
	if err := yaml.NodeToValue(v.Value, &x.modelInFile, yaml.Strict()); err != nil {
		what := ""
		if _, ok := errors.AsType[*yaml.TypeError](err); ok {
			what = "another kind of value is expected here"
		}
		return yamldoc.Error(l.name, err, what)
	}
	name := v.Key.GetToken().Value
	if problem := l.checkModel(name, x.modelInFile); problem != "" {
		return l.errorAt(v.Key, "the model "+withoutQuery(name)+" "+problem)
	}
	x.access.Extra = map[string]json.RawMessage{}
	if x.Temperature != nil {
		x.access.Extra["temperature"] = json.RawMessage(strconv.FormatFloat(*x.Temperature, 'g', -1, 64))
	}
	for field, value := range x.Extra {
		data, err := json.Marshal(value)
		if err != nil {
			return l.errorAt(v.Key, "the field "+field+" of extra_body cannot be sent: "+err.Error())
		}
		x.access.Extra[field] = data
	}
	x.err = l.readKeys(endpointInFile{Headers: x.Headers}, &x.access)
	if l.Endpoints == nil {
		l.Endpoints = &Endpoints{}
	}
	if l.Endpoints.models == nil {
		l.Endpoints.models = map[string]modelSetting{}
	}
	l.Endpoints.models[name] = x
	return nil
}

// checkModel returns what is wrong with what is said about a model, after its name, and "" if nothing is.
func (l *fileLoader) checkModel(name string, x modelInFile) string {
	if err := l.Endpoints.CheckModel(name); err != nil {
		return "is not named as --model names it: " + err.Error()
	}
	for _, q := range x.Quirks {
		if !slices.Contains(catalogue.Quirks, q) {
			return "has the quirk " + strconv.Quote(q) + ": there are " + strings.Join(catalogue.Quirks, ", ")
		}
	}
	_, isEndpoint := l.Endpoints.all()[x.Endpoint]
	_, isVendor := vendorOf(x.Endpoint)
	switch {
	case x.Endpoint != "" && !isEndpoint && !isVendor:
		return "has the endpoint " + strconv.Quote(x.Endpoint) + ", which is neither yours nor a vendor's"
	case x.Window < 0 || x.MaxOutput < 0:
		return "has a negative number of tokens"
	case x.Window > 0 && x.MaxOutput > x.Window:
		return "has a max_output that is larger than its window"
	case x.Temperature != nil && (*x.Temperature < 0 || *x.Temperature > 2):
		return "has a temperature that is not between 0 and 2"
	case x.Price != nil && min(x.Price.Input, x.Price.Output, x.Price.CacheRead, x.Price.CacheWrite,
		x.Price.CacheWriteLong) < 0:
		return "has a negative price"
	}
	return ""
}

// apply returns what a request of the model needs, over what its endpoint needs.
func (x modelSetting) apply(a Access) Access {
	a.Header, a.Extra = maps.Clone(a.Header), maps.Clone(a.Extra)
	if a.Header == nil {
		a.Header = map[string]string{}
	}
	if a.Extra == nil {
		a.Extra = map[string]json.RawMessage{}
	}
	maps.Copy(a.Header, x.access.Header)
	maps.Copy(a.Extra, x.access.Extra)
	return a
}
