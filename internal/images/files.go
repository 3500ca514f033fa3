package images

import (
	"encoding/base64"
	"strings"
)

// DataURL returns the data URL of a file.
func DataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
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

// FileName returns the name of a document or, where it has none, one that tells its media type.
func FileName(name, mediaType string) string {
	if name != "" {
		return name
	}
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	return "document" + endings[mediaType]
}
