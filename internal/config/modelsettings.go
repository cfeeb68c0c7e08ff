package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

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
func (e Endpoints) Known(model string, c Choice) catalogue.Model {
	m, isKnown := catalogue.Lookup(c.Vendor(), c.Name)
	if !isKnown {
		m = catalogue.Model{}
	}
	m.Provider = c.Vendor()
	if x, ok := e.models[model]; ok {
		return x.over(m, c.Name, isKnown)
	}
	return m
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
func (e Endpoints) Models(all []catalogue.Model) []catalogue.Model {
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

// model reads what a file says about one model. It stands in the file after its endpoint, or before.
func (l *fileLoader) model(v *ast.MappingValueNode) error {
	var x modelSetting
	if err := decode(l.name, v.Value, &x.modelInFile); err != nil {
		return err
	}
	name := v.Key.GetToken().Value
	if problem := l.checkModel(name, x.modelInFile); problem != "" {
		return l.errorAt(v.Key, "the model "+withoutQuery(name)+" "+problem)
	}
	if err := l.setExtra(v, x.Extra, &x.access); err != nil {
		return err
	}
	if _, isSet := x.access.Extra["temperature"]; x.Temperature != nil && !isSet {
		x.access.Extra["temperature"] = json.RawMessage(strconv.FormatFloat(*x.Temperature, 'g', -1, 64))
	}
	x.err = l.readKeys(endpointInFile{Headers: x.Headers}, &x.access)
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
	_, isEndpoint := l.Endpoints.byName[x.Endpoint]
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
	header, extra := map[string]string{}, map[string]json.RawMessage{}
	for _, from := range []Access{a, x.access} { // the second overrides the first
		maps.Copy(header, from.Header)
		maps.Copy(extra, from.Extra)
	}
	a.Header, a.Extra = header, extra
	return a
}
