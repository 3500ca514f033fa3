package mmsp

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Tracer keeps each traced conversation as a pair of files in one folder: <trace id>.json for programs and <trace
// id>.txt for people. A conversation is written whole with every answer, so its files grow as its history does.
type Tracer struct{ dir string }

// NewTracer returns a tracer that writes below dir; an empty dir stands for MMSP_CACHE_DIR, else for "cache" in the
// working directory. The folder is made when the first trace is saved.
func NewTracer(dir string) *Tracer {
	dir = cmp.Or(dir, os.Getenv("MMSP_CACHE_DIR"), "cache")
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return &Tracer{dir}
}

// maxTraceID bounds a trace id in bytes, so that every file system takes its segments.
const maxTraceID = 200

// checkTraceID says why id is no relative path of visible, portable names.
func checkTraceID(id string) error {
	if len(id) > maxTraceID {
		return fmt.Errorf("a trace id of more than %d bytes is not taken", maxTraceID)
	}
	for segment := range strings.SplitSeq(id, "/") {
		switch {
		case segment == "":
			return errors.New("a trace id is a relative path without empty segments")
		case segment[0] == '.':
			return fmt.Errorf("%q is no segment of a trace id: it begins with a dot", segment)
		}
		for _, c := range segment {
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)) {
				return fmt.Errorf("%q is no segment of a trace id: letters, digits, dot, underscore and hyphen are", segment)
			}
		}
	}
	return nil
}

// Save writes the conversation and the config it was held with. The last extension of the id, if it has one, is
// replaced: "a/b.txt" names a/b.json and a/b.txt. Each file is replaced at once, so a reader never sees half of it.
// Nothing is written outside the tracer's folder, not even through a symbolic link. An id is a relative path of letters,
// digits, dots, underscores and hyphens, in which no name begins with a dot; another one is an error.
func (t *Tracer) Save(traceID, model string, history []Message, config *Config) error {
	if err := checkTraceID(traceID); err != nil {
		return err
	}
	if config == nil {
		config = &Config{}
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("saving the trace: %w", err)
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("saving the trace: %w", err)
	}
	defer root.Close()

	name := strings.TrimSuffix(traceID, path.Ext(traceID))
	now := time.Now()
	settings := traceConfig(config, model)
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("saving the trace: %w", err)
	}
	if err := replaceFile(root, name+".json", traceJSON(history, settings, now)); err != nil {
		return fmt.Errorf("saving the trace: %w", err)
	}
	if err := replaceFile(root, name+".txt", traceText(history, settings, now)); err != nil {
		return fmt.Errorf("saving the trace: %w", err)
	}
	return nil
}

// replaceFile writes a file beside the named one and moves it there.
func replaceFile(root *os.Root, name string, data []byte) error {
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}

// traceConfig returns the config as JSON with the model as its last key.
func traceConfig(config *Config, model string) []byte {
	w := objectWriter{config.AppendJSON(nil)}
	w.dst = w.dst[:len(w.dst)-1]
	w.string("model", model)
	w.close()
	return w.dst
}

func traceJSON(history []Message, config []byte, now time.Time) []byte {
	w := objectWriter{}
	w.open()
	w.key("history")
	w.dst = append(w.dst, '[')
	for i := range history {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = history[i].AppendJSON(w.dst)
	}
	w.dst = append(w.dst, ']')
	w.raw("config", config)
	w.string("timestamp", now.UTC().Format("2006-01-02T15:04:05.000Z"))
	w.close()
	return append(indentJSON(w.dst, ""), '\n')
}

// indentJSON returns the text over several lines, all but the first behind prefix, or as it is when it is not JSON.
func indentJSON(text []byte, prefix string) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, text, prefix, "  "); err != nil {
		return text
	}
	return b.Bytes()
}

func traceText(history []Message, config []byte, now time.Time) []byte {
	var b bytes.Buffer
	ruler := strings.Repeat("=", 80)
	fmt.Fprintf(&b, "%s\nConversation of %s\n%s\n\nConfiguration:\n", ruler, now.Format(time.DateTime), ruler)
	var s jsonscan.Scanner
	s.Reset(config)
	for first := true; s.Field(&first); {
		switch name := string(s.Name()); {
		case name == "trace_id":
			s.Skip()
		case name == "tools", name == "response_format":
			fmt.Fprintf(&b, "  %s: %s\n", name, indentJSON(s.Raw(), "  "))
		case s.Kind() == '"':
			fmt.Fprintf(&b, "  %s: %s\n", name, s.Bytes())
		default:
			fmt.Fprintf(&b, "  %s: %s\n", name, s.Raw())
		}
	}
	b.WriteByte('\n')
	for i := range history {
		message := &history[i]
		fmt.Fprintf(&b, "[%d] %s:\n%s\n", i+1, strings.ToUpper(string(message.Role)), strings.Repeat("-", 80))
		for j := range message.ContentItems {
			traceItem(&b, &message.ContentItems[j])
		}
		if u := message.Usage; u != nil {
			b.WriteString("Usage Metadata:\n")
			for _, bucket := range []struct {
				name   string
				tokens *int64
			}{
				{"cached_tokens", u.CachedTokens},
				{"prompt_tokens", u.PromptTokens},
				{"thoughts_tokens", u.ThoughtsTokens},
				{"response_tokens", u.ResponseTokens},
			} {
				if bucket.tokens != nil {
					fmt.Fprintf(&b, "  %s: %d\n", bucket.name, *bucket.tokens)
				}
			}
			fmt.Fprintf(&b, "  total: %d\n", u.Total())
		}
		if message.FinishReason != "" {
			fmt.Fprintf(&b, "Finish Reason: %s\n", message.FinishReason)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// traceItem writes what a person reads of an item: of bytes only their kind and size, of a vector only its beginning.
func traceItem(b *bytes.Buffer, i *Item) {
	switch i.Type {
	case TextDone:
		fmt.Fprintf(b, "Text: %s\n", i.Text)
	case ThinkingDone:
		fmt.Fprintf(b, "Thinking: %s\n", i.Thinking)
	case ImageURLDone:
		fmt.Fprintf(b, "Image URL: %s\n", i.ImageURL)
	case InlineDataDone, InlineThinkingDone:
		label := "Inline Data"
		if strings.HasPrefix(i.MimeType, "image/") {
			label = "Inline Image"
		} else if strings.HasPrefix(i.MimeType, "audio/") {
			label = "Inline Audio"
		}
		if i.Type == InlineThinkingDone {
			label = "Thinking " + label
		}
		size, unit := float64(len(i.Data))/1024, "KB"
		if size >= 1000 {
			size, unit = size/1024, "MB"
		}
		fmt.Fprintf(b, "%s: %s, %.2f %s", label, i.MimeType, size, unit)
		if i.Filename != "" {
			fmt.Fprintf(b, ", %s", i.Filename)
		}
		b.WriteByte('\n')
	case EmbeddingDone:
		var values []string
		for _, f := range i.Embedding[:min(len(i.Embedding), 5)] {
			values = append(values, strconv.FormatFloat(f, 'g', -1, 64))
		}
		fmt.Fprintf(b, "Embedding: [%s]\n", strings.Join(values, ", "))
	case ToolCallDone:
		arguments := indentJSON([]byte(cmp.Or(i.Arguments, "{}")), "  ")
		fmt.Fprintf(b, "Tool Call: %s\n  Arguments: %s\n  Tool Call ID: %s\n", i.Name, arguments, i.ToolCallID)
	case ToolResultDone:
		fmt.Fprintf(b, "Tool Result (%s): %s\n", i.ToolCallID, i.Text)
		for n, url := range i.Images {
			fmt.Fprintf(b, "  Image %d: %s\n", n+1, url)
		}
	}
}
