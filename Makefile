# What can be done here: `make help`. CI calls these targets and nothing else.

GOLANGCI  := v2.15.0
LINT      := bin/golangci-lint-$(GOLANGCI)
PAGE      := static/dist/index.html
PAGE_SRC  := $(shell find static/src static/public -type f 2>/dev/null) $(wildcard static/*.json static/*.ts static/index.html)
E2E       := cmd/threadcast/e2e
CHAT      := docs/examples/copilotkit-react
# Tests start the engines that they need; what needs a missing one is left out, which .ci/run does not allow.
WITHOUT   := THREADCAST_WITHOUT="$$(.ci/engines)"
FUZZTIME  ?= 10s
FUZZ      ?= .
ARGS      ?=
VERSION   := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS   := -s -w -X main.version=$(VERSION)
# No debug data is made where the linker would throw it away: a seventh of the compiler's time.
BUILD     := CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags '$(LDFLAGS)'

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: page-or-not ## Start the server with the built-in agent; open the page that it prints (flags in ARGS)
	@echo "compiling; the first time this takes two or three minutes"
	@$(BUILD) -o bin/threadcast ./cmd/threadcast
	@exec bin/threadcast $(ARGS)

.PHONY: build
build: page-or-not ## Build bin/threadcast, static, without cgo
	$(BUILD) -o bin/threadcast ./cmd/threadcast

.PHONY: static
static: $(PAGE) ## Build the page into static/dist

$(PAGE): $(PAGE_SRC) static/node_modules/.package-lock.json
	cd static && npm run build --silent

static/node_modules/.package-lock.json: static/package-lock.json
	cd static && npm ci --no-audit --no-fund --silent
	@touch $@

# The page if npm is there; the server runs without it and says so.
.PHONY: page-or-not
page-or-not:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory -s static; \
	else echo "npm is not installed: the server will run without its page"; fi

.PHONY: test
test: static deps ## The whole suite: unit, page, Postgres, Node clients, endurance, and the browser; what is missing is left out
	$(WITHOUT) go test ./...
	cd static && npm run check --silent && npm test --silent
	$(WITHOUT) go test -tags integration -timeout 40m ./cmd/threadcast
	@case " $$(.ci/engines) " in *" chromium "*) ;; *) $(MAKE) --no-print-directory e2e ;; esac
	@for e in $$(.ci/engines); do echo; echo "LEFT OUT: the tests that need $$e (make deps tells how to install it)"; done

.PHONY: test-short
test-short: ## What needs nothing but Go
	go test -short ./...

.PHONY: race
race: ## The suite under the race detector
	$(WITHOUT) go test -race -p 1 -timeout 40m ./... # one package at a time: many of their tests watch the clock

.PHONY: e2e
e2e: static $(CHAT)/dist/index.html ## The page, and CopilotKit's chat, in a real Chromium
	$(WITHOUT) go test -tags e2e -timeout 10m -run 'Browser' ./cmd/threadcast

.PHONY: screenshots
screenshots: static $(CHAT)/dist/index.html ## Pictures of the pages in their states, into tmp/screenshots
	@mkdir -p tmp/screenshots
	SCREENSHOTS=$(CURDIR)/tmp/screenshots go test -tags e2e -count=1 -timeout 10m -run 'BrowserScreenshots|BrowserCopilotKitScreenshots' ./cmd/threadcast

.PHONY: fuzz
fuzz: ## Each fuzz target in the folders FUZZ for FUZZTIME, one after the other
	@set -e; for pkg in $$(grep -rl '^func Fuzz' --include='*_test.go' $(FUZZ) | sed 's,^\([^./]\),./\1,' | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$pkg/*_test.go | sed 's/func //'); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; done; done

.PHONY: bench
bench: ## Go benchmarks with allocations
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: lint
lint: $(LINT) ## Formatting, vet and linters
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these"; exit 1; }
	go vet -tags 'integration e2e' ./...
	$(LINT) run --build-tags integration,e2e ./...

$(LINT):
	@mkdir -p bin
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv bin/golangci-lint $@

.PHONY: deps
deps: $(E2E)/node_modules/.package-lock.json $(CHAT)/node_modules/.package-lock.json ## What the tests drive: npm packages by lock file, and engines by apt-get for root
	@.ci/engines install

$(E2E)/node_modules/.package-lock.json: $(E2E)/package-lock.json
	cd $(E2E) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(CHAT)/dist/index.html: $(wildcard $(CHAT)/*.ts* $(CHAT)/*.css $(CHAT)/*.json $(CHAT)/*.html) $(CHAT)/node_modules/.package-lock.json
	cd $(CHAT) && npm run build --silent -- --logLevel warn

$(CHAT)/node_modules/.package-lock.json: $(CHAT)/package-lock.json
	cd $(CHAT) && npm ci --no-audit --no-fund --silent
	@touch $@

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin static/dist/assets static/dist/index.html static/node_modules $(E2E)/node_modules $(CHAT)/node_modules $(CHAT)/dist
