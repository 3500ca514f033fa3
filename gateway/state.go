package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/registry"
)

// state is everything that a configuration decides. It does not change once it serves.
type state struct {
	config  *config.Config
	http    *http.Client
	limits  mmsp.HTTPOptions
	rows    map[string]*row
	fetcher *fetch.Fetcher // of files that requests name by URL
	listed  []string       // what GET /v1/models shows, in table order
	keys    [][sha256.Size]byte
	own     []Own

	getenv   func(string) string // nil: os.Getenv
	families *families           // serves whole families by their own ids; nil with a models table
}

// row is one model that callers may name.
type row struct {
	counted string // the name it has in the metrics
	client  *mmsp.Client
	peer    carry.Peer
	host    string // of the endpoint, which callers are not told; "": not known
	strict  bool   // what the client cannot take is refused, not let go of
	relay   bool   // another MMSP server: messages are not judged here
	secrets *strings.Replacer
	places  *strings.Replacer // takes out the host, where callers are told of the provider
	context int64             // tokens that the model takes; 0: the registry does not know
}

// TableError says which rows of the models table cannot be served.
type TableError struct{ Rows []RowError }

// RowError says why one row of the models table cannot be served.
type RowError struct {
	Row  int    // from 0
	ID   string // that it is served under
	Line int    // in the file; 0: not from a file
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("models[%d] '%s': %v", e.Row, e.ID, e.Err) }
func (e *RowError) Unwrap() error { return e.Err }

// Error gives one row a line.
func (e *TableError) Error() string {
	var lines []string
	for i := range e.Rows {
		lines = append(lines, e.Rows[i].Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the rows' errors.
func (e *TableError) Unwrap() (rows []error) {
	for i := range e.Rows {
		rows = append(rows, &e.Rows[i])
	}
	return rows
}

// newState builds the rows. The connections of old are kept where the limits that they were made with are the same.
func newState(c *config.Config, old *state, own []Own) (*state, error) {
	s := &state{config: c, rows: map[string]*row{}, limits: httpOptions(c), own: own}
	s.fetcher = fetch.New(fetch.Options{AllowPrivate: c.HTTP.Fetch.AllowPrivate, MaxBytes: c.HTTP.Fetch.MaxBytes})
	if old != nil && sameLimits(old.limits, s.limits) {
		s.http = old.http
	} else {
		s.http = upstream.NewHTTPClient(s.limits)
	}
	for i, key := range c.APIKeys {
		if key.IsZero() {
			return nil, fmt.Errorf("api_keys[%d] is empty", i)
		}
		s.keys = append(s.keys, sha256.Sum256([]byte(key.Reveal())))
	}
	var bad TableError
	for i := range c.Models {
		model := &c.Models[i]
		client, err := auto.New(model.ModelID, s.options(model))
		if err == nil {
			err = s.add(model.ServerModelID, client, s.peer(model), model.Strict, secretsOf(model))
		}
		if err != nil {
			bad.Rows = append(bad.Rows, RowError{i, model.ServerModelID, model.Line, err})
		}
	}
	if bad.Rows != nil {
		return nil, &bad
	}
	for _, o := range own {
		var peer carry.Peer
		if o.ClientType != "" {
			peer = s.peer(&config.Model{ClientType: o.ClientType})
		}
		if err := s.add(o.ID, o.Client, peer, false, nil); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// peer says who answers for a row.
func (s *state) peer(model *config.Model) carry.Peer {
	t, _ := auto.Of(model.ModelID, s.options(model))
	p := carry.Peer{ClientType: t.Name, Protocol: carry.Protocol(t.Protocol), Model: model.ModelID, Host: cmp.Or(t.Vendor, t.Name)}
	p.Host = cmp.Or(hostOf(model.BaseURL), p.Host)
	return p
}

// hostOf returns the class of the endpoint that a URL names; "" where it names none.
func hostOf(baseURL string) string {
	address, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return classOf(strings.ToLower(cmp.Or(address.Host, address.Scheme)))
}

// classOf returns the vendor whose host it is, else a digest: callers keep it in their histories, and are not told where a
// provider stands.
func classOf(host string) string {
	if host == "" || vendors[host] != "" {
		return vendors[host]
	}
	sum := sha256.Sum256([]byte(host))
	return "host-" + hex.EncodeToString(sum[:5])
}

// askedURL returns what a client asks: its host may be the issuer of the client's proofs. It is empty where it cannot be told.
func askedURL(client *mmsp.Client) *url.URL {
	hi := []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}
	request, err := client.Provider().Prepare(context.Background(), hi, &mmsp.Config{})
	if err != nil || request == nil {
		return &url.URL{}
	}
	address, err := url.Parse(request.URL)
	if err != nil {
		return &url.URL{}
	}
	return address
}

// contextOf returns how many tokens the model of a peer takes, as the registry has it for the peer's endpoint.
func contextOf(p carry.Peer) int64 {
	for _, m := range registry.List(registry.USD) {
		if m.ID == p.Model && hostOf(m.BaseURL) == p.Host {
			return m.ContextWindow
		}
	}
	return 0
}

// vendors are the hosts that official clients reach when nobody names one.
var vendors = map[string]string{
	"api.openai.com": "OpenAI", "api.anthropic.com": "Anthropic", "generativelanguage.googleapis.com": "Google", "api.z.ai": "Z.ai",
	"open.bigmodel.cn": "Z.ai", "api.moonshot.cn": "Moonshot", "api.moonshot.ai": "Moonshot", "api.deepseek.com": "DeepSeek",
	"api.minimax.io": "MiniMax", "api.minimaxi.com": "MiniMax",
}

func (s *state) add(id string, client *mmsp.Client, peer carry.Peer, strict bool, secrets []string) error {
	if _, taken := s.rows[id]; taken {
		return fmt.Errorf("the id %q is taken already", id)
	}
	r := newRow(id, client, peer, secrets)
	r.strict = strict
	s.rows[id] = r
	s.listed = append(s.listed, id)
	return nil
}

func newRow(counted string, client *mmsp.Client, peer carry.Peer, secrets []string) *row {
	_, relay := client.Provider().(mmsp.Forwarder)
	r := &row{counted: counted, client: client, peer: peer, relay: relay, secrets: redactor(secrets), context: contextOf(peer)}
	address := &url.URL{}
	if peer.ClientType != "" {
		address = askedURL(client)
	}
	r.host, r.places = strings.ToLower(address.Host), redactor(placesOf(address))
	return r
}

// placesOf returns the spellings of an address's host, but not the bare name of a machine: texts use such words for more.
func placesOf(address *url.URL) []string {
	return slices.DeleteFunc([]string{address.Host, address.Hostname()}, func(host string) bool { return !strings.ContainsAny(host, ".:") })
}

// secretsOf returns what of a row must not be seen.
func secretsOf(model *config.Model) []string {
	secrets := []string{model.APIKey.Reveal()}
	if model.APIKey.IsZero() {
		secrets = append(secrets, os.Getenv("MMSP_API_KEY")) // only relay rows have no key of their own
	}
	for _, value := range model.Headers {
		text := value.Reveal()
		secrets = append(secrets, text, text[strings.LastIndexByte(text, ' ')+1:])
	}
	return secrets
}

// redactor takes secrets out of texts, as they are and as JSON spells them, within a quoted excerpt too. What is shorter
// than a word is none.
func redactor(secrets []string) *strings.Replacer {
	escape := func(text string) string {
		quoted := jsonscan.AppendString(nil, text)
		return string(quoted[1 : len(quoted)-1])
	}
	var pairs []string
	for _, secret := range secrets {
		if len(secret) < 6 {
			continue
		}
		for _, spelling := range []string{secret, escape(secret), escape(escape(secret)), strings.ReplaceAll(secret, "/", `\/`)} {
			pairs = append(pairs, spelling, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}

func httpOptions(c *config.Config) mmsp.HTTPOptions {
	return mmsp.HTTPOptions{
		MaxRetries:       &c.Upstream.MaxRetries,
		MaxRetryWait:     max(c.Upstream.MaxRetryWait, time.Nanosecond), // zero would mean the default
		ConnectTimeout:   c.Upstream.ConnectTimeout,
		HeaderTimeout:    c.Upstream.HeaderTimeout,
		IdleTimeout:      c.Upstream.IdleTimeout,
		MaxLineBytes:     c.Limits.MaxSSELineBytes,
		MaxResponseBytes: c.Limits.MaxResponseBytes,
		MaxFetchBytes:    c.HTTP.Fetch.MaxBytes,
	}
}

// sameLimits compares what a transport is built from.
func sameLimits(a, b mmsp.HTTPOptions) bool {
	return a.ConnectTimeout == b.ConnectTimeout && a.HeaderTimeout == b.HeaderTimeout
}

func (s *state) options(model *config.Model) mmsp.Options {
	headers := map[string]string{}
	for name, value := range model.Headers {
		headers[name] = value.Reveal()
	}
	return mmsp.Options{
		APIKey: model.APIKey, BaseURL: model.BaseURL, ClientType: model.ClientType, DefaultHeaders: headers,
		HTTP: s.limits, HTTPClient: s.http, AllowPrivateFetch: s.config.HTTP.Fetch.AllowPrivate, Getenv: s.getenv,
	}
}

// row returns the row that serves a model id.
func (s *state) row(model string) (*row, bool) {
	if r, ok := s.rows[model]; ok {
		return r, true
	}
	if s.families != nil {
		return s.families.row(s, model)
	}
	return nil, false
}

// counted returns the names of the metrics' rows.
func (s *state) counted() (names []string) {
	if s.families != nil {
		return s.families.names()
	}
	return slices.Clone(s.listed)
}

// families serves every model of the vendors whose keys the environment holds, by the vendors' own ids.
type families struct {
	types []auto.Type

	mu   sync.Mutex
	made map[string]*row
}

// maxFamilyModels bounds the clients that callers can make by naming ids.
const maxFamilyModels = 512

func (f *families) names() (names []string) {
	for _, t := range f.types {
		names = append(names, t.Name)
	}
	return names
}

func (f *families) row(s *state, model string) (*row, bool) {
	t, ok := auto.Family(model)
	if !ok || len(model) > 256 || !slices.ContainsFunc(f.types, func(served auto.Type) bool { return served.Name == t.Name }) {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.made[model]; ok {
		return r, true
	}
	chosen := &config.Model{ModelID: model, ClientType: t.Name}
	client, err := auto.New(model, s.options(chosen))
	if err != nil {
		return nil, false
	}
	r := newRow(t.Name, client, s.peer(chosen), []string{s.getenv(t.KeyVar)})
	if len(f.made) < maxFamilyModels {
		f.made[model] = r
	}
	return r, true
}

// ErrNoKeys: the environment holds no official client's key.
var ErrNoKeys = errors.New("no official client's key is in the environment")

// KeyVariables returns the environment variables that NewFromEnvironment looks at.
func KeyVariables() (names []string) {
	for _, t := range auto.Types() {
		if t.KeyVar != "" {
			names = append(names, t.KeyVar)
		}
	}
	return names
}

// environmentState serves the family of each official client whose key is set.
func environmentState(c *config.Config, getenv func(string) string) (*state, error) {
	s, err := newState(c, nil, nil)
	if err != nil {
		return nil, err
	}
	s.getenv = getenv
	s.families = &families{made: map[string]*row{}}
	for _, t := range auto.Types() {
		if t.KeyVar == "" || getenv(t.KeyVar) == "" {
			continue
		}
		// What is wrong with the variables shows with any model.
		if _, err := auto.New(t.Families[0], s.options(&config.Model{ClientType: t.Name})); err != nil {
			return nil, err
		}
		s.families.types = append(s.families.types, t)
	}
	if len(s.families.types) == 0 {
		return nil, ErrNoKeys
	}
	for _, model := range registry.List(registry.USD) {
		if r, ok := s.row(model.ID); ok && r.counted == model.ClientType {
			s.listed = append(s.listed, model.ID)
		}
	}
	return s, nil
}
