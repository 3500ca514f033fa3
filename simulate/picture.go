package simulate

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	"image/png"
	"math"
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

const paintingTokens = 258 // what a small picture costs

// paintPicture makes a PNG of 16 by 16 pixels whose colours come from the text.
func paintPicture(text string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text))
	sum := hash.Sum32()
	const size = 16
	picture := image.NewNRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		x, y := i%size, i/size
		picture.SetNRGBA(x, y, color.NRGBA{uint8(sum) + uint8(8*x), uint8(sum>>8) + uint8(8*y), uint8(sum >> 16), 255})
	}
	var b bytes.Buffer
	_ = png.Encode(&b, picture)
	return b.String()
}

const (
	speechRate  = 24_000              // samples of 16 bits in a second
	speechChunk = speechRate / 25 * 2 // bytes of 40 ms, which cost a token
)

// sound makes speech of a text: a tone of 40 ms for each of its words, ten at least and a hundred at most.
func sound(text string) string {
	words := words(text)
	var b strings.Builder
	for i := range min(max(len(words), 10), 100) {
		pitch := 220.0
		if i < len(words) {
			pitch += 20 * float64(len(words[i])%20)
		}
		for n := range speechChunk / 2 {
			sample := int16(8000 * math.Sin(2*math.Pi*pitch*float64(n)/speechRate))
			b.Write([]byte{byte(sample), byte(sample >> 8)})
		}
	}
	return b.String()
}
