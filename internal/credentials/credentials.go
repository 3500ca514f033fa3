// Package credentials decides which key goes to which endpoint. Every client construction passes through Resolve, so
// that the rule stands in one place: a credential is used only where it was given for, and a general key of the
// environment goes only to the endpoint the environment names, or to the vendor's own.
package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/prism-shadow/mmsp-go"
)

// Rule is what one client asks of its key and its base URL. The zero flags are the strict rule: a base URL in the
// options needs a key in the options, and there is always a key.
type Rule struct {
	Class      string // class name for error texts, e.g. "OpenaiChatClient"
	KeyVar     string // environment variable of the key
	URLVar     string // environment variable of the base URL
	DefaultURL string // the vendor's endpoint

	Lenient     bool // the key variable is this client's own: read it whatever base URL is given
	OpenServer  bool // a base URL without a key is allowed and gets no key, not even the environment's
	KeyOptional bool // neither key nor base URL given and no key in the environment: no key, no error
	KeyDocument bool // the key may be a JSON document (a service account), whose line breaks are no fault
}

// Resolve returns the key (zero where the rule allows none) and the base URL, without a trailing slash, that a client
// built from o uses. A bedrock:// URL comes back as it was written. Empty strings count as absent. Errors name the
// variable or option at fault and never show its value.
func Resolve(o *mmsp.Options, r Rule) (key mmsp.Secret, baseURL string, err error) {
	key, keyFrom := o.APIKey, "api_key"
	if key.IsZero() && (o.BaseURL == "" || r.Lenient) {
		key, keyFrom = mmsp.NewSecret(o.Env(r.KeyVar)), r.KeyVar
	}
	switch {
	case !key.IsZero():
		document := r.KeyDocument && strings.HasPrefix(key.Reveal(), "{")
		if strings.ContainsFunc(key.Reveal(), func(c rune) bool {
			return unicode.IsControl(c) && !(document && strings.ContainsRune("\r\n\t", c))
		}) {
			return mmsp.Secret{}, "", fmt.Errorf("%s for %s contains control characters or line breaks", keyFrom, r.Class)
		}
	case o.BaseURL == "" && r.KeyOptional, o.BaseURL != "" && r.OpenServer:
		// No key, as the rule allows.
	case o.BaseURL != "" && !r.Lenient:
		return mmsp.Secret{}, "", fmt.Errorf(
			"an api_key is required for %s when a base_url is given: %s goes only to the endpoint the environment names",
			r.Class, r.KeyVar)
	default:
		//lint:ignore ST1005 the text, full stop included, is the one every implementation of the protocol gives
		return mmsp.Secret{}, "", fmt.Errorf("%s is required for %s.", r.KeyVar, r.Class)
	}

	urlFrom := "base_url"
	if o.BaseURL == "" {
		urlFrom = r.URLVar
	}
	if baseURL, err = checkURL(cmp.Or(o.BaseURL, o.Env(r.URLVar), r.DefaultURL)); err != nil {
		return mmsp.Secret{}, "", fmt.Errorf("%s for %s %w", urlFrom, r.Class, err)
	}
	return key, baseURL, nil
}

// checkURL takes the trailing slashes off an endpoint, or says what is wrong with it. url.Parse's own error quotes the
// URL, userinfo included, and is therefore not passed on.
func checkURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	bedrock := strings.HasPrefix(raw, "bedrock://")
	switch {
	case err != nil:
		return "", errors.New("is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https" && !bedrock:
		return "", errors.New("must be an http or https URL")
	case u.User != nil:
		return "", errors.New("must not carry a user name or password; give the key as the api_key")
	case u.Hostname() == "":
		return "", errors.New("names no host")
	case strings.ContainsAny(raw, "?#"): // paths are appended to a base URL
		return "", errors.New("must not have a query or fragment")
	case bedrock:
		return raw, nil
	}
	return strings.TrimRight(raw, "/"), nil
}
