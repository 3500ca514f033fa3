// Command report turns the results of the suites into the table of docs/conformance.md. Every test of the matrix must
// have a result; it exits with 1 where one has none or failed.
//
//	report MATRIX RESULTS PACKAGE.JSON GO.MOD SUITES OUTPUT
//
// SUITES are those that ran, with a comma between them. Without all of them nothing is written.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type matrix struct {
	Egresses   []egress
	SDKs       []sdk
	Checks     []check
	Scenarios  scenarios
	Exceptions []exception
}

type egress struct {
	ID         string
	PassesOver []string
}

type sdk struct {
	ID, Suite, Package, Ingress string
	Calls                       []string
}

type check struct {
	Check, SDK, Suite string
	Egresses          []string
}

type exception struct {
	Scenario    string
	SDK, Egress []string
	Reason      string
}

type scenario struct{ name, about string }

// scenarios keep the order of the file.
type scenarios []scenario

func (s *scenarios) UnmarshalJSON(text []byte) error {
	object := json.NewDecoder(bytes.NewReader(text))
	if _, err := object.Token(); err != nil {
		return err
	}
	for object.More() {
		name, err := object.Token()
		if err != nil {
			return err
		}
		var value struct{ About string }
		if err := object.Decode(&value); err != nil {
			return err
		}
		*s = append(*s, scenario{name.(string), value.About})
	}
	return nil
}

// tests are the names of the tests of a scenario with an SDK.
func (s scenario) tests(k sdk) []string {
	if s.name != "one call" && s.name != "parallel calls" {
		return []string{s.name}
	}
	var names []string
	for _, way := range k.Calls {
		names = append(names, s.name+": "+way)
	}
	return names
}

type result struct{ SDK, Egress, Test, Outcome, Detail string }

// outcomes are the results by SDK, egress and test.
type outcomes map[[3]string]string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 6 {
		return fmt.Errorf("six arguments are wanted: MATRIX RESULTS PACKAGE.JSON GO.MOD SUITES OUTPUT")
	}
	var m matrix
	text, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return err
	}
	versions, err := readVersions(args[2], args[3])
	if err != nil {
		return err
	}
	all, err := readResults(args[1])
	if err != nil {
		return err
	}
	suites := strings.Split(args[4], ",")
	var b strings.Builder
	bad := m.write(&b, all, versions, suites)
	if len(suites) == 2 {
		if err := os.WriteFile(args[5], []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d tests\n", len(all))
	if len(bad) > 0 {
		return fmt.Errorf("%d tests failed or did not run:\n%s", len(bad), strings.Join(bad, "\n"))
	}
	return nil
}

func readResults(name string) (outcomes, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := outcomes{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		test := [3]string{r.SDK, r.Egress, r.Test}
		if all[test] != "" {
			return nil, fmt.Errorf("%s: two results of %s", name, test)
		}
		all[test] = r.Outcome
	}
	return all, lines.Err()
}

// readVersions returns the versions of the packages.
func readVersions(packageJSON, goMod string) (map[string]string, error) {
	var p struct{ Dependencies map[string]string }
	text, err := os.ReadFile(packageJSON)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return nil, err
	}
	for name, version := range p.Dependencies {
		if at := strings.LastIndex(version, "@"); at >= 0 { // npm:package@version
			p.Dependencies[name] = version[at+1:]
		}
	}
	if text, err = os.ReadFile(goMod); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(strings.TrimPrefix(line, "require ")); len(words) >= 2 {
			p.Dependencies[words[0]] = words[1]
		}
	}
	return p.Dependencies, nil
}

// write writes the document and returns the tests that failed or did not run.
func (m *matrix) write(b *strings.Builder, all outcomes, versions map[string]string, suites []string) (bad []string) {
	passed := func(sdk, egress, test string) bool {
		outcome := cmp.Or(all[[3]string{sdk, egress, test}], "not run")
		if outcome != "pass" {
			bad = append(bad, fmt.Sprintf("%s | %s | %s: %s", sdk, egress, test, outcome))
		}
		return outcome == "pass"
	}
	short := func(egress string) string { return strings.TrimPrefix(egress, "demo-") }

	fmt.Fprint(b, `# Conformance: the official SDKs through the gateway

`+"`test/sdk/run`"+` drives the vendors' SDKs, unmodified, against `+"`mmsp serve --demo`"+`: each SDK with each egress, that is each client type
over a simulated provider of its wire protocol, which checks every history it gets as strictly as the real one. It also writes this
file. What is tried and what holds stands in `+"`test/sdk/matrix.json`"+`.

| scenario | is |
|---|---|
`)
	for _, s := range m.Scenarios {
		fmt.Fprintf(b, "| %s | %s |\n", s.name, s.about)
	}
	fmt.Fprint(b, `
A cell holds how many of the tests pass as they stand, of how many; a number after it is an exception below, which is tested,
too. Calls are tried in every way that an SDK has to bring them back.

`)
	for _, e := range m.Egresses {
		if e.PassesOver != nil {
			fmt.Fprintf(b, "%s has no word for %s, which every caller that asks for it is told.\n\n", short(e.ID), strings.Join(e.PassesOver, ", "))
		}
	}
	head, rule := "| SDK | version | ingress |", "|---|---|---|"
	for _, e := range m.Egresses {
		head, rule = head+" "+short(e.ID)+" |", rule+"---|"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, rule)
	for _, k := range m.SDKs {
		if !slices.Contains(suites, k.Suite) {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s |", k.ID, strings.TrimPrefix(versions[k.Package], "v"), k.Ingress)
		for _, e := range m.Egresses {
			good, total := 0, 0
			var notes []string
			for _, s := range m.Scenarios {
				excepted := false
				for i, x := range m.Exceptions {
					if x.Scenario == s.name && (x.SDK == nil || slices.Contains(x.SDK, k.ID)) && (x.Egress == nil || slices.Contains(x.Egress, e.ID)) {
						excepted = true
						notes = append(notes, fmt.Sprintf("(%d)", i+1))
					}
				}
				for _, test := range s.tests(k) {
					total++
					if passed(k.ID, e.ID, test) && !excepted {
						good++
					}
				}
			}
			fmt.Fprintf(b, " %s |", strings.Join(append([]string{fmt.Sprintf("%d/%d", good, total)}, notes...), " "))
		}
		b.WriteString("\n")
	}

	b.WriteString("\n## Exceptions\n\n")
	for i, x := range m.Exceptions {
		fmt.Fprintf(b, "%d. %s: %s.\n", i+1, x.Scenario, x.Reason)
	}

	b.WriteString("\n## Other checks\n\n| check | SDK | with | passed |\n|---|---|---|---|\n")
	for _, c := range m.Checks {
		if !slices.Contains(suites, c.Suite) {
			continue
		}
		egresses, with := c.Egresses, ""
		switch {
		case egresses == nil:
			egresses, with = []string{""}, "all models"
		case egresses[0] == "*":
			egresses, with = nil, "each egress"
			for _, e := range m.Egresses {
				egresses = append(egresses, e.ID)
			}
		default:
			with = short(strings.Join(egresses, ", "))
		}
		good := 0
		for _, egress := range egresses {
			if passed(c.SDK, egress, c.Check) {
				good++
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %d/%d |\n", c.Check, c.SDK, with, good, len(egresses))
	}
	if len(bad) > 0 {
		fmt.Fprintf(b, "\n## Failures\n\n- %s\n", strings.Join(bad, "\n- "))
	}
	return bad
}
