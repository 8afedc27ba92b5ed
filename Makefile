# Weft. `make` alone lists the targets.
SHELL      := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s
PREFIX   ?= /usr/local

# Packages whose tests own sockets, devices, processes or the clock run one at a time, after all others, so that
# what they measure is not each other.
DRIVERS := ^weft/(cmd|e2e|fabric/realtime|nodeimg|internal/poller|orchestrator/(run|capture|emulate|kernelpath|runtime|doctor|deploy|uml)|internal/(clock|umltest)|tc-shaping/(tcnl|probe|measure))(/|$$)

.PHONY: help build install demo test killtest race lint fmt fuzz bench bench-htsim bench-large labs baselines papers strack ccm collectives clocks clocks-seeds reference clean go tools

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

go:
	@command -v go >/dev/null || { echo "Weft needs Go 1.26 or newer: install it from https://go.dev/dl/ and put it in PATH."; exit 1; }
	@go env GOVERSION >/dev/null || { echo "Weft needs Go 1.26 or newer; this is $$(GOTOOLCHAIN=local go version). See https://go.dev/dl/."; exit 1; }

tools:
	@.ci/need ip iproute2 "no look into namespaces by hand" \
	  ping iputils-ping "no test of ping between emulated hosts" \
	  iperf3 iperf3 "no test of TCP between emulated hosts" \
	  tshark tshark "no test that Wireshark understands captures and headers" \
	  chromium chromium "no test of reports in a browser" \
	  dockerd docker.io "no test of the Docker runtime" \
	  linux.uml user-mode-linux "no test of the kernel datapath, unless this kernel has all its qdiscs, and none of --kernel uml"

build: go ## build bin/weft, one static binary
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/weft ./cmd/weft

install: ## put the weft that was built into PREFIX/bin (/usr/local/bin)
	@[ -x bin/weft ] || { echo "make build first"; exit 1; }
	install -D -m 755 bin/weft '$(DESTDIR)$(PREFIX)/bin/weft'

demo: build ## build, then run labs/quickstart.yaml
	bin/weft run labs/quickstart.yaml

test: lint tools build labs ## everything that can be tested on this machine
	@echo "== unit tests"
	go test $$(go list ./... | grep -vE '$(DRIVERS)')
	@echo "== tests with sockets, devices and processes"
	@go test -count=1 -run '^TestPrivProbe$$' -v ./orchestrator/runtime/docker | \
	  sed -n 's/.*\(no Docker Engine for tests: .*\)/skip: \1. Without it there is no test of the Docker runtime./p'
	go test -p 1 $$(go list ./... | grep -E '$(DRIVERS)')

killtest: go ## kill deploy, run, destroy, supervisor and reaper at every single step, in both runtimes and datapaths (root; half an hour)
	WEFT_KILLTEST=all go test -count=1 -timeout 60m -run '^TestPrivKilledAtEveryStep$$' -v ./orchestrator/deploy
	WEFT_KILLTEST=all go test -count=1 -timeout 60m -run '^TestUMLKilledAtEveryStep$$' -v ./orchestrator/deploy

race: go ## the tests again under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race $$(go list ./... | grep -vE '$(DRIVERS)')
	CGO_ENABLED=1 go test -race -p 1 $$(go list ./... | grep -E '$(DRIVERS)')

lint: go ## gofmt, go vet, staticcheck, and the rules of internal/archtest
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test ./internal/archtest

fmt: go ## format all Go files
	gofmt -w .

reference: go ## write what docs/ has from the code: the reference of the lab file, and schemas
	go test ./orchestrator/lab -run Reference -update
	go test ./results/schema -update
	go test ./cmd/weft -run Schema -update

fuzz: go ## run every fuzz target for FUZZTIME (10s)
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

bench: go ## the simulator: events/s, ns/event, packets/s, bytes/host, 128 to 8,192 hosts; how soon commands end; emulation, Docker (root)
	go test -run '^$$' -bench . -benchmem -timeout 30m ./timeline ./fabric ./transport ./sim
	go test -run '^$$' -bench Flows -benchtime 1x ./orchestrator/run
	go test -run '^$$' -bench Command -benchtime 10x ./e2e
	go test -run '^$$' -bench PrivAllToAll -benchtime 5x ./orchestrator/emulate
	go test -run '^$$' -bench PrivDeploy -benchtime 3x ./e2e ./orchestrator/deploy

bench-htsim: build ## the simulator beside htsim: HTSIM=its sim/datacenter, built
	.ci/bench-htsim '$(HTSIM)'

SIZE ?= 2MB

bench-large: build ## 8,192 hosts send SIZE (2MB) each, simulated, and how long it takes; SIZE=100MB: minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; time bin/weft run labs/scale/permutation-8192.yaml --engine sim \
	  --out "$$dir" --set workload.0.size=$(SIZE)

labs: build ## check every lab, and simulate the small ones
	bin/weft validate $$(find labs -name '*.yaml' | sort)
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/smoke/*.yaml labs/teaching/*.yaml \
	  labs/collectives/all-*.yaml labs/collectives/others.yaml labs/collectives/traces.yaml labs/ccm/example.yaml \
	  labs/strack/s02-*.quick.yaml labs/strack/s08-*.quick.yaml

papers: build ## all papers at their quick sizes, their numbers beside ours (ten minutes); a claim that fails is told, and no error
	@for p in pc4 strack ccm clocksync; do \
	  code=0; bin/weft paper $$p --quick || code=$$?; \
	  [ $$code = 0 ] || [ $$code = 3 ] || exit $$code; \
	done

strack: build ## the figures of the STrack paper at their quick sizes, simulated: two minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/strack/*.quick.yaml

ccm: build ## coordinated congestion management, simulated: two minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" $$(ls labs/ccm/*.yaml | grep -v emu)

collectives: build ## every algorithm against its closed form, simulated: a minute
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/collectives/*.yaml

baselines: build ## simulate what the baselines and Table II of the PC4 paper are held to (a minute)
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/baselines/*.yaml labs/pc4/table2.yaml

clocks: build ## the experiments on clocks, simulated: some minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/clocksync/*.yaml labs/pc4/noise.yaml labs/pc4/sync.yaml

SEEDS ?= 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
SEEDED := $(filter-out labs/clocksync/huygens-load.yaml, $(wildcard labs/clocksync/*.yaml))

clocks-seeds: build ## the same, but for the longest, over the seeds of SEEDS: an hour or so
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bad=0; for seed in $(SEEDS); do bin/weft run --engine sim --set seed=$$seed --out "$$dir" $(SEEDED) || bad=1; done; exit $$bad

clean: ## remove what was built; results are kept
	rm -rf bin
	find . -name '*.test' -o -name '*.prof' | xargs -r rm -f
