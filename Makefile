# Weft. `make` alone lists the targets.
SHELL      := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s
PREFIX   ?= /usr/local

# One variant of each package: with cgo, or with the paths of this machine in it, the build cache would hold a second
# copy of everything, and a first `make test` would compile twice.
export CGO_ENABLED ?= 0
export GOFLAGS     := $(strip -trimpath -buildvcs=false $(GOFLAGS))

# Tests are linked without debug information, which takes half as long, and not vetted again after `make vet`.
TEST := go test -vet=off -ldflags='-s -w'

# Which cases `make test` takes of tests that have too many for everyday: other ones for each commit. See internal/sample.
export WEFT_SAMPLE ?= $(shell git rev-parse HEAD 2>/dev/null || echo none)

# Each package's tests run in namespaces of their own, side by side with others'. The limit is for what hangs: the longest
# part, of e2e, takes ten minutes, and half an hour on a machine that does other work.
ISOLATE := -exec "'$(CURDIR)/.ci/isolate'" -timeout 60m

# Two thirds of the end-to-end tests, by time: they mostly wait.
ONE := Docker|Image|Captur|Terminal|Disk|Tools
TWO := Pipelines|Ordinary|TCP

# Packages whose tests measure time run one at a time, after all others. Of emulate only those of QUIET measure; the others
# wait, beside all packages.
MEASURE := ^weft/(realtime|orchestrator/emulate|tc-shaping/measure)$$
QUIET   := AllToAll|Veth|IdleDelay|OneFlow|AutoIsOK|PrivMeasure|Ping|Iperf|PFC|Telemetry|UMLKernel

.PHONY: help build arm64 install image release demo screenshots test test-all killtest stalltest race vet lint fmt fuzz bench bench-htsim bench-large agreement linux stream labs same baselines papers strack ccm collectives apps transport-grid clocks clocks-seeds reference clean go tools needs matrix test-user test-docker cluster cluster-down cluster-test modules

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

go:
	@command -v go >/dev/null || { echo "Weft needs Go 1.26 or newer: install it from https://go.dev/dl/ and put it in PATH."; exit 1; }
	@go env GOVERSION >/dev/null || { echo "Weft needs Go 1.26 or newer; this is $$(GOTOOLCHAIN=local go version). See https://go.dev/dl/."; exit 1; }

TOOLS := ip iproute2 "no look into namespaces by hand" \
	  ping iputils-ping "no test of ping between emulated hosts" \
	  iperf3 iperf3 "no test of TCP between emulated hosts" \
	  tshark tshark "no test that Wireshark understands captures and headers" \
	  chromium chromium "no test of reports and of weft view in a browser" \
	  dockerd docker.io "no test of the Docker runtime" \
	  linux.uml user-mode-linux "no test of the kernel datapath, unless this kernel has all its qdiscs, and none of --kernel uml"

tools: ## install what the tests use and this machine lacks (apt-get)
	@.ci/need --install $(TOOLS)

needs:
	@.ci/need $(TOOLS)

build: go modules ## build bin/weft, one static binary, and the modules of examples/cc
	go build -ldflags '$(LDFLAGS)' -o bin/weft ./cmd/weft

MODULES := $(patsubst examples/cc/%/main.go,%,$(wildcard examples/cc/*/main.go))

modules: go ## build the congestion controls of examples/cc as WebAssembly modules, beside their sources
	for m in $(MODULES); do GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags '-s -w' -o examples/cc/$$m/$$m.wasm ./examples/cc/$$m; done

arm64: build ## compare congestion controls, built in and as modules, on this processor and as arm64 under QEMU, byte for byte
	.ci/arm64

install: ## put the weft that was built into PREFIX/bin (/usr/local/bin)
	@[ -x bin/weft ] || { echo "make build first"; exit 1; }
	install -D -m 755 bin/weft '$(DESTDIR)$(PREFIX)/bin/weft'

IMAGE ?= weft:$(VERSION)

image: build ## make a container image that runs weft, IMAGE (weft:VERSION), with the Docker Engine here; nothing is pulled
	.ci/image bin/weft '$(IMAGE)'

release: go ## make dist/: archives for linux amd64 and arm64 (static binary, manual pages, completions) and SHA256SUMS; reproducible
	.ci/release '$(VERSION)'

demo: build ## build, then run the quickstart three ways, side by side
	bin/weft demo

# vet compiles all packages, so that the three parts of e2e do not each do so. A part that fails ends none of the others.
test: vet needs build labs ## everything that can be tested on this machine: minutes
	@bad=0; \
	$(TEST) $(ISOLATE) -count=1 -run '^TestPrivProbe$$' -v ./orchestrator/runtime/docker | \
	  sed -n 's/.*\(no Docker Engine for tests: .*\)/skip: \1. Without it there is no test of the Docker runtime./p' || bad=1; \
	echo "== tests, several packages at a time, and those of e2e in three parts beside them"; \
	$(TEST) $(ISOLATE) -run '$(ONE)' ./e2e & one=$$!; \
	$(TEST) $(ISOLATE) -run '$(TWO)' -skip '$(ONE)' ./e2e & two=$$!; \
	$(TEST) $(ISOLATE) -skip '$(ONE)|$(TWO)' ./e2e & three=$$!; \
	$(TEST) $(ISOLATE) -skip '$(QUIET)' ./orchestrator/emulate & wait=$$!; \
	$(TEST) $(ISOLATE) -p 2 $$(go list ./... | grep -vE '$(MEASURE)|^weft/e2e$$') || bad=1; \
	wait $$one || bad=1; wait $$two || bad=1; wait $$three || bad=1; wait $$wait || bad=1; \
	echo "== tests that measure time, one package at a time"; \
	$(TEST) $(ISOLATE) -p 1 ./realtime ./tc-shaping/measure || bad=1; \
	$(TEST) $(ISOLATE) -run '$(QUIET)' ./orchestrator/emulate || bad=1; \
	exit $$bad

# What a user may and may not do shows in these packages, and in these end-to-end tests.
test-user: build ## tests that depend on who runs them, as this user: some minutes
	@bad=0; \
	$(TEST) $(ISOLATE) -count=1 ./internal/... ./results/store ./orchestrator/sweep/... ./orchestrator/doctor ./orchestrator/runtime/... \
	  ./nodeimg/boot ./tc-shaping/tcnl ./tc-shaping/probe || bad=1; \
	$(TEST) $(ISOLATE) -count=1 -run 'Need|Ordinary|Machines|CNI|LossIn|InterruptedVerbs|FullDisk|NoRoom|Choice' ./e2e || bad=1; \
	exit $$bad

# internal/archtest holds the patterns to what the tests call.
test-docker: build ## tests of Docker, beside whatever engine runs on this machine: some minutes
	@bad=0; \
	.ci/ran $(TEST) $(ISOLATE) -count=1 -v -run . ./orchestrator/runtime/docker || bad=1; \
	.ci/ran $(TEST) $(ISOLATE) -count=1 -v -run 'PrivDocker|StoppedDocker|Container|PrivForwards$$|PrivShapes' \
	  ./orchestrator/doctor ./orchestrator/kernelpath ./orchestrator/emulate || bad=1; \
	.ci/ran $(TEST) $(ISOLATE) -count=1 -v -run 'ExecIn|InLabTime|PrivKilled|KeeperKilled$$|WithoutItsFolder|TracedByItsParent|SynchronizedClocks' \
	  -skip UML ./orchestrator/deploy || bad=1; \
	.ci/ran $(TEST) $(ISOLATE) -count=1 -v -run 'InDocker|Image|KnowsTheEngine|ShellInANode|TerminalOfARun|ToolsInNodes' ./e2e || bad=1; \
	exit $$bad

matrix: ## make demo and make test as root and as an ordinary user, with an engine and without, in odd places (root; hours; MATRIX='root-*' chooses some)
	.ci/matrix $(MATRIX)

test-all: ## the same with every case of what make test samples: each step killed, all of User Mode Linux (half an hour)
	WEFT_TEST=all $(MAKE) test

KILLS ?= 100

killtest: go ## kill whatever takes part in run, deploy and destroy: KILLS (100) times at random, from KILL_SEED on, then at every step, in runs with programs, and on other machines in each phase (root; an hour)
	WEFT_KILLS=$(KILLS) WEFT_KILL_SEED=$(KILL_SEED) .ci/ran $(TEST) $(ISOLATE) -count=1 -run '^TestPrivKilledAtRandom$$' -v ./orchestrator/deploy
	WEFT_TEST=all .ci/ran $(TEST) $(ISOLATE) -count=1 -run '^Test(Priv|UML)KilledAtEveryStep$$' -v ./orchestrator/deploy
	WEFT_KILLS=$(KILLS) WEFT_KILL_SEED=$(KILL_SEED) .ci/ran $(TEST) $(ISOLATE) -count=1 -run '^TestPrivProgramsKilledAtRandom$$' -v ./e2e
	WEFT_TEST=all .ci/ran $(TEST) $(ISOLATE) -count=1 -run '^TestPrivLossInEachPhase$$' -v ./e2e

stalltest: go ## stop processes of emulated labs 198 times at random, in each runtime: a run that is ok has the numbers of an undisturbed one (root; 40 minutes; STALLED=Docker$$ chooses)
	WEFT_TEST=all .ci/ran $(TEST) $(ISOLATE) -count=1 -timeout 2h -run '^Test(Priv|UMLKernel)Stopped$(STALLED)' -v ./orchestrator/emulate

race: go ## the tests again under the race detector (needs a C compiler)
	@bad=0; CGO_ENABLED=1 $(TEST) $(ISOLATE) -timeout 2h -race -p 2 $$(go list ./... | grep -vE '$(MEASURE)') || bad=1; \
	CGO_ENABLED=1 $(TEST) $(ISOLATE) -timeout 2h -race -p 1 $$(go list ./... | grep -E '$(MEASURE)') || bad=1; exit $$bad

vet: go ## gofmt and go vet
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }
	go vet ./...

# The garbage collector takes a quarter of staticcheck's time otherwise. It needs 1.2 GB instead of 0.6.
lint: vet ## make vet, staticcheck, and the rules of internal/archtest
	GOGC=400 go tool staticcheck ./...
	$(TEST) ./internal/archtest

fmt: go ## format all Go files
	gofmt -w .

reference: go ## write what docs/ has from the code: the reference of the lab file, and schemas
	go test ./orchestrator/lab -run Reference -update
	go test ./results/schema -update
	go test ./cmd/weft -run Schema -update

fuzz: go ## run every fuzz target for FUZZTIME (10s); make test tries 500 mutations of each
	@packages=$$(go list ./...); \
	for pkg in $$packages; do \
	  list=$$(go test -list '^Fuzz' $$pkg); \
	  for target in $$(grep '^Fuzz' <<<"$$list" || true); do \
	    echo "== $$pkg $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; \
	done

CLUSTER ?= /tmp/weft-cluster

cluster: ## start three Docker Engines in namespaces of this machine, as one swarm, in CLUSTER (/tmp/weft-cluster): for docs/scale-out.md (root)
	.ci/cluster up '$(CLUSTER)'

cluster-down: ## end what make cluster started
	.ci/cluster down '$(CLUSTER)'

# Short paths: that of a socket has at most 107 bytes.
cluster-test: go ## sweeps on a swarm and on Slurm, three machines each, which die or are cut off (root; half an hour; CLUSTER_RUN=Sweep chooses some; CLUSTER_POINTS=1000 CLUSTER_SIZE=340MB: points of a second)
	@command -v slurmd >/dev/null || echo "no slurmd here: the tests of Slurm are skipped (apt-get install slurm-wlm munge)"; \
	dir=$$(mktemp -d /tmp/weft-XXXXXX); \
	trap '.ci/cluster down "$$dir/swarm"; .ci/slurm down "$$dir/slurm"; rm -rf "$$dir"' EXIT; chmod 755 "$$dir"; \
	.ci/cluster up "$$dir/swarm"; ! command -v slurmd >/dev/null || .ci/slurm up "$$dir/slurm"; \
	WEFT_CLUSTER_POINTS='$(CLUSTER_POINTS)' WEFT_CLUSTER_SIZE='$(CLUSTER_SIZE)' WEFT_CLUSTER="$$dir/swarm" WEFT_SLURM="$$([ ! -e "$$dir/slurm" ] || echo "$$dir/slurm")" \
	  .ci/ran $(TEST) -count=1 -timeout 2h -run '^TestCluster$(CLUSTER_RUN)' -v ./e2e

bench: go ## the simulator: events/s, ns/event, packets/s, bytes/host, 128 to 8,192 hosts; how soon commands end; weft view; emulation, Docker (root)
	go test -run '^$$' -bench . -benchmem -timeout 30m ./eventqueue ./fabric ./transport ./sim
	go test -run '^$$' -bench Flows -benchtime 1x ./orchestrator/run
	go test -run '^$$' -bench View -benchtime 1x ./cmd/weft
	go test -run '^$$' -bench Command -benchtime 10x ./e2e
	go test -run '^$$' -bench Reading -benchtime 5x ./nodeimg/labclock
	go test -run '^$$' -bench PrivAllToAll -benchtime 5x ./orchestrator/emulate
	go test -run '^$$' -bench PrivDeploy -benchtime 3x ./e2e ./orchestrator/deploy

bench-htsim: build ## the simulator beside htsim: HTSIM=its sim/datacenter, built; also UEC=uet-htsim's, NS3=/usr, ROUNDS=3; COUNT=1: instructions, cache misses
	UEC='$(UEC)' NS3='$(NS3)' COUNT='$(COUNT)' .ci/bench-htsim '$(HTSIM)' $(ROUNDS)

agreement: build ## emulated labs beside the simulator, with sockets and bypass NICs; DILATION (root)
	.ci/agreement $(DILATION)

linux: build ## built-in labs on Linux (datapath kernel) beside the simulator, in namespaces and Docker: a table; LINUX='kernel/*' chooses (root; half an hour)
	.ci/linux '$(or $(LINUX),*)'

SIZE ?= 2MB

bench-large: build ## 8,192 hosts send SIZE (2MB) each, simulated, and how long it takes; SIZE=100MB: minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; time bin/weft run labs/scale/permutation-8192.yaml --engine sim \
	  --out "$$dir" --set workload.0.size=$(SIZE)

screenshots: go ## make the pictures of docs/view.md anew, in Chromium
	WEFT_PICTURES='$(CURDIR)/docs/pictures' .ci/ran $(TEST) -count=1 -run '^TestShow$$' -v ./cmd/weft

labs: build ## check every lab, and simulate the small ones
	bin/weft validate $$(find labs -name '*.yaml' | sort)
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/smoke/*.yaml $$(grep -L program: labs/teaching/*.yaml) \
	  labs/collectives/all-*.yaml labs/collectives/others.yaml labs/collectives/traces.yaml labs/ccm/example.yaml \
	  labs/strack/s02-*.quick.yaml labs/strack/s08-*.quick.yaml

BASE ?= HEAD

same: go ## simulate all labs with this tree and with commit BASE (HEAD), and name the data files that differ
	.ci/same '$(BASE)'

papers: build ## all papers at their quick sizes, their numbers beside ours (ten minutes); a claim that fails is told, and no error
	@for p in pc4 strack ccm clocksync; do \
	  code=0; bin/weft paper $$p --quick || code=$$?; \
	  [ $$code = 0 ] || [ $$code = 3 ] || exit $$code; \
	done

strack: build ## the figures of the STrack paper at their quick sizes, simulated: two minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/strack/*.quick.yaml

ccm: build ## coordinated congestion management, simulated: two minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" $$(ls labs/ccm/*.yaml | grep -v emu)

apps: build ## unmodified programs in lab time, at D and 4 D beside the ideal: ping, iperf3, PyTorch (minutes; skips what is not installed)
	.ci/apps bin/weft

collectives: build ## every algorithm against its closed form, simulated: a minute
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/collectives/*.yaml

stream: go ## read a job of a gigabyte, and a million operations, and say in how much memory and time
	WEFT_GIGABYTE=1 .ci/ran $(TEST) ./inputs -run Gigabyte -count=1 -v
	$(TEST) ./inputs/goal -run '^$$' -bench Load -benchtime 5x

baselines: build ## simulate what the baselines and Table II of the PC4 paper are held to (a minute)
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/baselines/*.yaml labs/pc4/table2.yaml

clocks: build ## the experiments on clocks, simulated: some minutes
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bin/weft run --engine sim --out "$$dir" labs/clocksync/*.yaml labs/pc4/noise.yaml labs/pc4/sync.yaml

transport-grid: go ## every transport with its defaults over rates, delays, queues and packets, and every number of it a tenth and ten times its default, and slow links: goodput beside the closed form, and the warnings (half an hour)
	WEFT_GRID=1 WEFT_TEST=all .ci/ran $(TEST) -count=1 -v -timeout 6h -run '^Test(Defaults|WrittenNumbers|SlowLinks)FitOrWarn$$' ./orchestrator/run

SEEDS ?= 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
SEEDED := $(filter-out labs/clocksync/huygens-load.yaml, $(wildcard labs/clocksync/*.yaml))

clocks-seeds: build ## the same, but for the longest, over the seeds of SEEDS: an hour or so
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; bad=0; for seed in $(SEEDS); do bin/weft run --engine sim --set seed=$$seed --out "$$dir" $(SEEDED) || bad=1; done; exit $$bad

clean: ## remove what was built; runs are kept
	rm -rf bin dist
	find . -name '*.test' -o -name '*.prof' | xargs -r rm -f
