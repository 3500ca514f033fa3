// Package fetch downloads what a request names by URL: the pictures that a client must inline, and files. The URLs come
// from callers, so a fetch is kept away from every address that is not public, checked at the moment of connecting, on
// each redirect anew, and is bounded in size and time. It sends no cookie, credential or referer and uses no proxy.
package fetch

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/prism-shadow/mmsp-go/internal/images"
)

const (
	maxRedirects   = 3
	maxURLBytes    = 8 << 10
	maxHeaderBytes = 64 << 10
)

// Options bounds a Fetcher. A zero field means its default.
type Options struct {
	AllowPrivate bool          // connect to any address, private, loopback and metadata addresses included
	MaxBytes     int64         // of one download, decompressed; default 20 MiB
	Timeout      time.Duration // of one download, redirects included; default 20 s
}

// Fetcher downloads pictures and files. It holds no connection between calls and is safe for concurrent use.
type Fetcher struct {
	opts    Options
	blocked func(netip.Addr) bool
}

// New returns a Fetcher; it needs no closing.
func New(opts Options) *Fetcher {
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 20<<20)
	opts.Timeout = cmp.Or(opts.Timeout, 20*time.Second)
	blocked := Blocked
	if opts.AllowPrivate {
		blocked = func(netip.Addr) bool { return false }
	}
	return &Fetcher{opts, blocked}
}

// Error is every failure of a fetch. It shows nothing of the network behind the address: no resolved address, no
// resolver, no redirect target.
type Error struct {
	Wanted string // image or file
	URL    string // as asked for, without user name, password, query and fragment; empty if it is no URL
	Reason string

	ctxErr error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Wanted, cmp.Or(e.URL, "URL"), e.Reason)
}

// Unwrap returns context.Canceled or context.DeadlineExceeded if the caller's context ended, else nil.
func (e *Error) Unwrap() error { return e.ctxErr }

var errBlocked = errors.New("the address is not public")

// What the pictures of one request may come to. A URL is short, and what is behind it is not.
const (
	maxPictures = 512
	allPictures = 128 << 20 // bytes, unless one may have more
)

// fetched counts the pictures of one request.
type fetched struct {
	pictures int
	bytes    int64
}

type fetchedKey struct{}

// ForRequest returns a context in which Image bounds the pictures of one request together. It is for one goroutine.
func ForRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, fetchedKey{}, &fetched{})
}

// Image downloads the PNG, JPEG, GIF or WebP picture at an http or https URL and returns it as a base64 data URL, its
// media type taken from the bytes. The error is an *Error. A caller whose ctx ends gets its answer, and the server its
// closed connection, at once.
func (f *Fetcher) Image(ctx context.Context, rawURL string) (dataURL string, err error) {
	all, _ := ctx.Value(fetchedKey{}).(*fetched)
	if all == nil {
		all = &fetched{}
	}
	if all.pictures++; all.pictures > maxPictures {
		return "", &Error{Wanted: "image", Reason: fmt.Sprintf("at most %d pictures are fetched for a request", maxPictures)}
	}
	got, shown, err := f.get(ctx, rawURL, "image/png, image/jpeg, image/gif, image/webp")
	if err != nil {
		return "", failure(ctx, "image", shown, err)
	}
	limit := max(allPictures, f.opts.MaxBytes)
	if all.bytes += int64(len(got.data)); all.bytes > limit {
		return "", &Error{Wanted: "image", URL: shown, Reason: fmt.Sprintf("the pictures of the request are larger than %d bytes together", limit)}
	}
	mediaType := images.Sniff(got.data)
	if mediaType == "" {
		return "", &Error{Wanted: "image", URL: shown, Reason: "is no picture (PNG, JPEG, GIF or WebP)"}
	}
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(got.data), nil
}

// File downloads the file of any kind at an http or https URL. Its media type is what the server says or, where the server
// does not know, what the name or the bytes tell; which types can be sent on is for a client to judge. The name is made of
// what the server or the address calls the file, and may be empty. The error is as of Image.
func (f *Fetcher) File(ctx context.Context, rawURL string) (data []byte, mediaType, name string, err error) {
	got, shown, err := f.get(ctx, rawURL, "*/*")
	if err != nil {
		return nil, "", "", failure(ctx, "file", shown, err)
	}
	name = got.name()
	mediaType, _, _ = mime.ParseMediaType(got.header.Get("Content-Type"))
	// Servers that do not know say so in several ways.
	if !strings.Contains(mediaType, "/") || strings.HasSuffix(mediaType, "/octet-stream") || strings.HasSuffix(mediaType, "download") {
		mediaType = images.TypeOf(name, got.data)
	}
	switch {
	case len(got.data) == 0:
		return nil, "", "", &Error{Wanted: "file", URL: shown, Reason: "is empty"}
	case mediaType == images.Unknown:
		return nil, "", "", &Error{Wanted: "file", URL: shown, Reason: "is of no known type"}
	}
	// Providers go by the endings of names; texts may have many.
	if ending, has := images.Ending(mediaType), path.Ext(name); name != "" && has != ending && (has == "" || !strings.HasPrefix(mediaType, "text/")) {
		name += ending
	}
	return got.data, mediaType, name, nil
}

// failure makes the error of a fetch of a reason.
func failure(ctx context.Context, wanted, shown string, reason error) error {
	e := &Error{Wanted: wanted, URL: shown, Reason: reason.Error(), ctxErr: ctx.Err()}
	if e.ctxErr != nil {
		e.Reason = e.ctxErr.Error()
	}
	return e
}

// answer is what a server sent.
type answer struct {
	data   []byte
	header http.Header
	path   string // of the address in the end
}

// maxNameBytes is how much of a file's name is kept: its end.
const maxNameBytes = 128

// name returns what the server or, where it has no word, the address calls the file.
func (a *answer) name() string {
	_, params, _ := mime.ParseMediaType(a.header.Get("Content-Disposition"))
	name := path.Base(strings.ReplaceAll(cmp.Or(params["filename"], a.path), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if name == "." || name == ".." || name == "/" {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(name[max(0, len(name)-maxNameBytes):], ""))
}

// get returns what is behind rawURL, and rawURL as an error may show it. Its own errors are reasons.
func (f *Fetcher) get(ctx context.Context, rawURL, accept string) (got *answer, shown string, err error) {
	if len(rawURL) > maxURLBytes {
		return nil, "", fmt.Errorf("is longer than %d bytes", maxURLBytes)
	}
	target, err := url.Parse(rawURL)
	if err != nil { // its text quotes the URL
		return nil, "", errors.New("is not a valid URL")
	}
	shown = (&url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}).String()

	ctx, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	transport := f.transport(ctx)
	for range maxRedirects + 1 {
		switch {
		case target.Scheme != "http" && target.Scheme != "https":
			return nil, shown, errors.New("only http and https URLs are fetched")
		case target.User != nil:
			return nil, shown, errors.New("a URL with a user name or password is not fetched")
		case target.Hostname() == "":
			return nil, shown, errors.New("names no host")
		}
		req := (&http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: http.Header{
			"Accept":     {accept},
			"User-Agent": {"mmsp-go"},
		}}).WithContext(ctx)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, shown, f.reason(ctx, err)
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
				return nil, shown, errors.New("comes in an encoding that was not asked for")
			}
			if resp.ContentLength > f.opts.MaxBytes {
				return nil, shown, f.tooLarge()
			}
			data, err := io.ReadAll(io.LimitReader(resp.Body, f.opts.MaxBytes+1))
			if int64(len(data)) > f.opts.MaxBytes {
				return nil, shown, f.tooLarge()
			}
			if err != nil {
				return nil, shown, f.reason(ctx, err)
			}
			return &answer{data, resp.Header, target.Path}, shown, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
			http.StatusPermanentRedirect:
			if target, err = resp.Location(); err != nil {
				return nil, shown, errors.New("the server redirects without a valid location")
			}
		default:
			return nil, shown, fmt.Errorf("the server answered with status %d", resp.StatusCode)
		}
	}
	return nil, shown, fmt.Errorf("more than %d redirects", maxRedirects)
}

// transport serves one call: its connections are opened under the call's context and die with it.
func (f *Fetcher) transport(ctx context.Context) *http.Transport {
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		// The address is the resolved one, so that no name can be public when checked and private when used.
		if ap, err := netip.ParseAddrPort(address); err != nil || f.blocked(ap.Addr()) {
			return errBlocked
		}
		return nil
	}}
	return &http.Transport{
		Proxy:                  nil, // whatever the environment says: a proxy would connect without the check
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { conn.Close() })
			}
			return conn, err
		},
	}
}

func (f *Fetcher) tooLarge() error { return fmt.Errorf("is larger than %d bytes", f.opts.MaxBytes) }

// reason says what a caller may know of a network failure.
func (f *Fetcher) reason(ctx context.Context, err error) error {
	var unknownHost *net.DNSError
	switch {
	case errors.Is(err, errBlocked):
		return errBlocked
	case ctx.Err() != nil:
		return fmt.Errorf("no complete answer within %v", f.opts.Timeout)
	case errors.As(err, &unknownHost):
		return errors.New("the host name does not resolve")
	}
	return errors.New("the connection failed")
}
