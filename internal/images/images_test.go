package images

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

func pngHeader(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	return append(b, make([]byte, 40)...)
}

func gifHeader(version string, w, h uint16) []byte {
	b := []byte("GIF" + version)
	b = binary.LittleEndian.AppendUint16(b, w)
	return binary.LittleEndian.AppendUint16(b, h)
}

func webpHeader(chunk string, body ...byte) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBP" + chunk + "\x00\x00\x00\x00")
	return append(append(b, body...), make([]byte, 20)...)
}

func vp8(w, h uint16) []byte {
	body := []byte{0, 0, 0, 0x9d, 0x01, 0x2a}
	body = binary.LittleEndian.AppendUint16(body, w|0x4000) // the two high bits are a scale, no size
	return webpHeader("VP8 ", binary.LittleEndian.AppendUint16(body, h|0x8000)...)
}

func vp8l(w, h uint32) []byte {
	return webpHeader("VP8L", binary.LittleEndian.AppendUint32([]byte{0x2f}, 1<<28|(h-1)<<14|(w-1))...)
}

func vp8x(w, h uint32) []byte {
	w, h = w-1, h-1
	return webpHeader("VP8X", 0x10, 0, 0, 0, byte(w), byte(w>>8), byte(w>>16), byte(h), byte(h>>8), byte(h>>16))
}

func segment(marker byte, length int) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(length))
	return append(b, make([]byte, length-2)...)
}

func frame(marker byte, w, h uint16) []byte {
	b := []byte{0xff, marker, 0, 17, 8}
	b = binary.BigEndian.AppendUint16(b, h)
	return binary.BigEndian.AppendUint16(b, w)
}

func jpegOf(parts ...[]byte) []byte { return append([]byte("\xff\xd8"), bytes.Join(parts, nil)...) }

func dataURL(data []byte) string {
	return "data:image/x;base64," + base64.StdEncoding.EncodeToString(data)
}

// exif is more metadata than any first window holds: three segments, more than 100 KiB.
func exif() []byte { return bytes.Repeat(segment(0xe1, 60_000), 3) }

func TestNeedsHighDetail(t *testing.T) {
	big := pngHeader(6400, 4832)
	encoded := base64.StdEncoding.EncodeToString(big)
	for _, c := range []struct {
		name, model, url string
		want             bool
	}{
		{"exactly 30,000 patches", "gpt-5.6", dataURL(pngHeader(6400, 4800)), false},
		{"one row of patches more", "gpt-5.6", dataURL(big), true},
		{"one pixel more", "gpt-5.6", dataURL(pngHeader(6400, 4801)), true},
		{"square above", "gpt-5.6", dataURL(pngHeader(5600, 5600)), true},
		{"square below", "gpt-5.6", dataURL(pngHeader(5504, 5504)), false},
		{"scaled strip below", "gpt-5.6", dataURL(pngHeader(131070, 500)), false},
		{"scaled strip above", "gpt-5.6", dataURL(pngHeader(131070, 1500)), true},
		{"scaled upright strip", "gpt-5.6", dataURL(pngHeader(1500, 131070)), true},
		{"strip that only scaling makes small", "gpt-5.6", dataURL(pngHeader(131070, 250)), false},
		// 2048 patches wide: 448.5 pixels, rounded up, take a 15th row (30,720 patches); 448 take 14 (28,672).
		{"half a pixel rounds up", "gpt-5.6", dataURL(pngHeader(131070, 897)), true},
		{"no half pixel", "gpt-5.6", dataURL(pngHeader(131070, 896)), false},
		{"largest PNG", "gpt-5.6", dataURL(pngHeader(1<<31-1, 1<<31-1)), true},

		{"GIF", "gpt-5.6", dataURL(gifHeader("89a", 6400, 4832)), true},
		{"VP8", "gpt-5.6", dataURL(vp8(6400, 4832)), true},
		{"VP8L", "gpt-5.6", dataURL(vp8l(6400, 4832)), true},
		{"VP8X", "gpt-5.6", dataURL(vp8x(6400, 4832)), true},
		{"VP8X below", "gpt-5.6", dataURL(vp8x(6400, 4800)), false},
		{"JPEG", "gpt-5.6", dataURL(jpegOf(frame(0xc0, 6400, 4832))), true},
		{"JPEG behind EXIF", "gpt-5.6", dataURL(jpegOf(exif(), frame(0xc2, 6400, 4832))), true},
		{"JPEG behind EXIF, below", "gpt-5.6", dataURL(jpegOf(exif(), frame(0xc2, 6400, 4800))), false},
		{"JPEG cut in its EXIF", "gpt-5.6", dataURL(jpegOf(exif())), false},

		{"model in capitals", "GPT-5.6-Sol", dataURL(big), true},
		{"model behind a gateway", "openai/gpt-5.6-luna", dataURL(big), true},
		{"another model", "gpt-5.5", dataURL(big), false},
		{"no model", "", dataURL(big), false},

		{"web URL", "gpt-5.6", "https://h.example/big.png", false},
		{"web URL with a comma", "gpt-5.6", "https://h.example/;base64," + encoded, false},
		{"not base64", "gpt-5.6", "data:image/png," + encoded, false},
		{"no picture", "gpt-5.6", dataURL([]byte("a quite ordinary sentence about something else entirely")), false},
		{"empty payload", "gpt-5.6", "data:image/png;base64,", false},
		{"no comma", "gpt-5.6", "data:image/png;base64", false},
		{"base64 in capitals", "gpt-5.6", "data:image/png;BASE64," + encoded, true},
		{"space and more parameters", "gpt-5.6", "data:image/png;a=b; base64 ;c," + encoded, true},
		{"no media type", "gpt-5.6", "data:;base64," + encoded, true},
		{"line breaks", "gpt-5.6", "data:image/png;base64,\r\n" + strings.Join(strings.Split(encoded, ""), "\r\n"), true},
		{"URL-safe alphabet", "gpt-5.6", "data:;base64," + base64.URLEncoding.EncodeToString(jpegOf(frame(0xc0, 6400, 4832))), true},
		{"no padding", "gpt-5.6", "data:;base64," + base64.RawStdEncoding.EncodeToString(gifHeader("87a", 6400, 4832)), true},
	} {
		if got := NeedsHighDetail(c.model, c.url); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestSize(t *testing.T) {
	brokenVP8, brokenVP8L, brokenPNG := vp8(1, 1), vp8l(1, 1), pngHeader(1, 1)
	brokenVP8[23], brokenVP8L[20], brokenPNG[12] = 0, 0, 'X'
	for _, c := range []struct {
		name string
		data []byte
		w, h int // 0: unknown
	}{
		{"PNG", pngHeader(70_000, 3), 70_000, 3},
		{"PNG too large to be one", pngHeader(1<<31, 3), 0, 0},
		{"PNG without IHDR", brokenPNG, 0, 0},
		{"GIF87a", gifHeader("87a", 300, 2), 300, 2},
		{"GIF89a", gifHeader("89a", 2, 65_535), 2, 65_535},
		{"GIF of another year", gifHeader("90a", 2, 3), 0, 0},
		{"VP8", vp8(16_383, 257), 16_383, 257},
		{"VP8 without start code", brokenVP8, 0, 0},
		{"VP8L", vp8l(16_384, 1), 16_384, 1},
		{"VP8L without signature", brokenVP8L, 0, 0},
		{"VP8X", vp8x(1<<24, 66_000), 1 << 24, 66_000},
		{"WebP with another chunk", webpHeader("ANIM", make([]byte, 10)...), 0, 0},
		{"JPEG baseline", jpegOf(segment(0xe0, 16), frame(0xc0, 640, 480)), 640, 480},
		{"JPEG last frame type", jpegOf(frame(0xcf, 640, 480)), 640, 480},
		{"JPEG with EXIF", jpegOf(exif(), frame(0xc2, 640, 480)), 640, 480},
		{"JPEG tables are no frames", jpegOf(segment(0xc4, 20), segment(0xc8, 20), segment(0xcc, 20), frame(0xc1, 640, 480)), 640, 480},
		{"JPEG fill bytes", jpegOf([]byte("\xff\xff\xff"), frame(0xc0, 640, 480)), 640, 480},
		{"JPEG markers without length", jpegOf([]byte("\xff\x01\xff\xd8\xff\xd0\xff\xd7"), frame(0xc0, 640, 480)), 640, 480},
		{"JPEG scan first", jpegOf(segment(0xda, 12), frame(0xc0, 640, 480)), 0, 0},
		{"JPEG end first", jpegOf([]byte("\xff\xd9"), frame(0xc0, 640, 480)), 0, 0},
		{"JPEG stray byte", jpegOf(segment(0xe0, 16), []byte{0}, frame(0xc0, 640, 480)), 0, 0},
		{"JPEG segment without length", jpegOf([]byte("\xff\xe0\x00\x00"), frame(0xc0, 640, 480)), 0, 0},
		{"nothing", nil, 0, 0},
		{"BMP", append([]byte("BM"), make([]byte, 60)...), 0, 0},
	} {
		if w, h, ok := Size(c.data); w != c.w || h != c.h || ok != (c.w > 0) {
			t.Errorf("%s: got %d x %d, %v", c.name, w, h, ok)
		}
	}
}

// Every prefix of a header is unknown, never a wrong size.
func TestSizeOfPrefixes(t *testing.T) {
	for _, data := range [][]byte{
		pngHeader(5, 7), gifHeader("89a", 5, 7), vp8(5, 7), vp8l(5, 7), vp8x(5, 7), jpegOf(segment(0xe0, 16), frame(0xc0, 5, 7)),
	} {
		for n := range data {
			if w, h, ok := Size(data[:n]); ok && (w != 5 || h != 7) {
				t.Errorf("%q: got %d x %d", data[:n], w, h)
			}
		}
		if _, _, ok := Size(data); !ok {
			t.Errorf("%q: unknown", data)
		}
	}
}

// The standard library's encoders agree with the hand-made headers.
func TestEncodedPictures(t *testing.T) {
	picture := image.NewPaletted(image.Rect(0, 0, 37, 11), color.Palette{color.Black, color.White})
	var asPNG, asGIF, asJPEG bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, picture), gif.Encode(&asGIF, picture, nil), jpeg.Encode(&asJPEG, picture, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for want, b := range map[string]*bytes.Buffer{"image/png": &asPNG, "image/gif": &asGIF, "image/jpeg": &asJPEG} {
		w, h, ok := Size(b.Bytes())
		if got := Sniff(b.Bytes()); got != want || w != 37 || h != 11 || !ok {
			t.Errorf("%s: got %q, %d x %d, %v", want, got, w, h, ok)
		}
	}
}

func TestParseDataURL(t *testing.T) {
	for _, c := range []struct {
		url, mediaType, payload string
		ok                      bool
	}{
		{"data:image/png;base64,QUI=", "image/png", "QUI=", true},
		{"data:Image/PNG; Base64,QUI=,rest", "image/png", "QUI=,rest", true},
		{"data:application/pdf;name=a.pdf;base64,QUI", "application/pdf", "QUI", true},
		{"data:;base64,", "", "", true},
		{"data:base64,QUI=", "", "", false},
		{"data:text/plain,base64", "", "", false},
		{"data:text/plain;charset=base64,QUI=", "", "", false},
		{"data:image/png;base64", "", "", false},
		{"https://h.example/data:image/png;base64,QUI=", "", "", false},
		{"", "", "", false},
	} {
		if mediaType, payload, ok := ParseDataURL(c.url); mediaType != c.mediaType || payload != c.payload || ok != c.ok {
			t.Errorf("%q: got %q, %q, %v", c.url, mediaType, payload, ok)
		}
	}
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"QUJD":             "ABC",
		"QUI=":             "AB",
		"QUI":              "AB",
		"QQ==":             "A",
		"Q":                "",
		"QUJDR":            "ABC",
		" Q\r\nU\tJ*D é":   "ABC",
		"-_+/":             "\xfb\xff\xbf",
		"====":             "",
		"QR":               "A", // bits left over
		"Q\x00U\xffJ\x80D": "ABC",
	} {
		if got := string(Decode(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSniff(t *testing.T) {
	for want, data := range map[string]string{
		"image/png":  "\x89PNG\r\n\x1a\n",
		"image/jpeg": "\xff\xd8\xff\xe0",
		"image/gif":  "GIF89a",
		"image/webp": "RIFF....WEBPVP8 ",
	} {
		if got := Sniff([]byte(data)); got != want {
			t.Errorf("%q: got %q", data, got)
		}
		if got := Sniff([]byte(" " + data)); got != "" {
			t.Errorf("%q behind a space: got %q", data, got)
		}
	}
	for _, data := range []string{"", "RIFF....WAVE", "<svg>", "<!doctype html>", "%PDF-1.7", "\xff\xd8"} {
		if got := Sniff([]byte(data)); got != "" {
			t.Errorf("%q: got %q", data, got)
		}
	}
}

// A size once found is the size of the whole, and no input panics.
func FuzzSize(f *testing.F) {
	for _, seed := range [][]byte{
		pngHeader(5, 7), gifHeader("89a", 5, 7), vp8(5, 7), vp8l(5, 7), vp8x(5, 7),
		jpegOf(segment(0xe1, 200), frame(0xc0, 5, 7)), jpegOf([]byte("\xff\xff\xff\x01"), segment(0xc4, 9)),
	} {
		f.Add(seed, uint16(20))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		w, h, ok := Size(data)
		if w < 0 || h < 0 || (!ok && w|h != 0) {
			t.Fatalf("%d x %d, %v", w, h, ok)
		}
		prefix := data[:min(int(cut), len(data))]
		if pw, ph, pok := Size(prefix); pok && (!ok || pw != w || ph != h) {
			t.Fatalf("prefix %d x %d, whole %d x %d, %v", pw, ph, w, h, ok)
		}
		url := dataURL(data)
		if got, want := NeedsHighDetail("gpt-5.6", url), ok && patches(w, h) > maxPatches; got != want {
			t.Fatalf("through the data URL: got %v, want %v", got, want)
		}
		_, payload, _ := ParseDataURL(url)
		if !bytes.Equal(Decode(payload), data) {
			t.Fatal("the data URL does not give the bytes back")
		}
	})
}
