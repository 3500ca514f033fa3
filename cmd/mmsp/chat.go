package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
)

var thinkingLevels = []string{
	string(mmsp.ThinkingNone), string(mmsp.ThinkingLow), string(mmsp.ThinkingMedium),
	string(mmsp.ThinkingHigh), string(mmsp.ThinkingXHigh), string(mmsp.ThinkingMax),
}

func chatCommand() *cobra.Command {
	var connection connectionFlags
	var thinking, traceID, system, toolsFile string
	var asJSON bool
	c := &cobra.Command{
		Use:   "chat MODEL [prompt]",
		Short: "Talk to a model in the terminal; without a prompt, turn by turn",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("a model is wanted: mmsp chat MODEL [prompt]")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if thinking != "" && !slices.Contains(thinkingLevels, thinking) {
				return fmt.Errorf("--thinking %s: one of %s is wanted", thinking, strings.Join(thinkingLevels, ", "))
			}
			client, err := auto.New(args[0], connection.options())
			if err != nil {
				return err
			}
			config := mmsp.Config{ThinkingLevel: mmsp.ThinkingLevel(thinking), TraceID: traceID}
			if system != "" {
				config.SystemPrompt = &system
			}
			if toolsFile != "" {
				text, err := os.ReadFile(toolsFile)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(text, &config.Tools); err != nil {
					return fmt.Errorf("%s: %w", toolsFile, err)
				}
			}
			t := &terminal{
				session: client.NewSession(), config: &config, asJSON: asJSON,
				lines: make(chan string), out: c.OutOrStdout(), color: isTerminal(c.OutOrStdout()),
			}
			if len(args) > 1 {
				_, err := t.turn(c.Context(), mmsp.UserMessage(mmsp.Text(strings.Join(args[1:], " "))))
				return err
			}
			go t.read(c.InOrStdin())
			return t.talk(c.Context())
		},
	}
	c.Flags().StringVar(&thinking, "thinking", "", "thinking level: "+strings.Join(thinkingLevels, ", "))
	c.Flags().StringVar(&system, "system", "", "system prompt")
	c.Flags().StringVar(&toolsFile, "tools", "", "JSON `FILE` with a list of tools {name, description, parameters}")
	c.Flags().StringVar(&traceID, "trace-id", "", "record the conversation under this relative path of MMSP_CACHE_DIR")
	c.Flags().BoolVar(&asJSON, "json", false, "print the public stream, one event a line")
	connection.add(c)
	return c
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminal shows a conversation.
type terminal struct {
	session *mmsp.Session
	config  *mmsp.Config
	lines   chan string // of the input; closed at its end
	out     io.Writer
	color   bool
	asJSON  bool
}

// talk reads one line a turn until the input ends. A call that the model makes is answered by the next line.
func (t *terminal) talk(ctx context.Context) error {
	for {
		line, ok := t.ask(ctx, "> ")
		if !ok {
			return ctx.Err()
		}
		if line == "" {
			continue
		}
		message := mmsp.UserMessage(mmsp.Text(line))
		for {
			answer, err := t.turn(ctx, message)
			if ctx.Err() != nil {
				return err
			}
			if err != nil {
				fmt.Fprintln(t.out, "error:", printable(err.Error()))
				break
			}
			message = mmsp.UserMessage()
			for _, call := range answer.ToolCalls() {
				result, ok := t.ask(ctx, "result of "+printable(call.Name)+"> ")
				if !ok {
					return ctx.Err()
				}
				message.ContentItems = append(message.ContentItems, mmsp.ToolResult(call.ToolCallID, result))
			}
			if len(message.ContentItems) == 0 {
				break
			}
		}
	}
}

// read hands out the lines of the input. It may wait for one when the command has ended long ago.
func (t *terminal) read(in io.Reader) {
	defer close(t.lines)
	reader := bufio.NewReader(in)
	for {
		line, err := reader.ReadString('\n')
		if err != nil && line == "" {
			return
		}
		t.lines <- strings.TrimSpace(line)
	}
}

// ask returns the next line of the input, false at its end and when ctx ends.
func (t *terminal) ask(ctx context.Context, prompt string) (string, bool) {
	if !t.asJSON {
		fmt.Fprint(t.out, prompt)
	}
	select {
	case line, ok := <-t.lines:
		return line, ok
	case <-ctx.Done():
		return "", false
	}
}

// turn streams one answer.
func (t *terminal) turn(ctx context.Context, message mmsp.Message) (mmsp.Message, error) {
	var answer mmsp.Message
	kind := ""
	for event, err := range t.session.StreamingResponse(ctx, message, t.config) {
		if err != nil {
			if kind != "" {
				fmt.Fprintln(t.out)
			}
			if errors.Is(err, context.Canceled) {
				return answer, context.Canceled
			}
			return answer, err
		}
		if t.asJSON {
			if _, err := fmt.Fprintf(t.out, "%s\n", event.AppendJSON(nil)); err != nil {
				return answer, err
			}
		} else {
			kind = t.show(&event, kind)
		}
		if event.Type == mmsp.EventDelta && !event.Item.Type.IsDelta() {
			answer.ContentItems = append(answer.ContentItems, event.Item)
		}
	}
	return answer, nil
}

// show prints an event; kind is the kind of the item under way.
func (t *terminal) show(event *mmsp.Event, kind string) string {
	if event.Type == mmsp.EventStop {
		fmt.Fprintln(t.out, t.dim("["+printable(string(event.FinishReason))+usageText(event.Usage)+"]"))
		return ""
	}
	item := &event.Item
	if !item.Type.IsDelta() {
		switch item.Type {
		case mmsp.InlineDataDone, mmsp.InlineThinkingDone:
			fmt.Fprintf(t.out, "[%s, %d bytes]", printable(item.MimeType), len(item.Data))
		case mmsp.EmbeddingDone:
			fmt.Fprintf(t.out, "[vector of %d dimensions]", len(item.Embedding))
		}
		fmt.Fprintln(t.out)
		return ""
	}
	switch item.Type {
	case mmsp.TextDelta:
		fmt.Fprint(t.out, printable(item.Text))
	case mmsp.ThinkingDelta:
		fmt.Fprint(t.out, t.dim(printable(item.Thinking)))
	case mmsp.ToolCallDelta:
		if item.Name != "" {
			fmt.Fprintf(t.out, "call %s ", printable(item.Name))
		}
		fmt.Fprint(t.out, printable(item.Arguments))
	}
	return item.Type.Kind()
}

// printable takes out what could drive the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

func (t *terminal) dim(text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

func usageText(u *mmsp.Usage) (text string) {
	if u == nil {
		return ""
	}
	for _, part := range []struct {
		name  string
		count *int64
	}{{"cached", u.CachedTokens}, {"prompt", u.PromptTokens}, {"thoughts", u.ThoughtsTokens}, {"response", u.ResponseTokens}} {
		if part.count != nil && *part.count > 0 {
			text += fmt.Sprintf(", %s %d", part.name, *part.count)
		}
	}
	return text
}
