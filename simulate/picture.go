package simulate

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"strings"
)

// picture is an image that was sent, or the address of one, which is never fetched.
type picture struct {
	url       string
	mediaType string
	size      int // bytes
	width     int // pixels; 0: not known
	height    int
}

// readPicture reads an image URL. It reports false for a data URL that does not hold base64.
func readPicture(url string) (picture, bool) {
	data, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return picture{url: url}, true
	}
	mediaType, data, ok := strings.Cut(data, ";base64,")
	if !ok {
		return picture{}, false
	}
	return decodePicture(mediaType, data)
}

func decodePicture(mediaType, data string) (picture, bool) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return picture{}, false
	}
	p := picture{mediaType: mediaType, size: len(raw)}
	if config, _, err := image.DecodeConfig(bytes.NewReader(raw)); err == nil {
		p.width, p.height = config.Width, config.Height
	}
	return p, true
}

func (p picture) String() string {
	switch {
	case p.url != "":
		return "a picture at " + p.url + ", not fetched"
	case p.width > 0:
		return fmt.Sprintf("%s of %d bytes, %d by %d pixels", p.mediaType, p.size, p.width, p.height)
	default:
		return fmt.Sprintf("%s of %d bytes", p.mediaType, p.size)
	}
}

// tokens is a plausible price: some for every picture and more for a bigger one.
func (p picture) tokens() int { return 85 + min(p.size/1024, 1500) }
