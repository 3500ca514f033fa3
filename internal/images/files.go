package images

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// DataURL returns the data URL of a file.
func DataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// NamedURL returns the data URL of a document. Its name, for which a tool result has no other place, is the parameter name;
// TakeName takes it out.
func NamedURL(mediaType, name string, data []byte) string {
	if name != "" && !strings.HasPrefix(mediaType, "image/") {
		mediaType += ";name=" + url.PathEscape(name)
	}
	return DataURL(mediaType, data)
}

// TakeName returns a data URL without the name of the document, and the name; empty where it has none.
func TakeName(dataURL string) (bare, name string) {
	header, payload, ok := strings.Cut(dataURL, ",")
	before, rest, named := strings.Cut(header, ";name=")
	if !ok || !named || !strings.HasPrefix(header, "data:") {
		return dataURL, ""
	}
	escaped, after, more := strings.Cut(rest, ";")
	if more {
		before += ";" + after
	}
	name, _ = url.PathUnescape(escaped) // else it is none
	return before + "," + payload, name
}

// endings tell providers what a document is.
var endings = map[string]string{
	"application/pdf":  ".pdf",
	"application/json": ".json",
	"application/xml":  ".xml",
	"text/csv":         ".csv",
	"text/html":        ".html",
	"text/markdown":    ".md",
	"text/plain":       ".txt",
	"text/xml":         ".xml",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
}

// Ending returns how the names of documents of a media type end, such as ".pdf"; empty where that is not known.
func Ending(mediaType string) string {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	return endings[mediaType]
}

// FileName returns the name of a document or, where it has none, one that tells its media type.
func FileName(name, mediaType string) string {
	if name != "" {
		return name
	}
	return "document" + Ending(mediaType)
}

// mediaTypes are what the endings of names tell.
var mediaTypes = map[string]string{
	".csv":  "text/csv",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".htm":  "text/html",
	".html": "text/html",
	".json": "application/json",
	".md":   "text/markdown",
	".mp3":  "audio/mpeg",
	".pdf":  "application/pdf",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".txt":  "text/plain",
	".wav":  "audio/wav",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xml":  "text/xml",
}

// Unknown is the media type of bytes that nobody knows.
const Unknown = "application/octet-stream"

// TypeOf guesses the media type of a file by the ending of its name, else by its bytes.
func TypeOf(name string, data []byte) string {
	if mediaType := mediaTypes[strings.ToLower(path.Ext(name))]; mediaType != "" {
		return mediaType
	}
	mediaType, _, _ := strings.Cut(http.DetectContentType(bytes.TrimPrefix(data, []byte("\ufeff"))), ";")
	return mediaType
}
