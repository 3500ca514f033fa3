package tokens

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		body string
		want int64 // -1: an UpstreamError
	}{
		{`{"input_tokens":2095}`, 2095},
		{`{"object":"response.input_tokens","input_tokens":0}`, 0},
		{`{"more":{"input_tokens":1},"input_tokens":7,"context_management":{"original_input_tokens":9}}` + "\n", 7},
		{`{}`, -1},
		{``, -1},
		{`[{"input_tokens":7}]`, -1},
		{`{"input_tokens":-1}`, -1},
		{`{"input_tokens":"7"}`, -1},
		{`{"input_tokens":null}`, -1},
		{`{"input_tokens":7`, -1},
		{`{"input_tokens":7}x`, -1},
		{`<html>`, -1},
		{`{"input_tokens":7,"pad":"` + strings.Repeat("x", maxBytes) + `"}`, -1},
	} {
		got, err := Read("C", "input_tokens", &upstream.Response{Body: io.NopCloser(strings.NewReader(tt.body))})
		failed, ok := errors.AsType[*mmsp.UpstreamError](err)
		if tt.want < 0 && (!ok || failed.Client != "C" || failed.ErrorType != "unexpected_body") || tt.want >= 0 && (err != nil || got != tt.want) {
			t.Errorf("%.80s: %d, %v", tt.body, got, err)
		}
	}
	if _, err := Read("C", "n", &upstream.Response{Body: io.NopCloser(cut{})}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestFailed(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusNotImplemented: true,
		http.StatusBadRequest: false, http.StatusUnauthorized: false, http.StatusTooManyRequests: false, http.StatusInternalServerError: false,
	} {
		failed := &mmsp.UpstreamError{Client: "C", Status: status}
		err := Failed("C", failed)
		if _, unsupported := errors.AsType[*mmsp.UnsupportedOperationError](err); unsupported != want || !want && err != error(failed) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := Failed("C", io.EOF); err != io.EOF {
		t.Error(err)
	}
}
