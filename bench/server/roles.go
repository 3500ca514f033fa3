//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/valyala/fastjson"

	"github.com/prism-shadow/mmsp-go/bench/internal/floor"
)

// role runs a child's part until it is killed. Its first line of output tells its address.
func role(name, upstream string) error {
	handler := map[string]func(string) http.Handler{"mock": mock, "proxy": proxy, "floor": byHand}[name]
	if handler == nil {
		return fmt.Errorf("%q is no role", name)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, handler(upstream))
}

// modelID names an answer of the provider: so many chunks, so far apart.
func modelID(chunks int, gap time.Duration) string {
	return fmt.Sprintf("n%d-d%d", chunks, gap.Milliseconds())
}

var modelPattern = regexp.MustCompile(`"model":"n(\d+)-d(\d+)`)

// mock is a provider of each protocol. Each token carries its number and the time it was sent, so that the reader can check
// the order and tell how long the token was under way. Tokens are sent on an absolute schedule.
func mock(string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	for _, d := range providers {
		mux.HandleFunc(d.route, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if call := r.PathValue("call"); call != "" {
				body = []byte(`"model":"` + call)
			}
			model := modelPattern.FindSubmatch(body)
			if err != nil || model == nil {
				http.Error(w, `{"error":{"message":"no model"}}`, http.StatusBadRequest)
				return
			}
			chunks, _ := strconv.Atoi(string(model[1]))
			milliseconds, _ := strconv.Atoi(string(model[2]))
			gap := time.Duration(milliseconds) * time.Millisecond

			w.Header().Set("Content-Type", "text/event-stream")
			var events []byte
			send := func() bool {
				_, err := w.Write(events)
				w.(http.Flusher).Flush()
				return err == nil
			}
			answer := d.answer()
			if events = answer.Head(nil); len(events) > 0 {
				send()
			}
			began := time.Now()
			for i := range chunks {
				if gap > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(i+1) * gap)))
				}
				events = answer.Delta(events[:0], fmt.Appendf(nil, `"tok%05d:%d "`, i, time.Now().UnixNano()))
				if !send() {
					return
				}
			}
			events = answer.Tail(events[:0])
			send()
		})
	}
	return mux
}

// transport is what everything but the product reaches the provider through.
func transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
}

// proxy converts nothing.
func proxy(upstream string) http.Handler {
	target, err := url.Parse(upstream)
	if err != nil {
		panic(err)
	}
	reverse := &httputil.ReverseProxy{
		Transport:     transport(),
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the server may close the connection of a fast answer whose request was not read to its end.
		_ = http.NewResponseController(w).EnableFullDuplex()
		reverse.ServeHTTP(w, r)
	})
}

// byHand does the product's work at the lowest price: a request of /v1/stream to Chat Completions, and the answer back.
func byHand(upstream string) http.Handler {
	client := &http.Client{Transport: transport()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/stream", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		converted, err := chatRequest(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, upstream+"/v1/chat/completions", bytes.NewReader(converted))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		w.Header().Set("Content-Type", "text/event-stream")
		_ = floor.Stream(response.Body, floor.Chat(), func(events []byte) error {
			_, err := w.Write(events)
			w.(http.Flusher).Flush()
			return err
		})
	})
	return mux
}

func chatRequest(body []byte) ([]byte, error) {
	request, err := fastjson.ParseBytes(body)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(body)+256), `{"model":`...)
	out = request.Get("model").MarshalTo(out)
	out = append(out, `,"stream":true,"stream_options":{"include_usage":true},"messages":[`...)
	for i, message := range request.GetArray("messages") {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"role":`...)
		out = message.Get("role").MarshalTo(out)
		out = append(out, `,"content":[`...)
		for n, item := range message.GetArray("content_items") {
			if n > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"type":"text","text":`...)
			out = item.Get("text").MarshalTo(out)
			out = append(out, '}')
		}
		out = append(out, "]}"...)
	}
	return append(out, "]}"...), nil
}
