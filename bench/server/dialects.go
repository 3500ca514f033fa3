//go:build linux

package main

import (
	"fmt"

	"github.com/prism-shadow/mmsp-go/bench/internal/provider"
)

type object = map[string]any

// dialect is a protocol in a few words: how a caller asks, where its stream has a token, and what a provider sends.
type dialect struct {
	name    string
	path    string // with %s for the model, where it is no field of the body
	token   string // what stands before the number of a token
	message func(role, text string) object
	request func(model string, messages []object) object

	// Of those that providers speak.
	client string // the type of the client that asks
	base   string // path of the base URL
	route  string
	answer func() *provider.Answer
}

var (
	stream = &dialect{
		name: "stream", path: "/v1/stream", token: `"text.delta","text":"tok`,
		message: func(role, text string) object {
			return object{"role": role, "content_items": []object{{"type": "text.done", "text": text}}}
		},
		request: func(model string, messages []object) object {
			return object{"model": model, "messages": messages, "config": object{}}
		},
	}
	chat = &dialect{
		name: "chat", path: "/v1/chat/completions", token: `"content":"tok`,
		message: roleAndContent,
		request: func(model string, messages []object) object {
			return object{"model": model, "messages": messages, "stream": true, "stream_options": object{"include_usage": true}}
		},
		client: "openai-chat", base: "/v1", route: "POST /v1/chat/completions",
		answer: func() *provider.Answer { return provider.Chat(false) },
	}
	messages = &dialect{
		name: "messages", path: "/v1/messages", token: `"text_delta","text":"tok`,
		message: roleAndContent,
		request: func(model string, messages []object) object {
			return object{"model": model, "messages": messages, "stream": true, "max_tokens": 4096}
		},
		client: "ant-messages", route: "POST /v1/messages", answer: provider.Messages,
	}
	responses = &dialect{
		name: "responses", path: "/v1/responses", token: `"delta":"tok`,
		message: roleAndContent,
		request: func(model string, messages []object) object {
			return object{"model": model, "input": messages, "stream": true, "store": false}
		},
		client: "openai-responses", base: "/v1", route: "POST /v1/responses", answer: provider.Responses,
	}
	generateContent = &dialect{
		name: "generateContent", path: "/v1beta/models/%s:streamGenerateContent?alt=sse", token: `"text":"tok`,
		message: func(role, text string) object {
			return object{"role": map[string]string{"user": "user", "assistant": "model"}[role], "parts": []object{{"text": text}}}
		},
		request: func(_ string, messages []object) object { return object{"contents": messages} },
		client:  "google-genai", route: "POST /v1beta/models/{call}", answer: provider.GenerateContent,
	}

	callers   = []*dialect{stream, chat, messages, responses, generateContent}
	providers = []*dialect{chat, messages, responses, generateContent}
)

func roleAndContent(role, text string) object { return object{"role": role, "content": text} }

// url is where a caller asks for a model.
func (d *dialect) url(host, model string) string {
	if d == generateContent {
		return host + fmt.Sprintf(d.path, model)
	}
	return host + d.path
}
