package simulate

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

type fields = map[string]any

// step is what a model answered, and the results of the calls in it.
type step struct{ model, results []fields }

// replayed is how a protocol writes the history of a conversation.
type replayed struct {
	protocol string
	make     func(Options) http.Handler
	ask      string                                 // for thinking and calls
	model    string                                 // path of what the model answered
	thought  func(fields) bool                      // what holds the thinking
	call     func(fields) bool                      // or a call
	id       string                                 // field of a call with its id
	signed   func(fields) bool                      // what carries the proof
	proof    string                                 // in this field
	result   func(call fields, i int) fields        // of a call
	history  func(steps []step, stream bool) string // a request with the steps after the user's words
}

func typed(kinds ...string) func(fields) bool {
	return func(f fields) bool { kind, _ := f["type"].(string); return slices.Contains(kinds, kind) }
}

func has(name string) func(fields) bool { return func(f fields) bool { return f[name] != nil } }

func encode(value any) string { text, _ := json.Marshal(value); return string(text) }

// replayProtocols are those with proofs.
func replayProtocols() []replayed {
	messages := func(head string) func([]step, bool) string {
		return func(steps []step, stream bool) string {
			all := []any{fields{"role": "user", "content": "hi"}}
			for _, s := range steps {
				all = append(all, fields{"role": "assistant", "content": s.model}, fields{"role": "user", "content": s.results})
				if len(s.results) == 0 {
					all[len(all)-1] = fields{"role": "user", "content": "go on"}
				}
			}
			if head == "" {
				head = `"model":"m","stream":` + strconv.FormatBool(stream)
			}
			return `{` + head + `,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000},` + messagesTools + `,"messages":` + encode(all) + `}`
		}
	}
	anthropic := replayed{
		protocol: "messages", make: func(o Options) http.Handler { return Messages(o) }, model: "content",
		ask:     ask("messages", "PROMPT", messagesTools, `"thinking":{"type":"enabled","budget_tokens":2000}`),
		thought: typed("thinking", "redacted_thinking"), call: typed("tool_use"), id: "id", signed: typed("thinking"), proof: "signature",
		result: func(call fields, _ int) fields {
			return fields{"type": "tool_result", "tool_use_id": call["id"], "content": "rain"}
		},
		history: messages(""),
	}
	aws := anthropic
	const version = `"anthropic_version":"bedrock-2023-05-31"`
	aws.protocol, aws.make = "bedrock", func(o Options) http.Handler { return Bedrock(o) }
	aws.ask, aws.history = strings.Replace(anthropic.ask, `"model":"m"`, version, 1), messages(version)

	google := replayed{
		protocol: "gemini", make: func(o Options) http.Handler { return Gemini(o) }, model: "candidates.0.content.parts",
		ask: askGemini("PROMPT", geminiTools), thought: has("thought"), call: has("functionCall"), signed: has("thoughtSignature"), proof: "thoughtSignature",
		result: func(call fields, _ int) fields {
			return fields{"functionResponse": fields{"name": call["functionCall"].(fields)["name"], "response": fields{"result": "rain"}}}
		},
		history: func(steps []step, _ bool) string {
			all := []any{fields{"role": "user", "parts": []fields{{"text": "hi"}}}}
			for _, s := range steps {
				all = append(all, fields{"role": "model", "parts": s.model})
				if len(s.results) > 0 {
					all = append(all, fields{"role": "user", "parts": s.results})
				}
			}
			return `{"contents":` + encode(all) + `,` + geminiTools + `}`
		},
	}
	vertex := google
	vertex.protocol, vertex.make = "vertex", func(o Options) http.Handler { return Vertex(o) }

	flat := func(head string) func([]step, bool) string {
		return func(steps []step, stream bool) string {
			all := []fields{{"role": "user", "content": "hi"}}
			if strings.Contains(head, "gemini") {
				all = []fields{{"type": "user_input", "content": []fields{{"type": "text", "text": "hi"}}}}
			}
			for _, s := range steps {
				all = append(append(all, s.model...), s.results...)
			}
			return `{` + head + `,"stream":` + strconv.FormatBool(stream) + `,"input":` + encode(all) + `}`
		}
	}
	const include = `"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},`
	openai := replayed{
		protocol: "responses", make: func(o Options) http.Handler { return Responses(o) }, model: "output",
		ask: ask("responses", "PROMPT", include+responsesTools), thought: typed("reasoning"), call: typed("function_call"), id: "call_id",
		signed: typed("reasoning"), proof: "encrypted_content",
		result: func(call fields, _ int) fields {
			return fields{"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
		},
		history: flat(`"model":"m",` + include + responsesTools),
	}
	stateless := openai // without ids, to a provider that insists
	stateless.protocol = "responses strict"
	stateless.make = func(o Options) http.Handler { o.Strict = true; return Responses(o) }
	stateless.history = func(steps []step, stream bool) string {
		for _, s := range steps {
			for _, item := range s.model {
				delete(item, "id")
			}
		}
		return flat(`"model":"m","store":false,`+include+responsesTools)(steps, stream)
	}
	interactions := replayed{
		protocol: "interactions", make: func(o Options) http.Handler { return Gemini(o) }, model: "steps",
		ask: askInteraction("PROMPT", interactionTools), thought: typed("thought"), call: typed("function_call"), id: "id",
		signed: typed("thought"), proof: "signature",
		result: func(call fields, _ int) fields {
			return fields{"type": "function_result", "name": call["name"], "call_id": call["id"], "result": "rain"}
		},
		history: flat(`"model":"gemini-3.8-flash",` + interactionTools),
	}
	return []replayed{anthropic, aws, google, vertex, openai, stateless, interactions}
}

// dial starts a provider of the protocol. Its streaming requests go to another route where the protocol has it so.
func (r *replayed) dial(t *testing.T) func(stream bool) *peer {
	handler := r.make(Options{})
	name, _, _ := strings.Cut(r.protocol, " ")
	p := dialHandler(t, name, handler)
	routes := map[bool]string{}
	switch name {
	case "bedrock":
		routes[false], routes[true] = "/model/m/invoke", "/model/m/invoke-with-response-stream"
	case "gemini":
		const model = "/v1beta/models/gemini-3.8-flash:"
		routes[false], routes[true] = model+"generateContent", model+"streamGenerateContent?alt=sse"
	case "vertex":
		const model = "/v1/projects/" + vertexProject + "/locations/global/publishers/google/models/gemini-3.8-flash:"
		routes[false], routes[true] = model+"generateContent", model+"streamGenerateContent?alt=sse"
		v := handler.(*VertexProvider)
		expiry := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
		p.header.Set("Authorization", "Bearer ya29."+expiry+"."+v.sealer.sign("token "+expiry))
	default:
		return func(bool) *peer { return p }
	}
	return func(stream bool) *peer { return p.to(routes[stream]) }
}

// answer asks for thinking and calls, and answers these.
func (r *replayed) answer(p *peer, prompt string) step {
	p.Helper()
	var s step
	text := p.whole(strings.Replace(r.ask, "PROMPT", prompt, 1)).at(r.model).json()
	if err := json.Unmarshal([]byte(text), &s.model); err != nil {
		p.Fatal(err)
	}
	for i, item := range s.model {
		if r.call(item) {
			s.results = append(s.results, r.result(item, i))
		}
	}
	return s
}

// copyOf is a deep copy.
func (s step) copyOf() (c step) {
	_ = json.Unmarshal([]byte(encode(s.model)), &c.model)
	_ = json.Unmarshal([]byte(encode(s.results)), &c.results)
	return c
}

// find returns the first item of a kind.
func find(items []fields, kind func(fields) bool) fields {
	if at := slices.IndexFunc(items, kind); at >= 0 {
		return items[at]
	}
	return fields{}
}

// TestReplays answers the calls of two genuine steps, and then spoils the second in every way that a history can be
// spoilt on its way through a gateway.
func TestReplays(t *testing.T) {
	// What a case names with another status than 400 begins with it; "ok" is what real providers accept.
	const modified, signature = "blocks in the latest assistant message cannot be modified", "Invalid `signature` in `thinking` block"
	const corrupted, invalidOnVertex = "Corrupted thought signature.", "Thought signature is not valid"
	const unverified, otherItem = "could not be verified. Reason: Encrypted content could not be decrypted or parsed.", "Reason: Encrypted content item_id did not match the target item id."
	const unreasoned, unfollowed = "was provided without its required 'reasoning' item", "of type 'reasoning' was provided without its required following item."
	const unbegun = "a turn of the model must start with its signed thought"
	const responseCount = "number of function response parts is equal to the number of function call parts"
	common := func(all ...fields) (merged map[string]string) {
		merged = map[string]string{}
		for _, m := range all {
			for name, want := range m {
				merged[name] = want.(string)
			}
		}
		return merged
	}
	anthropic := fields{
		"proof removed": "signature: Field required", "proof altered": signature, "proof of another instance": signature, "envelope": signature, "empty proof": signature,
		"proofs swapped": signature, "thinking altered": modified, "thinking removed": "but found `tool_use`", "thinking after the call": "but found `tool_use`",
		"thinking of the other step": modified, "result removed": "`tool_use` ids were found without `tool_result` blocks immediately after",
		"orphan result": "unexpected `tool_use_id` found in `tool_result` blocks", "result twice": "each tool_use must have a single result",
		"empty text": "messages: text content blocks must be non-empty", "call twice": "`tool_use` ids must be unique",
		"call altered": "ok", // what a model says is the caller's to change
	}
	google := func(invalid string) fields {
		return fields{
			"proof removed": "missing a", "proof altered": invalid, "proof of another instance": invalid, "envelope": invalid, "empty proof": "missing a",
			"proofs swapped": invalid, "thinking altered": "ok", "thinking removed": "ok", "thinking after the call": "ok", "call altered": invalid,
			"result removed": responseCount, "orphan result": responseCount, "result twice": responseCount, "placeholder": "ok",
		}
	}
	openai := fields{
		"proof removed": "404: not found", "proof altered": unverified, "proof of another instance": unverified, "envelope": unverified, "empty proof": unverified,
		"proofs swapped": otherItem, "thinking altered": "ok", "thinking removed": unreasoned, "thinking after the call": unreasoned, "call altered": "ok",
		"thinking of the other step": "Duplicate item found with id rs_", "result removed": "No tool output found for function call", "orphan result": "No tool call found for function call output with call_id",
		"result twice": "No tool call found for function call output with call_id", "call twice": "Duplicate", "thinking alone": unfollowed, "thinking alone, more words": unfollowed,
	}
	wants := map[string]map[string]string{
		"messages": common(anthropic), "bedrock": common(anthropic), "gemini": common(google(corrupted)), "vertex": common(google(invalidOnVertex)),
		"responses": common(openai),
		"responses strict": common(openai, fields{
			"proof removed": "Missing required parameter: 'input[", "proofs swapped": unreasoned, "thinking of the other step": unreasoned,
		}),
		"interactions": common(google(corrupted), fields{
			"proof removed": unbegun, "empty proof": unbegun, "thinking removed": unbegun, "thinking after the call": unbegun, "orphan result": "matches no function call", "result twice": "matches no function call",
			"result removed": "has no function result", "empty text": "a text content must not be empty", "call twice": "duplicate function call id", "thinking of the other step": corrupted,
		}),
	}
	for _, r := range replayProtocols() {
		for _, prompt := range []string{"think, call for Oslo", "think, parallel for Oslo"} {
			t.Run(r.protocol+" "+strings.Fields(prompt)[1], func(t *testing.T) {
				to, elsewhere := r.dial(t), r.dial(t)
				first, second := r.answer(to(false), "think, call for Bergen"), r.answer(to(false), prompt)
				foreign := r.answer(elsewhere(false), prompt)
				if calls := len(second.results); calls != len(strings.Fields(prompt)[1])/4 || find(second.model, r.signed)[r.proof] == nil {
					t.Fatalf("%d calls in %s", calls, encode(second.model))
				}
				proof := find(second.model, r.signed)[r.proof].(string)
				call := func(s *step) int { return slices.IndexFunc(s.model, r.call) }
				mutations := map[string]func(a, b *step){
					"unaltered":                 func(a, b *step) {},
					"proof removed":             func(a, b *step) { delete(find(b.model, r.signed), r.proof) },
					"empty proof":               func(a, b *step) { find(b.model, r.signed)[r.proof] = "" },
					"proof altered":             func(a, b *step) { find(b.model, r.signed)[r.proof] = spoil(proof) },
					"proof of another instance": func(a, b *step) { find(b.model, r.signed)[r.proof] = find(foreign.model, r.signed)[r.proof] },
					"placeholder":               func(a, b *step) { find(b.model, r.signed)[r.proof] = placeholderSignature },
					"envelope": func(a, b *step) {
						text := "mmsp1." + base64.RawURLEncoding.EncodeToString([]byte(proof))
						if strings.HasPrefix(r.model, "candidates") || r.protocol == "interactions" {
							text = base64.StdEncoding.EncodeToString([]byte(text))
						}
						find(b.model, r.signed)[r.proof] = text
					},
					"proofs swapped": func(a, b *step) {
						x, y := find(a.model, r.signed), find(b.model, r.signed)
						x[r.proof], y[r.proof] = y[r.proof], x[r.proof]
					},
					"thinking altered": func(a, b *step) {
						thought := find(b.model, r.thought)
						altered := strings.Replace(encode(thought), "The user", "A user", 1)
						clear(thought)
						_ = json.Unmarshal([]byte(altered), &thought)
					},
					"thinking removed": func(a, b *step) { b.model = slices.DeleteFunc(b.model, r.thought) },
					"thinking alone": func(a, b *step) {
						b.model, b.results = slices.DeleteFunc(b.model, r.call), nil
					},
					"thinking alone, more words": func(a, b *step) {
						b.model, b.results = slices.DeleteFunc(b.model, r.call), []fields{{"role": "user", "content": "and?"}}
					},
					"thinking after the call": func(a, b *step) {
						at := slices.IndexFunc(b.model, r.thought)
						thought := b.model[at]
						b.model = append(slices.Delete(b.model, at, at+1), thought)
					},
					"thinking of the other step": func(a, b *step) {
						b.model[slices.IndexFunc(b.model, r.thought)] = find(a.copyOf().model, r.thought)
					},
					"call altered": func(a, b *step) {
						c := b.model[call(b)]
						altered := strings.Replace(encode(c), "Oslo", "Rome", 1)
						clear(c)
						_ = json.Unmarshal([]byte(altered), &c)
					},
					"call twice": func(a, b *step) {
						c := b.model[call(b)]
						b.model, b.results = append(b.model, maps.Clone(c)), append(b.results, r.result(c, 0))
					},
					"result removed": func(a, b *step) { b.results = b.results[1:] },
					"result twice":   func(a, b *step) { b.results = append(b.results, b.results[0]) },
					"orphan result":  func(a, b *step) { a.results = append(a.results, b.results...) },
					"empty text": func(a, b *step) {
						text := fields{"type": "text", "text": ""}
						if r.protocol == "interactions" {
							text = fields{"type": "model_output", "content": []fields{text}}
						}
						b.model = append(b.model, text)
					},
				}
				for name, mutate := range mutations {
					want, ok := wants[r.protocol][name]
					if !ok && name != "unaltered" {
						continue
					}
					for _, stream := range []bool{false, true} {
						t.Run(name+" "+strconv.FormatBool(stream), func(t *testing.T) {
							a, b := first.copyOf(), second.copyOf()
							before := r.history([]step{a, b}, stream)
							mutate(&a, &b)
							body := r.history([]step{a, b}, stream)
							if name != "unaltered" && body == before {
								t.Fatal("nothing was changed")
							}
							response, text, err := to(stream).post(body)
							status, message := http.StatusBadRequest, want
							if code, rest, ok := strings.Cut(want, ": "); ok && code == "404" {
								status, message = http.StatusNotFound, rest
							}
							if want == "" || want == "ok" {
								status, message = http.StatusOK, ""
							}
							if err != nil || response.StatusCode != status {
								t.Fatalf("status %d, %v: %.300s\nwant %d %q\nto %s", response.StatusCode, err, text, status, message, body)
							}
							said := strings.NewReplacer(`\u0026`, "&", `\"`, `"`).Replace(text)
							if !strings.Contains(said, message) {
								t.Errorf("got %s\nwant %q", text, message)
							}
						})
					}
				}
			})
		}
	}
}

// TestChatReplays does the same for the thinking of Chat Completions, which has no proof: the field itself comes back.
func TestChatReplays(t *testing.T) {
	for _, field := range []string{"reasoning_content", "reasoning"} {
		for _, prompt := range []string{"think, call for Oslo", "think, parallel for Oslo"} {
			p := dial(t, "chat", Options{Strict: true, ReasoningField: field})
			message := p.whole(ask("chat", prompt, chatTools)).at("choices.0.message").value.(fields)
			thinking := message[field]
			for name, want := range map[string]string{
				"unaltered": "", "field removed": "must be passed back to the API", "in another field": "must be passed back to the API",
				"result removed": "did not have response messages", "result twice": "Duplicate value for 'tool_call_id'",
				"orphan result": "messages with role 'tool' must be a response to a preceeding message",
			} {
				for _, stream := range []string{`"stream":true`, `"stream":false`} {
					message := maps.Clone(message)
					var results []any
					for _, call := range message["tool_calls"].([]any) {
						results = append(results, fields{"role": "tool", "tool_call_id": call.(fields)["id"], "content": "rain"})
					}
					switch name {
					case "field removed":
						delete(message, field)
					case "in another field":
						delete(message, field)
						message["thinking"] = thinking
					case "result removed":
						results = results[1:]
					case "result twice":
						results = append(results, results[0])
					case "orphan result":
						delete(message, "tool_calls")
					}
					body := `{"model":"m",` + stream + `,` + chatTools + `,"messages":` + encode(append([]any{fields{"role": "user", "content": "hi"}, message}, results...)) + `}`
					if want == "" {
						p.ok(body)
					} else {
						checkRefused(t, p, body, "invalid_request_error", want)
					}
				}
			}
		}
	}
}

// spoil alters the middle of a proof.
func spoil(proof string) string {
	at := len(proof) / 2
	letter := "A"
	if proof[at] == 'A' {
		letter = "B"
	}
	return proof[:at] + letter + proof[at+1:]
}
