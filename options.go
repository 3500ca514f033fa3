package mmsp

import (
	"net/http"
	"os"
	"time"
)

// Options says how to build the client of one model. Every provider client's New and auto.New take it.
type Options struct {
	Model   string // the upstream model id
	APIKey  Secret // none: the client's own environment variable, where the credential rule allows it
	BaseURL string // empty: the client's environment variable, else the vendor's endpoint

	ClientType     string            // auto.New only; empty: CLIENT_TYPE, else by the model's family
	DefaultHeaders map[string]string // sent with every request of the client

	HTTP       HTTPOptions
	HTTPClient *http.Client // a transport shared between clients; nil: one is built from HTTP

	// AllowPrivateFetch lets image URLs that a client must inline name private, loopback or link-local addresses.
	AllowPrivateFetch bool

	Getenv func(string) string // nil: os.Getenv
}

// Env reads one environment variable through Getenv.
func (o *Options) Env(name string) string {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.Getenv(name)
}

// HTTPOptions bounds every phase of a provider request. A zero field means its default.
type HTTPOptions struct {
	MaxRetries     *int          // before the first byte of an answer; nil: 2
	MaxRetryWait   time.Duration // a longer Retry-After is not waited for; default 2 s
	ConnectTimeout time.Duration // default 10 s
	HeaderTimeout  time.Duration // default 120 s
	IdleTimeout    time.Duration // between bytes; default 300 s

	MaxLineBytes     int   // of one server-sent event; default 64 MiB
	MaxResponseBytes int64 // of one response, decompressed; default 512 MiB
	MaxFetchBytes    int64 // of one remote image; default 20 MiB
}
