// Package images reads what a client must know of a picture without decoding it: the format, the size in pixels, and
// the parts of a data URL. It also knows what documents are called. Input is untrusted: headers may be cut, payloads may
// hold stray characters, and of a large payload only as much is decoded as the header takes.
package images

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
)

const (
	patchSide  = 32     // pixels
	maxSide    = 65_535 // pixels; a longer side is scaled down to it before patches are counted
	maxPatches = 30_000
)

// NeedsHighDetail reports whether an image must be sent with detail "high": GPT-5.6 refuses pictures of more than
// 30,000 patches of 32x32 pixels at any other detail. Only base64 data URLs are measured, and an unreadable picture
// counts as small.
func NeedsHighDetail(model, url string) bool {
	if !strings.Contains(strings.ToLower(model), "gpt-5.6") {
		return false
	}
	w, h, ok := URLSize(url)
	return ok && patches(w, h) > maxPatches
}

// URLSize returns the width and height in pixels of the picture in a base64 data URL, decoding no more than its header
// takes. ok is false for any other URL, and for what is no picture.
func URLSize(url string) (w, h int, ok bool) {
	_, payload, ok := ParseDataURL(url)
	if !ok {
		return 0, 0, false
	}
	return payloadSize(payload)
}

func patches(w, h int) int64 {
	width, height := int64(w), int64(h)
	if longest := max(width, height); longest > maxSide {
		scale := func(side int64) int64 { return (2*side*maxSide + longest) / (2 * longest) } // half up
		width, height = scale(width), scale(height)
	}
	return ((width + patchSide - 1) / patchSide) * ((height + patchSide - 1) / patchSide)
}

// payloadSize decodes 64 characters, which hold every header but JPEG's: its frame header may stand behind hundreds of
// KiB of metadata, so the window grows until the size is found or the payload ends.
func payloadSize(payload string) (w, h int, ok bool) {
	for window := 64; ; window *= 4 {
		data := decode(payload, window)
		w, h, ok = Size(data)
		if ok || !bytes.HasPrefix(data, []byte("\xff\xd8")) || len(data) < window/4*3 {
			return w, h, ok
		}
	}
}

// ParseDataURL splits a base64 data URL into its media type, lower-cased and without parameters (empty if the URL names
// none), and its payload as it stands; Decode reads the latter. ok is false for any other URL.
func ParseDataURL(url string) (mediaType, base64Payload string, ok bool) {
	header, payload, comma := strings.Cut(url, ",")
	header, scheme := strings.CutPrefix(header, "data:")
	if !comma || !scheme {
		return "", "", false
	}
	mediaType, params, _ := strings.Cut(header, ";")
	for param := range strings.SplitSeq(params, ";") {
		if strings.EqualFold(strings.TrimSpace(param), "base64") {
			return strings.ToLower(strings.TrimSpace(mediaType)), payload, true
		}
	}
	return "", "", false
}

// Decode reads a base64 payload, standard or URL-safe, skipping characters outside the alphabet. Padding is not needed,
// and a lone last character, which is less than a byte, is dropped.
func Decode(payload string) []byte { return decode(payload, len(payload)) }

// decode stops after limit characters of the alphabet.
func decode(payload string, limit int) []byte {
	clean := make([]byte, 0, min(limit, len(payload)))
	for i := 0; i < len(payload) && len(clean) < limit; i++ {
		switch c := payload[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
			clean = append(clean, c)
		case c == '-':
			clean = append(clean, '+')
		case c == '_':
			clean = append(clean, '/')
		}
	}
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	n, _ := base64.RawStdEncoding.Decode(clean, clean) // in place: the reader is ahead of the writer, and never fails
	return clean[:n]
}

// Sniff returns the media type that the first bytes of data show: image/png, image/jpeg, image/gif, image/webp, or ""
// for anything else.
func Sniff(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// Size returns the width and height in pixels that the header of a PNG, GIF, WebP or JPEG names. data may be the
// beginning of the picture only; ok is false for as long as the header is not in it.
func Size(data []byte) (w, h int, ok bool) {
	switch Sniff(data) {
	case "image/png":
		if len(data) < 24 || string(data[12:16]) != "IHDR" {
			return 0, 0, false
		}
		width, height := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
		if max(width, height) > math.MaxInt32 { // PNG allows no more
			return 0, 0, false
		}
		return int(width), int(height), true
	case "image/gif":
		if len(data) < 10 {
			return 0, 0, false
		}
		return int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:])), true
	case "image/webp":
		return webpSize(data)
	case "image/jpeg":
		return jpegSize(data)
	}
	return 0, 0, false
}

func webpSize(data []byte) (w, h int, ok bool) {
	if len(data) < 30 {
		return 0, 0, false
	}
	switch string(data[12:16]) {
	case "VP8 ": // lossy: a key frame's start code, then 14 bits each
		if string(data[23:26]) != "\x9d\x01\x2a" {
			return 0, 0, false
		}
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[28:]) & 0x3fff), true
	case "VP8L": // lossless: a signature byte, then 14 bits each, less one
		if data[20] != 0x2f {
			return 0, 0, false
		}
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X": // extended: the canvas, 24 bits each, less one
		return int(uint24(data[24:])) + 1, int(uint24(data[27:])) + 1, true
	}
	return 0, 0, false
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// jpegSize walks the segments up to the frame header.
func jpegSize(data []byte) (w, h int, ok bool) {
	for pos := 2; pos+4 <= len(data) && data[pos] == 0xff; {
		switch marker := data[pos+1]; {
		case marker == 0xff: // fill byte
			pos++
		case marker == 0x01, marker == 0xd8, 0xd0 <= marker && marker <= 0xd7: // without length
			pos += 2
		case marker == 0xd9, marker == 0xda: // the picture's data without a frame header before it
			return 0, 0, false
		case 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if pos+9 > len(data) {
				return 0, 0, false
			}
			return int(binary.BigEndian.Uint16(data[pos+7:])), int(binary.BigEndian.Uint16(data[pos+5:])), true
		default:
			pos += 2 + int(binary.BigEndian.Uint16(data[pos+2:]))
		}
	}
	return 0, 0, false
}
