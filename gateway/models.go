package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/generatecontent"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// models answers GET /v1/models in a form that the SDKs of OpenAI and of Anthropic read; the latter ask for pages.
func (c *call) models() {
	ids, more, err := page(c.state.listed, c.r.URL.Query())
	if err != nil {
		c.fail(err)
		return
	}
	body := []byte(`{"object":"list","data":[`)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendModel(body, id, c.started)
	}
	body = strconv.AppendBool(append(body, `],"has_more":`...), more)
	first, last := []byte("null"), []byte("null")
	if len(ids) > 0 {
		first, last = jsonscan.AppendString(nil, ids[0]), jsonscan.AppendString(nil, ids[len(ids)-1])
	}
	c.json(http.StatusOK, fmt.Appendf(body, `,"first_id":%s,"last_id":%s}`, first, last))
}

// page returns the part of the list that limit, after_id and before_id ask for, and whether it goes on in their direction.
func page(ids []string, query url.Values) (page []string, more bool, err error) {
	if after := query.Get("after_id"); after != "" {
		if i := slices.Index(ids, after); i >= 0 {
			ids = ids[i+1:]
		}
	}
	before := query.Get("before_id")
	if i := slices.Index(ids, before); i >= 0 {
		ids = ids[:i]
	}
	text := query.Get("limit")
	if text == "" {
		return ids, false, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 {
		return nil, false, &mmsp.InvalidRequestError{Param: "limit", Message: "a number of 1 or more is wanted"}
	}
	switch {
	case len(ids) <= limit:
		return ids, false, nil
	case before != "":
		return ids[len(ids)-limit:], true, nil
	}
	return ids[:limit], true, nil
}

// oneModel answers GET /v1/models/{id}, whose id may hold slashes, escaped or not.
func (c *call) oneModel() {
	id, err := url.PathUnescape(strings.TrimPrefix(c.r.URL.EscapedPath(), "/v1/models/"))
	if _, ok := c.state.row(id); err != nil || !ok {
		c.fail(unknownModel(id, "/v1/models"))
		return
	}
	c.json(http.StatusOK, appendModel(nil, id, c.started))
}

func unknownModel(id, list string) error {
	return &mmsp.NotFoundError{Message: fmt.Sprintf("the model %.200q does not exist; GET %s lists those that do", id, list)}
}

func appendModel(dst []byte, id string, started time.Time) []byte {
	quoted := jsonscan.AppendString(nil, id)
	return fmt.Appendf(dst, `{"id":%s,"object":"model","type":"model","display_name":%s,"created":%d,"created_at":"%s","owned_by":"mmsp"}`,
		quoted, quoted, started.Unix(), started.UTC().Format(time.RFC3339))
}

// geminiModels answers GET /v1beta/models, and the same of one model.
func (c *call) geminiModels() {
	told := func(id string, r *row) generatecontent.Model {
		return generatecontent.Model{ID: id, Embeds: r.client.Embeds(), InputTokens: r.context}
	}
	path := strings.TrimPrefix(c.r.URL.Path, "/v1beta/")
	if path == "models" {
		var models []generatecontent.Model
		for _, id := range c.state.listed {
			if r, ok := c.state.row(id); ok {
				models = append(models, told(id, r))
			}
		}
		body, err := generatecontent.AppendModels(nil, models, c.r.URL.Query())
		if err != nil {
			c.fail(err)
			return
		}
		c.json(http.StatusOK, body)
		return
	}
	id := strings.TrimPrefix(path, "models/")
	r, ok := c.state.row(id)
	if !ok {
		c.fail(unknownModel(id, "/v1beta/models"))
		return
	}
	c.json(http.StatusOK, generatecontent.AppendModel(nil, told(id, r)))
}

// modelsError adds to an error what the SDKs of OpenAI and of Anthropic read in one: they ask for models, too.
func modelsError(body []byte, err error) []byte {
	var auth *mmsp.AuthenticationError
	var notFound *mmsp.NotFoundError
	object, ok := bytes.CutSuffix(body, []byte("}}"))
	if !ok || !errors.As(err, &auth) && !errors.As(err, &notFound) {
		return body
	}
	_, code := ingress.Explain(err).OpenAI()
	object = jsonscan.AppendString(append(object, `,"param":null,"code":`...), code)
	return append(object, `},"type":"error"}`...)
}
