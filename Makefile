SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOFUMPT := $(GO) run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Time for each fuzz target, for instance 30s or 5m.
FUZZTIME ?= 30s

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the static binary bin/mmsp
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/mmsp ./cmd/mmsp

.PHONY: test
test: ## Vet, then run every test under the race detector
	$(GO) vet ./...
	$(GO) test -race ./...

.PHONY: race
race: ## Hunt races: every test three times, uncached, in random order
	$(GO) test -race -count=3 -shuffle=on ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s) each, one after the other
	GO='$(GO)' FUZZTIME='$(FUZZTIME)' .ci/fuzz

.PHONY: bench
bench: ## Run the benchmarks
	cd bench && MMSP_BENCH=1 $(GO) test -count=1 -v .
	cd bench && $(GO) run ./server

.PHONY: lint
lint: ## Check the format (gofumpt), go vet and staticcheck
	@unformatted=$$($(GOFUMPT) -l .); \
	if [[ -n $$unformatted ]]; then printf 'not in the format of gofumpt:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	for module in bench test/sdk/go; do (cd $$module && $(GO) vet ./... && $(STATICCHECK) ./...); done

.PHONY: cover
cover: ## Measure the coverage of all packages together; profile in bin/cover.out
	@mkdir -p bin
	$(GO) test -coverpkg=./... -coverprofile=bin/cover.out ./...
	$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: conformance
conformance: ## Run the tests that read recorded provider traffic; MMSP_CORPUS names its folder
	@[[ -d "$${MMSP_CORPUS:-}" ]] || { echo 'set MMSP_CORPUS to the folder of recorded provider traffic'; exit 1; }
	@packages=$$(grep -rl --include='*_test.go' MMSP_CORPUS . | xargs -r -n 1 dirname | sort -u); \
	[[ -n $$packages ]] || { echo 'no test reads MMSP_CORPUS'; exit 1; }; \
	MMSP_CORPUS=$$(cd "$$MMSP_CORPUS" && pwd) $(GO) test -count=1 $$packages

.PHONY: sdk
sdk: ## Drive the vendors' SDKs (Node 20, Go) against the demo server; writes docs/conformance.md
	GO='$(GO)' MMSP='$(abspath $(MMSP))' test/sdk/run

.PHONY: clean
clean: ## Remove what the other targets built
	rm -rf bin dist
