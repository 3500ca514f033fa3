package chat

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// TestRecordedRequests reads what real callers sent, as far as it was recorded. What is not served is refused by its name.
func TestRecordedRequests(t *testing.T) {
	refused := map[string]string{
		"openai-gpt-3.5-turbo-finish-reasons-streaming-deduplicates-finish-reasons-t1-ns": "n",
		"openai-gpt-3.5-turbo-finish-reasons-streaming-deduplicates-finish-reasons-t2-ns": "n",
		"openrouter-gemini-2.5-flash-video-url-public-api-ns":                             "messages[0].content[1].type",
		"openrouter-gpt-4.1-mini-document-url-no-force-download-ns":                       "messages[0].content[1].file.file_data",
	}
	folders := []string{"../../conformance/testdata"}
	if corpus := os.Getenv("MMSP_CORPUS"); corpus != "" {
		folders = append(folders, corpus)
	}
	read := 0
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "openai-chat", "*", "request.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, request, err := ask(string(body), chatPeer)
			if err == nil {
				err = mmsp.Validate(request.Messages)
			}
			param := ""
			if invalid := (*mmsp.InvalidRequestError)(nil); errors.As(err, &invalid) {
				param = invalid.Param
			}
			if want := refused[filepath.Base(filepath.Dir(file))]; (err != nil) != (want != "") || param != want {
				t.Errorf("%s: %v", file, err)
			}
			read++
		}
	}
	if read == 0 {
		t.Error("there is no recorded request")
	}
}
