package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
)

// TestFilesTakeTooLong: a file has its time, all files of a request have theirs, and a server that shuts down waits for none.
func TestFilesTakeTooLong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	for _, c := range []struct {
		name      string
		one, all  time.Duration
		shutsDown bool
		want      string
	}{
		{"one file", 20 * time.Millisecond, time.Hour, false, "file " + server.URL + ": no complete answer within 20ms"},
		{"all files", time.Hour, 20 * time.Millisecond, false, "the files of the request did not come within 1m0s"},
		{"the server", time.Hour, time.Hour, true, ingress.ErrShutdown.Error()},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		if c.shutsDown {
			time.AfterFunc(20*time.Millisecond, func() { stop(ingress.ErrShutdown) })
		}
		f := &files{
			fetcher: fetch.New(fetch.Options{AllowPrivate: true, Timeout: c.one}), limit: 1, until: time.Now().Add(c.all),
		}
		_, err := f.fetch(ctx, "input[0]", server.URL)
		var invalid *mmsp.InvalidRequestError
		if !errors.As(err, &invalid) {
			invalid = &mmsp.InvalidRequestError{Message: err.Error()}
		}
		if invalid.Message != c.want || (invalid.Param == "input[0]") == c.shutsDown || errors.Is(err, ingress.ErrShutdown) != c.shutsDown {
			t.Errorf("%s: %v", c.name, err)
		}
		stop(nil)
	}
}
