package anthropic

import (
	"encoding/base64"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// ChunkDecoder takes events out of the chunks that Bedrock sends them in, one after the other into the same memory.
type ChunkDecoder struct {
	scanner jsonscan.Scanner
	event   []byte
}

// Decode returns the event in the payload of a chunk frame, {"bytes":"<base64>"}, valid until the next call. It is empty
// where the chunk holds none.
func (d *ChunkDecoder) Decode(payload []byte) ([]byte, error) {
	s := &d.scanner
	d.event = d.event[:0]
	var err error
	s.Reset(payload)
	for first := true; s.Field(&first); {
		if string(s.Name()) != "bytes" {
			s.Skip()
		} else if d.event, err = base64.StdEncoding.AppendDecode(d.event[:0], s.Bytes()); err != nil {
			return nil, err
		}
	}
	return d.event, s.End()
}
