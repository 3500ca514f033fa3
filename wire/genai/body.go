package genai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is what callers send to :generateContent and :streamGenerateContent. Keys are read in both of the spellings that
// Google's JSON has, lowerCamelCase and snake_case; a list of one may be written without its brackets, as Google's own
// examples do.
type Body struct {
	Contents    []Turn
	System      []string
	Functions   []Function
	Hosted      []string // tools that Google runs itself, such as "tools[1] (googleSearch)"
	Calling     *Calling
	Generation  Generation
	ServiceTier string // flex, standard or priority

	Unserved []string // the paths of what only Google's own machinery serves
	Unknown  []string // fields

	path string // of the request in the body, with a dot after it; empty: the body itself
}

// Turn is one turn of a caller's conversation.
type Turn struct {
	Path  string
	Role  string // user, model or function; empty is the user
	Parts []InputPart
}

// InputPart is a piece of a turn. Kind is the key of what it holds, one of InputKinds; the fields that belong to it count.
type InputPart struct {
	Path      string
	Kind      string // empty: nothing
	Thought   bool
	Signature string // base64

	Text        string          // text
	MimeType    string          // inlineData, fileData
	Data        []byte          // inlineData
	DisplayName string          // inlineData
	FileURI     string          // fileData
	ID          string          // functionCall, functionResponse; empty: none
	Name        string          // functionCall, functionResponse
	Args        json.RawMessage // functionCall: an object; nil: none
	Response    json.RawMessage // functionResponse: an object; nil: none
	Parts       []InputPart     // functionResponse: pictures and documents
}

// InputKinds are what a part may hold. What Google's own tools did is among it.
var InputKinds = []string{
	"text", "inlineData", "fileData", "functionCall", "functionResponse",
	"executableCode", "codeExecutionResult", "toolCall", "toolResponse",
}

// Function is a function that the model may call.
type Function struct {
	Path        string
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema; nil: none
}

// Calling says whether functions are called.
type Calling struct {
	Path    string
	Mode    string   // AUTO, ANY, NONE or VALIDATED; empty: not said
	Allowed []string // names, with ANY and VALIDATED
}

// Generation shapes the answer. Nil and empty: not said.
type Generation struct {
	Temperature      *float64
	TopP             *float64
	TopK             *int64
	MaxOutputTokens  *int64
	StopSequences    []string
	Seed             *int64
	PresencePenalty  *float64
	FrequencyPenalty *float64
	JSON             bool            // the text of the answer is JSON,
	Schema           json.RawMessage // which fits this JSON Schema
	IncludeThoughts  *bool
	ThinkingLevel    string   // MINIMAL, LOW, MEDIUM or HIGH
	ThinkingBudget   *int64   // tokens; -1: the model decides
	AsksSpeech       []string // the paths of what asks for speech,
	Voices           []SpeakerVoice
	AsksPictures     []string // and for pictures
	Image            *ImageConfig
}

// EmbeddingBody is what callers send to :embedContent and :batchEmbedContents.
type EmbeddingBody struct {
	Requests []InputEmbedding
	Unserved []string // the paths of what only Google's own machinery serves
	Unknown  []string // fields
}

// InputEmbedding is a content to embed.
type InputEmbedding struct {
	Path       string
	Model      string // models/…; empty: that of the path
	Content    Turn
	Dimensions *int64
}

// ReadBody reads the body of :generateContent. The JSON must have passed jsonscan.Check. The error is a *jsonscan.PathError.
func ReadBody(data []byte) (*Body, error) {
	r := jsonscan.NewReader(data)
	body := &Body{}
	body.read(r, nil)
	body.complete(r)
	return body, r.End()
}

// ReadCount reads the body of :countTokens: contents, or a request as :generateContent takes it.
func ReadCount(data []byte) (*Body, error) {
	r := jsonscan.NewReader(data)
	body, inner := &Body{}, (*Body)(nil)
	body.read(r, func(name string) {
		switch {
		case name != "generateContentRequest":
			r.SkipUnknown()
			return
		case r.Kind() == 'n':
			r.Skip()
			return
		}
		inner = &Body{path: r.Path() + "."}
		inner.read(r, nil)
	})
	if inner != nil {
		if body.Contents != nil {
			r.FailAt("contents", "contents and generateContentRequest exclude each other")
		}
		body = inner
	}
	body.complete(r)
	return body, r.End()
}

// ReadEmbedding reads the body of :embedContent.
func ReadEmbedding(data []byte) (*EmbeddingBody, error) {
	r := jsonscan.NewReader(data)
	one := readEmbedding(r)
	return &EmbeddingBody{[]InputEmbedding{one}, r.Dropped(), r.Unknown()}, r.End()
}

// ReadEmbeddingBatch reads the body of :batchEmbedContents.
func ReadEmbeddingBatch(data []byte) (*EmbeddingBody, error) {
	r := jsonscan.NewReader(data)
	var all []InputEmbedding
	fields(r, func(name string) {
		if name != "requests" {
			r.SkipUnknown()
			return
		}
		list(r, func() { all = append(all, readEmbedding(r)) })
	})
	if len(all) == 0 {
		r.FailAt("requests", "at least one is wanted")
	}
	return &EmbeddingBody{all, r.Dropped(), r.Unknown()}, r.End()
}

// camel returns a key as Google's JSON writes it.
func camel(name string) string {
	if !strings.Contains(name, "_") || name[0] == '_' || name[len(name)-1] == '_' {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '_' {
			i++
			if c = name[i]; c >= 'a' && c <= 'z' {
				c -= 'a' - 'A'
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// fields is Reader.Fields of a record of the protocol. A key in both spellings is refused.
func fields(r *jsonscan.Reader, read func(name string)) bool {
	var seen map[string]bool // the keys that have two
	return r.Fields(func(name string) {
		name = camel(name)
		if strings.ContainsFunc(name, func(c rune) bool { return c >= 'A' && c <= 'Z' }) {
			if seen[name] {
				r.Fail("the key is given in two spellings")
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[name] = true
		}
		read(name)
	})
}

// list reads the elements of a list, or the one that stands in its place.
func list(r *jsonscan.Reader, read func()) {
	if r.Kind() == '{' {
		read()
		return
	}
	r.Elements(read)
}

// word returns one of the words, whatever its case; "" for null and for a value that says nothing.
func word(r *jsonscan.Reader, unspecified string, words ...string) string {
	text := r.String()
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w
		}
	}
	if text != "" && !strings.EqualFold(text, unspecified) {
		r.Fail("one of " + strings.Join(words, ", ") + " is wanted")
	}
	return ""
}

// enum is word of an enumeration, which older libraries of Google's write by the number that the word has in order.
func enum(r *jsonscan.Reader, unspecified string, words ...string) string {
	if r.Kind() != '0' {
		return word(r, unspecified, words...)
	}
	n := r.IntBetween(0, int64(len(words)))
	if r.Failed() || *n == 0 {
		return ""
	}
	return words[*n-1]
}

// leaveWord leaves out a word, or the number of one, that says something.
func leaveWord(r *jsonscan.Reader, unspecified string) {
	if r.Kind() == '0' {
		r.Skip()
		r.Drop()
	} else if text := r.String(); text != "" && text != unspecified {
		r.Drop()
	}
}

// read reads a request; other takes what else stands in it, nil takes it for unknown.
func (b *Body) read(r *jsonscan.Reader, other func(name string)) {
	fields(r, func(name string) {
		switch name {
		case "contents":
			list(r, func() { b.Contents = append(b.Contents, readTurn(r)) })
		case "systemInstruction":
			b.readSystem(r)
		case "tools":
			list(r, func() { b.readTool(r) })
		case "toolConfig":
			fields(r, func(name string) {
				if name == "functionCallingConfig" {
					b.Calling = readCalling(r)
				} else {
					r.Skip()
				}
			})
		case "generationConfig":
			b.Generation.read(r)
		case "cachedContent":
			if r.String() != "" {
				r.Fail("cached contents of a provider are not known here")
			}
		case "serviceTier":
			b.ServiceTier = word(r, "unspecified", "flex", "standard", "priority")
		case "safetySettings":
			r.Leave('[', '{')
		case "labels":
			r.Leave('{')
		case "continuationToken":
			r.Leave('"')
		case "store":
			if store := r.Bool(); store != nil && *store {
				r.Drop()
			}
		case "model": // which the address says
			r.Skip()
		default:
			if other != nil {
				other(name)
			} else {
				r.SkipUnknown()
			}
		}
	})
}

// complete ends the reading of a request.
func (b *Body) complete(r *jsonscan.Reader) {
	if len(b.Contents) == 0 {
		r.FailAt(b.path+"contents", "at least one is wanted")
	}
	b.Unserved, b.Unknown = r.Dropped(), r.Unknown()
}

// readSystem reads a content whose role says nothing, or a text.
func (b *Body) readSystem(r *jsonscan.Reader) {
	if r.Kind() == '"' {
		b.System = append(b.System, r.String())
		return
	}
	turn := Turn{}
	fields(r, func(name string) {
		if name == "parts" {
			list(r, func() { turn.Parts = append(turn.Parts, readPart(r, false)) })
		} else {
			r.Skip()
		}
	})
	for i := range turn.Parts {
		switch part := &turn.Parts[i]; part.Kind {
		case "text":
			b.System = append(b.System, part.Text)
		case "":
		default:
			r.FailAt(part.Path, "the system instruction is text alone, not "+part.Kind)
		}
	}
}

func readTurn(r *jsonscan.Reader) Turn {
	turn := Turn{Path: r.Path()}
	fields(r, func(name string) {
		switch name {
		case "role":
			turn.Role = r.Word("user", "model", "function")
		case "parts":
			list(r, func() { turn.Parts = append(turn.Parts, readPart(r, false)) })
		default:
			r.Skip()
		}
	})
	return turn
}

// readPart reads a part of a turn, or of an answer to a call.
func readPart(r *jsonscan.Reader, answer bool) InputPart {
	part := InputPart{Path: r.Path()}
	var unknown []string
	fields(r, func(name string) {
		if r.Kind() == 'n' {
			r.Skip()
			return
		}
		if slices.Contains(InputKinds, name) {
			if part.Kind != "" {
				r.FailAt(part.Path, "a part holds one thing, not "+part.Kind+" and "+name)
			}
			part.Kind = name
		}
		switch name {
		case "text":
			part.Text = r.String()
		case "thought":
			if thought := r.Bool(); thought != nil {
				part.Thought = *thought
			}
		case "thoughtSignature":
			part.Signature = r.String()
		case "inlineData", "fileData":
			part.readData(r)
		case "functionCall", "functionResponse":
			if answer { // where they are refused, however deep answers stand in answers
				r.Skip()
			} else {
				part.readFunction(r)
			}
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "partMetadata":
			r.Skip()
		case "videoMetadata", "mediaResolution", "mediaProcessing":
			r.Leave()
		default:
			if len(unknown) < 8 {
				unknown = append(unknown, name)
			}
			r.Skip()
		}
	})
	switch {
	case part.Kind != "":
	case len(unknown) > 0:
		r.FailAt(part.Path, "a part with "+strings.Join(unknown, ", ")+" is not known; one of "+strings.Join(InputKinds, ", ")+" is wanted")
	case part.Signature != "": // an empty text that was left out
		part.Kind = "text"
	}
	return part
}

// readData reads a blob, or where a file is.
func (p *InputPart) readData(r *jsonscan.Reader) {
	path := r.Path()
	fields(r, func(name string) {
		switch name {
		case "mimeType":
			p.MimeType = r.String()
		case "data":
			p.Data = r.Base64()
		case "displayName":
			p.DisplayName = r.String()
		case "fileUri":
			p.FileURI = r.String()
		default:
			r.Skip()
		}
	})
	switch {
	case p.Kind == "fileData":
		if p.FileURI == "" {
			r.FailAt(path+".fileUri", "the address of a file is wanted")
		}
	case p.MimeType == "":
		r.FailAt(path+".mimeType", "a MIME type is wanted")
	case len(p.Data) == 0:
		r.FailAt(path+".data", "base64 of some bytes is wanted")
	}
}

// readFunction reads a call, or the answer to one.
func (p *InputPart) readFunction(r *jsonscan.Reader) {
	path := r.Path()
	fields(r, func(name string) {
		switch {
		case name == "id":
			p.ID = r.String()
		case name == "name":
			p.Name = r.String()
		case name == "args" && p.Kind == "functionCall":
			p.Args = r.Object()
		case name == "response" && p.Kind == "functionResponse":
			p.Response = r.Object()
		case name == "parts" && p.Kind == "functionResponse":
			list(r, func() {
				part := readPart(r, true)
				if part.Kind != "" && part.Kind != "inlineData" && part.Kind != "fileData" {
					r.FailAt(part.Path, "inlineData or fileData is wanted, not "+part.Kind)
				}
				p.Parts = append(p.Parts, part)
			})
		default:
			r.Skip()
		}
	})
	if p.Name == "" {
		r.FailAt(path+".name", "the name of a function is wanted")
	}
}

// readTool reads one of the tools: functions, or tools that Google runs itself.
func (b *Body) readTool(r *jsonscan.Reader) {
	path := r.Path()
	fields(r, func(name string) {
		switch {
		case name == "functionDeclarations":
			list(r, func() { b.Functions = append(b.Functions, readFunction(r)) })
		case r.Kind() == 'n':
			r.Skip()
		default:
			b.Hosted = append(b.Hosted, path+" ("+name+")")
			r.Skip()
		}
	})
}

func readFunction(r *jsonscan.Reader) Function {
	f := Function{Path: r.Path()}
	twice := false
	fields(r, func(name string) {
		switch name {
		case "name":
			f.Name = r.String()
		case "description":
			f.Description = r.String()
		case "parameters", "parametersJsonSchema":
			schema := readSchema(r, name == "parameters")
			twice = twice || schema != nil && f.Parameters != nil
			f.Parameters = schema
		case "response", "responseJsonSchema":
			r.Leave('{')
		default: // behavior
			r.Skip()
		}
	})
	if f.Name == "" {
		r.FailAt(f.Path+".name", "the name of a function is wanted")
	}
	if twice {
		r.FailAt(f.Path, "parameters and parametersJsonSchema exclude each other")
	}
	return f
}

// readSchema reads a schema, of the protocol's own kind or JSON Schema as it is.
func readSchema(r *jsonscan.Reader, own bool) json.RawMessage {
	schema := r.Object()
	if schema == nil || !own {
		return schema
	}
	schema, err := JSONSchema(schema)
	if err != nil {
		r.Fail(err.Error())
	}
	return schema
}

func readCalling(r *jsonscan.Reader) *Calling {
	calling := &Calling{Path: r.Path()}
	if !fields(r, func(name string) {
		switch name {
		case "mode":
			calling.Mode = enum(r, "MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
		case "allowedFunctionNames":
			calling.Allowed = r.Strings()
		default:
			r.Skip()
		}
	}) {
		return nil
	}
	if len(calling.Allowed) > 0 && calling.Mode != "ANY" && calling.Mode != "VALIDATED" {
		r.FailAt(calling.Path+".allowedFunctionNames", "names are taken with the modes ANY and VALIDATED alone")
	}
	return calling
}

func (g *Generation) read(r *jsonscan.Reader) {
	path := r.Path()
	mimeType, twice := "", false
	fields(r, func(name string) {
		switch name {
		case "temperature":
			g.Temperature = r.FloatBetween(0, 2)
		case "topP":
			g.TopP = r.FloatBetween(0, 1)
		case "topK":
			g.TopK = r.IntBetween(1, 1<<31-1)
		case "candidateCount":
			if n := r.Int(); n != nil && *n != 1 {
				r.Fail("there is one candidate")
			}
		case "maxOutputTokens":
			g.MaxOutputTokens = r.IntBetween(1, 1<<31-1)
		case "stopSequences":
			g.StopSequences = r.Strings()
		case "seed":
			g.Seed = r.Int()
		case "presencePenalty":
			g.PresencePenalty = r.FloatBetween(-2, 2)
		case "frequencyPenalty":
			g.FrequencyPenalty = r.FloatBetween(-2, 2)
		case "responseLogprobs":
			if on := r.Bool(); on != nil && *on {
				r.Drop()
			}
		case "logprobs":
			if n := r.IntBetween(0, 20); n != nil && *n > 0 {
				r.Drop()
			}
		case "responseMimeType":
			mimeType = r.String()
			switch mimeType {
			case "", "text/plain":
			case "application/json":
				g.JSON = true
			default:
				r.Fail("one of text/plain, application/json is wanted")
			}
		case "responseSchema", "responseJsonSchema", "_responseJsonSchema": // as it was written at first
			schema := readSchema(r, name == "responseSchema")
			twice = twice || schema != nil && g.Schema != nil
			g.Schema = schema
		case "responseModalities":
			said := map[string]bool{}
			r.Elements(func() {
				modality := enum(r, "MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO")
				if said[modality] {
					return
				}
				said[modality] = true
				switch modality {
				case "IMAGE":
					g.AsksPictures = append(g.AsksPictures, r.Path()+" (IMAGE)")
				case "AUDIO":
					g.AsksSpeech = append(g.AsksSpeech, r.Path()+" (AUDIO)")
				}
			})
		case "mediaResolution":
			leaveWord(r, "MEDIA_RESOLUTION_UNSPECIFIED")
		case "speechConfig":
			if g.readSpeech(r); g.Voices != nil {
				g.AsksSpeech = append(g.AsksSpeech, r.Path())
			}
		case "imageConfig":
			image := ImageConfig{}
			fields(r, func(name string) {
				switch name {
				case "aspectRatio":
					image.AspectRatio = r.String()
				case "imageSize":
					image.ImageSize = r.String()
				default:
					r.Leave()
				}
			})
			if image != (ImageConfig{}) {
				g.Image = &image
				g.AsksPictures = append(g.AsksPictures, r.Path())
			}
		case "thinkingConfig":
			fields(r, func(name string) {
				switch name {
				case "includeThoughts":
					g.IncludeThoughts = r.Bool()
				case "thinkingLevel":
					g.ThinkingLevel = word(r, "THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH")
				case "thinkingBudget":
					g.ThinkingBudget = r.IntBetween(-1, 1<<31-1)
				default:
					r.Skip()
				}
			})
		default: // routingConfig and what is new: all of it shapes the answer
			r.Leave()
		}
	})
	switch {
	case twice:
		r.FailAt(path+".responseSchema", "responseSchema and responseJsonSchema exclude each other")
	case g.Schema != nil && mimeType == "text/plain":
		r.FailAt(path+".responseMimeType", "a schema is taken with application/json alone")
	}
	g.JSON = g.JSON || g.Schema != nil
}

func (g *Generation) readSpeech(r *jsonscan.Reader) {
	voice := func() (v VoiceConfig) {
		path := r.Path()
		if fields(r, func(name string) {
			if name != "prebuiltVoiceConfig" {
				r.Skip()
				return
			}
			fields(r, func(name string) {
				if name == "voiceName" {
					v.PrebuiltVoiceConfig.VoiceName = r.String()
				} else {
					r.Skip()
				}
			})
		}) && v.PrebuiltVoiceConfig.VoiceName == "" {
			r.FailAt(path+".prebuiltVoiceConfig.voiceName", "the name of a voice is wanted")
		}
		return v
	}
	fields(r, func(name string) {
		switch name {
		case "voiceConfig":
			if v := voice(); v != (VoiceConfig{}) {
				g.Voices = append(g.Voices, SpeakerVoice{VoiceConfig: v})
			}
		case "multiSpeakerVoiceConfig":
			fields(r, func(name string) {
				if name != "speakerVoiceConfigs" {
					r.Skip()
					return
				}
				list(r, func() {
					one := SpeakerVoice{}
					fields(r, func(name string) {
						switch name {
						case "speaker":
							one.Speaker = r.String()
						case "voiceConfig":
							one.VoiceConfig = voice()
						default:
							r.Skip()
						}
					})
					g.Voices = append(g.Voices, one)
				})
			})
		case "languageCode":
			r.Leave('"')
		default:
			r.Skip()
		}
	})
}

func readEmbedding(r *jsonscan.Reader) InputEmbedding {
	e := InputEmbedding{Path: r.Path()}
	prefix := strings.TrimPrefix(e.Path+".", ".")
	fields(r, func(name string) {
		switch name {
		case "model":
			e.Model = r.String()
		case "content":
			e.Content = readTurn(r)
		case "outputDimensionality":
			e.Dimensions = r.IntBetween(1, 1<<31-1)
		case "taskType":
			leaveWord(r, "TASK_TYPE_UNSPECIFIED")
		case "title":
			if r.String() != "" {
				r.Drop()
			}
		default:
			r.Skip()
		}
	})
	if len(e.Content.Parts) == 0 {
		r.FailAt(prefix+"content", "a content with parts is wanted")
	}
	return e
}
