package conformance

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/anthropic_official"
)

// bedrock is Messages in the frames of an AWS event stream.
var bedrock = protocol{terminal: messages.terminal, failed: messages.failed, finish: messages.finish}

// newBedrock builds the client of a region that is reached at another address.
func newBedrock(o mmsp.Options) (*anthropicofficial.Client, error) {
	address := o.BaseURL
	o.BaseURL, o.APIKey = "bedrock://us-east-1", mmsp.NewSecret("access,secret")
	o.Getenv = func(name string) string { return map[string]string{"ANTHROPIC_BEDROCK_BASE_URL": address}[name] }
	return anthropicofficial.New(o)
}

// framed is a recording as AWS sent it; nil where it came another way.
func (r *recording) framed(tb testing.TB, folder string) *recording {
	tb.Helper()
	body, err := os.ReadFile(filepath.Join(folder, "stream.eventstream"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		tb.Fatal(err)
	}
	raw := *r
	raw.path, raw.protocol, raw.body, raw.events = r.path+"/stream.eventstream", &bedrock, body, frameEvents(tb, body)
	return &raw
}

// frameEvents reads a stream with nothing but the lengths of its frames.
func frameEvents(tb testing.TB, body []byte) (events []wireEvent) {
	tb.Helper()
	for end := 0; end < len(body); {
		frame := body[end:]
		total, headers := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])
		end += int(total)
		var chunk struct{ Bytes []byte }
		o := object{"type": "error"} // a frame that holds no event reports a failure
		if err := json.Unmarshal(frame[12+headers:total-4], &chunk); err != nil {
			tb.Fatal(err)
		}
		if chunk.Bytes != nil {
			o = nil
			if err := json.Unmarshal(chunk.Bytes, &o); err != nil {
				tb.Fatal(err)
			}
		}
		events = append(events, wireEvent{o, end})
	}
	return events
}
