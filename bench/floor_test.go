package bench

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fastjson"
)

// The floor: what the smallest converter by hand would do with the same bytes. It finds the lines, parses each event
// with the fastest well-kept parser and writes the same public events append by append. It checks no grammar, keeps no
// items, and takes no request.
func BenchmarkChatFloor(b *testing.B) {
	stream := chatStream(500)
	var parser fastjson.Parser
	var out, text []byte
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		events, text = 0, text[:0]
		for rest := stream; len(rest) > 0; {
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			payload, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok || payload[0] == '[' {
				continue
			}
			v, err := parser.ParseBytes(payload)
			if err != nil {
				b.Fatal(err)
			}
			content := v.GetStringBytes("choices", "0", "delta", "content")
			if len(content) == 0 {
				continue
			}
			text = append(text, content...)
			out = appendFloorEvent(out[:0], "text.delta", content)
			events++
		}
		out = appendFloorEvent(out[:0], "text.done", text)
		out = append(out, `data: {"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":{"cached_tokens":null,"prompt_tokens":10,"thoughts_tokens":null,"response_tokens":500},"finish_reason":"stop","created_at":`...)
		out = strconv.AppendInt(out, time.Now().UnixMilli(), 10)
		events += 2
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

func appendFloorEvent(dst []byte, kind string, text []byte) []byte {
	dst = append(dst, `data: {"role":"assistant","event_type":"delta","content_items":[{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","text":`...)
	dst = appendFloorString(dst, text)
	dst = append(dst, `}],"usage_metadata":null,"finish_reason":null,"created_at":`...)
	dst = strconv.AppendInt(dst, time.Now().UnixMilli(), 10)
	return append(dst, "}\n\n"...)
}

func appendFloorString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// What encoding/json costs: the same stream into minimal structs and public events through Marshal.
func BenchmarkChatEncodingJSON(b *testing.B) {
	stream := chatStream(500)
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		events = 0
		for rest := stream; len(rest) > 0; {
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			payload, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok || payload[0] == '[' {
				continue
			}
			var chunk struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
					} `json:"delta"`
				} `json:"choices"`
			}
			if err := json.Unmarshal(payload, &chunk); err != nil {
				b.Fatal(err)
			}
			if len(chunk.Choices) == 0 {
				continue
			}
			type item struct {
				Type string `json:"type"`
				Text string `json:"text"`
			}
			if _, err := json.Marshal(struct {
				Role      string  `json:"role"`
				EventType string  `json:"event_type"`
				Items     []item  `json:"content_items"`
				Usage     *int    `json:"usage_metadata"`
				Finish    *string `json:"finish_reason"`
				CreatedAt int64   `json:"created_at"`
			}{"assistant", "delta", []item{{"text.delta", chunk.Choices[0].Delta.Content}}, nil, nil, time.Now().UnixMilli()}); err != nil {
				b.Fatal(err)
			}
			events++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
