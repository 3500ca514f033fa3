// Package config reads the configuration file of `mmsp serve`: YAML or JSON, one schema, checked whole. Everything
// that is wrong is reported together, each problem with its file, line and row or key, and no message ever holds the
// value of a key cell. A file that asks for what this version does not have yet loads with a warning.
package config

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// Schema is the JSON Schema (draft 2020-12) of the file. What depends on more than one place or on the environment
// (unique ids, references, client types, an open server) is checked by Parse alone.
//
//go:embed schema.json
var Schema []byte

// Config is one configuration file with its references resolved and its defaults filled in. A key left out, null or an
// empty text cell stands for the default.
type Config struct {
	Listen    Listen        `yaml:"listen"`
	Models    []Model       `yaml:"models"`     // at least one, server_model_id unique
	APIKeys   []mmsp.Secret `yaml:"api_keys"`   // keys callers may send; none: the server is open
	AllowOpen bool          `yaml:"allow_open"` // open on a host that is not loopback too
	Metrics   Metrics       `yaml:"metrics"`
	Store     Store         `yaml:"store"`
	Trace     Trace         `yaml:"trace"`

	Gateway `yaml:"gateway"` // embedded, so that cfg.DataDir reads as well as cfg.Gateway.DataDir

	Warnings []string `yaml:"-"` // one line each, for the start of the server
}

// Listen is where the server listens. Port 0 lets the system choose.
type Listen struct {
	Host string `yaml:"host"`
	Port int    `yaml:"port" max:"65535"`
}

// Model is one row of the models table.
type Model struct {
	ServerModelID string                 `yaml:"server_model_id"`        // the id callers name; taken literally
	ModelID       string                 `yaml:"model_id"`               // the upstream id; taken literally
	ClientType    string                 `yaml:"client_type" env:"true"` // lower case; empty: CLIENT_TYPE, else by family
	BaseURL       string                 `yaml:"base_url" env:"true"`    // empty: the client's variable, else the vendor's endpoint
	APIKey        mmsp.Secret            `yaml:"api_key"`                // absent only in a row of client type mmsp
	Headers       map[string]mmsp.Secret `yaml:"headers"`                // sent with every request of the row
	Strict        bool                   `yaml:"strict"`                 // a parameter that an ingress endpoint would drop is a 400

	Line int `yaml:"-"` // of the row in the file, for what the caller has to say about it
}

// Gateway is what the server does with requests and how it reaches the upstreams.
type Gateway struct {
	HTTP      HTTP          `yaml:"http"`
	Upstream  Upstream      `yaml:"upstream"`
	Limits    Limits        `yaml:"limits"`
	Sessions  Sessions      `yaml:"sessions"`
	KeepAlive time.Duration `yaml:"keep_alive"` // between SSE comments while the model is silent; 0: no comments
	DataDir   string        `yaml:"data_dir"`   // for what the store and the sessions will keep; relative to the working directory
}

// HTTP is the ingress side.
type HTTP struct {
	Endpoints Endpoints `yaml:"endpoints"`
	Fetch     Fetch     `yaml:"fetch"`
}

// Endpoints are the ingress protocols, each switched on by itself.
type Endpoints struct {
	Responses       Endpoint `yaml:"responses"`
	ChatCompletions Endpoint `yaml:"chatCompletions"`
	Messages        Endpoint `yaml:"messages"`
	GenerateContent Endpoint `yaml:"generateContent"`
	Embeddings      Endpoint `yaml:"embeddings"`
}

// Endpoint is the switch of one ingress protocol.
type Endpoint struct {
	Enabled bool `yaml:"enabled"`
}

// Enabled returns the names of the endpoints that are on, as the file spells them.
func (e Endpoints) Enabled() []string {
	var names []string
	for field, value := range reflect.ValueOf(e).Fields() {
		if value.Interface().(Endpoint).Enabled {
			names = append(names, field.Tag.Get("yaml"))
		}
	}
	return names
}

// Enable switches endpoints on by their names, as the file spells them, and returns what is to be said at the start.
func (e *Endpoints) Enable(names ...string) (warnings []string) {
	for field, value := range reflect.ValueOf(e).Elem().Fields() {
		name := field.Tag.Get("yaml")
		if !slices.Contains(names, name) {
			continue
		}
		value.Addr().Interface().(*Endpoint).Enabled = true
		if name == legacyEndpoint {
			warnings = append(warnings, legacyWarning)
		}
	}
	return warnings
}

const (
	legacyEndpoint = "chatCompletions"
	legacyWarning  = "Chat Completions is the legacy layer, prefer responses where the caller can choose"
)

// EndpointNames returns the names of all endpoints, as the file spells them.
func EndpointNames() (names []string) {
	for field := range reflect.TypeFor[Endpoints]().Fields() {
		names = append(names, field.Tag.Get("yaml"))
	}
	return names
}

// Fetch bounds the fetching of images and files that a request names by URL.
type Fetch struct {
	AllowPrivate bool  `yaml:"allow_private"` // URLs may name private, loopback or link-local addresses
	MaxBytes     int64 `yaml:"max_bytes" min:"1"`
}

// Upstream bounds a request to a provider.
type Upstream struct {
	MaxRetries     int           `yaml:"max_retries"`    // before the first byte of an answer; 0: every fault goes straight to the caller
	MaxRetryWait   time.Duration `yaml:"max_retry_wait"` // a longer Retry-After is not waited for; 0: none is
	ConnectTimeout time.Duration `yaml:"connect_timeout" min:"1"`
	HeaderTimeout  time.Duration `yaml:"header_timeout" min:"1"`
	IdleTimeout    time.Duration `yaml:"idle_timeout" min:"1"` // between bytes
}

// Limits bounds what is read from callers and providers, in bytes (MaxDepth in levels).
type Limits struct {
	MaxBodyBytes     int64 `yaml:"max_body_bytes" min:"1"` // of a request; 413 above
	MaxDepth         int   `yaml:"max_depth" min:"1"`      // of nested JSON
	MaxSSELineBytes  int   `yaml:"max_sse_line_bytes" min:"1"`
	MaxResponseBytes int64 `yaml:"max_response_bytes" min:"1"` // of one upstream response, decompressed
}

// Sessions is the routing of requests to conversations that a server keeps. See Features for what this version has.
type Sessions struct {
	RouteByUser bool   `yaml:"route_by_user"` // the field user names the session
	Concurrency string `yaml:"concurrency" enum:"queue reject"`
}

// Metrics is where the history of /v1/metrics is kept.
type Metrics struct {
	File string `yaml:"file"` // empty: in memory only
}

// Store is where stored responses and sessions will live. See Features for what this version has.
type Store struct {
	URL      mmsp.Secret   `yaml:"url"` // empty: SQLite in the data directory; postgres://… may hold a password
	MaxAge   time.Duration `yaml:"max_age" min:"1"`
	MaxBytes int64         `yaml:"max_bytes" min:"1"`
}

// Trace says which requests are recorded. See Features for what this version has.
type Trace struct {
	Mode string `yaml:"mode" enum:"off on_error all"`
}

// Defaults returns the configuration of an empty file: no models and no keys.
func Defaults() Config {
	return Config{
		Listen: Listen{Host: "127.0.0.1", Port: 25752},
		Gateway: Gateway{
			HTTP: HTTP{Fetch: Fetch{MaxBytes: 20 << 20}},
			Upstream: Upstream{
				MaxRetries: 2, MaxRetryWait: 2 * time.Second, ConnectTimeout: 10 * time.Second,
				HeaderTimeout: 120 * time.Second, IdleTimeout: 300 * time.Second,
			},
			Limits:    Limits{MaxBodyBytes: 50 << 20, MaxDepth: 512, MaxSSELineBytes: 64 << 20, MaxResponseBytes: 512 << 20},
			Sessions:  Sessions{Concurrency: "queue"},
			KeepAlive: 15 * time.Second,
			DataDir:   "./mmsp-data",
		},
		Store: Store{MaxAge: 168 * time.Hour, MaxBytes: 1 << 30},
		Trace: Trace{Mode: "off"},
	}
}

// LoadOptions is what the check needs to know about the binary and its command line.
type LoadOptions struct {
	Getenv       func(string) string // nil: os.Getenv
	ClientTypes  []string            // every name a client_type may have, in lower case; nil: not checked
	Features     Features
	HostOverride string // the --host flag, for the check of an open server; empty: not given
}

// Features is what this version has. What a file asks for beyond it becomes a warning.
type Features struct {
	Endpoints              []string // names as in gateway.http.endpoints
	Store, Trace, Sessions bool
}

// Problem is one thing wrong with a file. Line is 0 where no line can be named, Where is empty for the file as a whole,
// else a path such as models[2].api_key 'fast', api_keys[0] or gateway.upstream.max_retries.
type Problem struct {
	File    string
	Line    int
	Where   string
	Message string
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Where != "" {
		b.WriteString(": " + p.Where)
	}
	return b.String() + ": " + p.Message
}

// Error is every problem of one file, in the order of its lines.
type Error struct{ Problems []Problem }

// Error gives one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

const (
	maxFileBytes = 4 << 20
	maxProblems  = 100 // reported of one file
)

// Load reads and checks the file at path. The error is an *Error.
func Load(path string, o LoadOptions) (*Config, error) {
	data, err := func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	}()
	if err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err // the path stands before the message already
		}
		return nil, &Error{[]Problem{{File: path, Message: "cannot be read: " + err.Error()}}}
	}
	return Parse(path, data, o)
}

// Parse checks a file that has been read; source is its name in messages. The error is an *Error.
func Parse(source string, data []byte, o LoadOptions) (*Config, error) {
	d := &decoder{file: source, getenv: o.Getenv, cells: map[string]cell{}}
	if d.getenv == nil {
		d.getenv = os.Getenv
	}
	cfg := Defaults()
	if root := d.parse(data); root != nil {
		// The top level holds the keys of Listen as well; where both places are set, listen wins.
		top := cfg.Listen
		d.object("", root.Line, root, reflect.ValueOf(&cfg).Elem(), reflect.ValueOf(&top).Elem())
		if d.cells["host"].set && !d.cells["listen.host"].set {
			cfg.Listen.Host = top.Host
		}
		if d.cells["port"].set && !d.cells["listen.port"].set {
			cfg.Listen.Port = top.Port
		}
		d.checkModels(&cfg, o.ClientTypes)
		d.checkOpen(&cfg, o.HostOverride)
		if url := cfg.Store.URL.Reveal(); url != "" && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
			d.report("store.url", d.line("store.url"), "must start with postgres://, or be empty for SQLite in the data directory")
		}
	}
	if len(d.problems) > 0 {
		return nil, &Error{d.sorted(cfg.Models)}
	}
	cfg.Warnings = d.warnings(&cfg, o.Features)
	return &cfg, nil
}

// checkModels checks what no cell of the models table shows by itself.
func (d *decoder) checkModels(cfg *Config, clientTypes []string) {
	if !d.cells["models"].set || cfg.Models != nil && len(cfg.Models) == 0 {
		d.report("models", d.line("models"), "needs at least one row")
	}
	first := map[string]int{} // served id → row
	for i := range cfg.Models {
		m, row := &cfg.Models[i], fmt.Sprintf("models[%d]", i)
		if !d.cells[row].set {
			continue // not a mapping, which is reported
		}
		m.Line = d.cells[row].line

		typeCell := d.cells[row+".client_type"]
		m.ClientType = strings.ToLower(m.ClientType)
		if m.ClientType != "" && clientTypes != nil && !slices.Contains(clientTypes, m.ClientType) {
			// The cell as it is written: what a reference stands for may be a key set in the wrong variable.
			message := fmt.Sprintf("unknown client type %q", printable(typeCell.text))
			if near := nearest(typeCell.text, clientTypes); near != "" {
				message += ", did you mean " + near + "?"
			}
			d.report(row+".client_type", typeCell.line, message+" (known: "+strings.Join(clientTypes, ", ")+")")
		}

		for _, column := range []string{"server_model_id", "model_id", "api_key"} {
			message := "is missing"
			if column == "api_key" {
				if m.ClientType == "mmsp" || typeCell.set && m.ClientType == "" { // the latter: an unresolved reference
					continue
				}
				message += ": only a row of client_type mmsp may leave it out"
			}
			if path := row + "." + column; !d.cells[path].set {
				d.report(path, d.line(path, row), message)
			}
		}

		if m.ServerModelID == "" {
			continue
		}
		if k, taken := first[m.ServerModelID]; taken {
			path := row + ".server_model_id"
			d.report(path, d.line(path), fmt.Sprintf("is already the id of models[%d], line %d", k, cfg.Models[k].Line))
		} else {
			first[m.ServerModelID] = i
		}
	}
}

// Loopback reports whether a host is reached from this machine only.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// checkOpen refuses a server without keys where other machines could reach it.
func (d *decoder) checkOpen(cfg *Config, hostOverride string) {
	host := cmp.Or(hostOverride, cfg.Listen.Host)
	if len(cfg.APIKeys) == 0 && !cfg.AllowOpen && !Loopback(host) {
		d.report("api_keys", d.line("api_keys", "listen.host", "host"),
			fmt.Sprintf("is empty, which opens the server to everybody on %s: name a key, or set allow_open", printable(host)))
	}
}

// warnings names what is asked for in vain. A setting at its default asks for nothing.
func (d *decoder) warnings(cfg *Config, has Features) []string {
	var warnings []string
	warn := func(where, message string) {
		warnings = append(warnings, Problem{d.file, d.line(where), where, message}.String())
	}
	for _, name := range cfg.HTTP.Endpoints.Enabled() {
		switch where := "gateway.http.endpoints." + name; {
		case !slices.Contains(has.Endpoints, name):
			warn(where, "this version does not have the endpoint yet, it stays off")
		case name == legacyEndpoint:
			warn(where, legacyWarning)
		}
	}
	defaults := Defaults()
	if cfg.Sessions != defaults.Sessions && !has.Sessions {
		warn("gateway.sessions", "this version does not have sessions yet, the section does nothing")
	}
	if cfg.Store != defaults.Store && !has.Store {
		warn("store", "this version does not have a store yet, the section does nothing")
	}
	if cfg.Trace != defaults.Trace && !has.Trace {
		warn("trace", "this version does not have tracing yet, the section does nothing")
	}
	return warnings
}

// sorted returns the problems in the order of their lines, each one in a row with the id that the row is served under.
func (d *decoder) sorted(models []Model) []Problem {
	problems := d.problems
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], Problem{File: d.file, Message: fmt.Sprintf("%d more problems", more)})
	}
	for i := range problems {
		var row int
		p := &problems[i]
		if n, _ := fmt.Sscanf(p.Where, "models[%d]", &row); n == 1 && row < len(models) && models[row].ServerModelID != "" {
			p.Where += " '" + printable(models[row].ServerModelID) + "'"
		}
	}
	return problems
}
