package mmsp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// floors says what each folder may import of this module, "*" meaning everything. A pattern that ends in "/" stands
// for the folders below it, one at a time: a client may not import another.
var floors = []struct {
	folder  string
	imports []string
}{
	{"internal/jsonscan", nil},
	{"internal/sse", nil},
	{"internal/images", nil},
	{"internal/awsevents", nil},
	{"internal/wiregrammar", []string{"internal/jsonscan"}},
	{"wire/", []string{"internal/jsonscan"}},
	{"", []string{"internal/jsonscan"}}, // the module root
	{"internal/upstream", []string{""}},
	{"internal/credentials", []string{""}},
	{"internal/fetch", []string{"internal/images"}},
	{"internal/failure", []string{"", "internal/jsonscan", "internal/upstream"}},
	{"internal/modellist", []string{"", "internal/jsonscan", "internal/failure", "internal/upstream"}},
	{"internal/tokens", []string{"", "internal/jsonscan", "internal/failure", "internal/images", "internal/upstream"}},
	{"clients/openai_chat_vllm_adapter", []string{"", "wire/", "clients/openai_chat"}},
	{"clients/", []string{
		"", "wire/", "internal/jsonscan", "internal/sse", "internal/upstream", "internal/credentials", "internal/failure",
		"internal/fetch", "internal/images", "internal/modellist", "internal/tokens", "internal/awsevents",
	}},
	{"internal/carry", []string{"", "internal/jsonscan"}},
	{"ingress", []string{"", "internal/carry", "internal/jsonscan"}},
	{"ingress/ingresstest", []string{"", "ingress"}},
	{"ingress/responses", []string{"", "ingress", "internal/carry", "internal/images", "internal/jsonscan", "wire/openairesponses"}},
	{"ingress/chat", []string{"", "ingress", "internal/carry", "internal/images", "internal/jsonscan", "wire/openaichat"}},
	{"ingress/messages", []string{"", "ingress", "internal/carry", "internal/jsonscan", "wire/anthropic"}},
	{"ingress/generatecontent", []string{"", "ingress", "internal/carry", "internal/jsonscan", "wire/genai"}},
	{"ingress/embeddings", []string{"", "ingress", "internal/carry", "internal/jsonscan", "wire/openaiembedding"}},
	{"auto", []string{"", "clients/"}},
	{"registry", nil},
	{"simulate", []string{"", "wire/", "internal/jsonscan", "internal/sse"}},
	{"gateway/metrics", nil},
	{"gateway/config", []string{""}},
	{"gateway", []string{"", "auto", "registry", "gateway/", "ingress", "ingress/", "internal/carry", "internal/jsonscan", "internal/tokens", "internal/upstream"}},
	{"cmd/mmsp", []string{"*"}},
	{"conformance", []string{"*"}},
	{"live", nil}, // tests alone
}

// TestArchitecture keeps docs/architecture.md true: the imports of the code, tests aside, go downwards only.
func TestArchitecture(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/prism-shadow/mmsp-go"
	inside := func(path string) (string, bool) {
		if path == module {
			return "", true
		}
		return strings.CutPrefix(path, module+"/")
	}
	matches := func(pattern, folder string) bool {
		if below, ok := strings.CutSuffix(pattern, "/"); ok {
			rest, in := strings.CutPrefix(folder, below+"/")
			return in && !strings.Contains(rest, "/")
		}
		return pattern == "*" || pattern == folder
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		folder, _ := inside(p.ImportPath)
		known := false
		for _, floor := range floors {
			if !matches(floor.folder, folder) || floor.folder == "gateway/" {
				continue
			}
			known = true
			for _, path := range p.Imports {
				imported, ours := inside(path)
				allowed := !ours
				for _, pattern := range floor.imports {
					allowed = allowed || matches(pattern, imported)
				}
				if !allowed {
					t.Errorf("%q imports %q", folder, imported)
				}
			}
			break
		}
		if !known {
			t.Errorf("%q stands on no floor", folder)
		}
	}
}
