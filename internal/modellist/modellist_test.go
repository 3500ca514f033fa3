package modellist

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

// body tells whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestReadPage(t *testing.T) {
	for _, tt := range []struct{ name, body, ids, after, err string }{
		{"OpenAI", `{"object":"list","data":[{"id":"b","object":"model","created":1},{"id":"a"}]}`, "b,a", "", ""},
		{"Anthropic, first page", `{"data":[{"type":"model","id":"c"}],"has_more":true,"first_id":"c","last_id":"c"}`, "c", "c", ""},
		{"Anthropic, last page", `{"data":[{"type":"model","id":"d"}],"has_more":false,"last_id":"d"}`, "d", "", ""},
		{"the fields in another order", `{"last_id":"e","has_more":true,"data":[{"nested":{"id":"no"},"id":"e"}]}`, "e", "e", ""},
		{"no models", `{"data":[]}`, "", "", ""},
		{"entries of other kinds", `{"data":[{"id":null},{"id":7},"x",{},null,{"id":"f"}],"has_more":null,"last_id":3}`, "f", "", ""},
		{"no list", `{"data":null}`, "", "", "not readable"},
		{"something else", `{"error":{"message":"m"}}`, "", "", `not readable: "{\"error\"`},
		{"no object", `[{"id":"a"}]`, "", "", "not readable"},
		{"HTML", `<html>`, "", "", `not readable: a page without a text`},
		{"nothing", ``, "", "", "not readable"},
		{"cut", `{"data":[{"id":"a"}`, "", "", "not readable"},
		{"too long", `{"data":[` + strings.Repeat(" ", maxBytes) + `]}`, "", "", "longer than 16777216 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &body{Reader: strings.NewReader(tt.body)}
			ids, after, err := ReadPage("C", &upstream.Response{Body: b})
			if strings.Join(ids, ",") != tt.ids || after != tt.after || (err == nil) != (tt.err == "") || (err == nil) != (ids != nil) || !b.closed {
				t.Errorf("%v, %q, %v, closed: %v", ids, after, err, b.closed)
			}
			var failed *mmsp.UpstreamError
			if err != nil && (!errors.As(err, &failed) || failed.Client != "C" || failed.ErrorType != "unexpected_body" || !strings.Contains(err.Error(), tt.err)) {
				t.Error(err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	ids, err := Read("C", &upstream.Response{Body: &body{Reader: strings.NewReader(`{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`)}})
	if err != nil || !slices.Equal(ids, []string{"a"}) {
		t.Error(ids, err)
	}
	broken := errors.New("broken")
	b := &body{Reader: io.MultiReader(strings.NewReader(`{"data":`), failing{broken})}
	if _, err := Read("C", &upstream.Response{Body: b}); !errors.Is(err, broken) || !b.closed {
		t.Error(err, b.closed)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
