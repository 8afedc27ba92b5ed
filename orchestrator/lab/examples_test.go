package lab

// sectionExamples holds the example that the reference shows of each section. A test completes each
// to a lab and reads it.
var sectionExamples = map[string]string{
	"": `weft: 1
name: my-lab
about: an all-reduce on four racks
topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4}
workload: [{collective: all-reduce, size: 16MB}]
`,
	"topology": `topology:
  kind: leaf-spine
  leaves: 4
  spines: 2
  hosts_per_leaf: 4
  link: {rate: 100Gbps, delay: 1us}
  tiers: {leaf: {rate: 400Gbps, delay: 2us}}
  down: [leaf0-spine1]
`,
	"topology.link": `topology: {kind: dumbbell, hosts: 4, link: {rate: 400Gbps, delay: 500ns, loss: 0.01%}}
`,
	"topology.tiers": `topology: {kind: fat-tree, k: 4, tiers: {host: {delay: 200ns}, core: {rate: 200Gbps, delay: 5us}}}
`,
	"topology.tiers.NAME": `topology: {kind: star, hosts: 8, tiers: {host: {jitter: 100ns, queues: {buffer: 2MB}}}}
`,
	"topology.down": `topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 2, down: {random: 4, among: 4 leaves}}
`,
	"topology.nodes": `topology:
  kind: custom
  nodes: [{name: h0}, {name: h1, run: [iperf3, -s]}, {name: s0, switch: true}]
  links: [{between: [h0, s0]}, {between: [h1, s0]}]
`,
	"topology.links": `topology:
  kind: custom
  nodes: [{name: h0}, {name: h1}, {name: s0, switch: true}]
  links:
    - {between: [h0, s0]}
    - {between: [h1, s0], rate: 50Gbps, queues: {buffer: 200KB}}
`,
	"topology.links.queues": `topology:
  kind: custom
  nodes: [{name: h0}, {name: h1}, {name: s0, switch: true}]
  links: [{between: [h0, s0]}, {between: [h1, s0], queues: {buffer: 200KB, trim: on}}]
`,
	"queues": `queues:
  buffer: 1MB
  ecn: {kmin: 100KB, kmax: 400KB, pmax: 20%}
`,
	"queues.shared": `queues: {shared: {total: 64MB, alpha: 1}}
`,
	"queues.ecn": `queues: {ecn: {kmin: 10%bdp, kmax: 50%bdp, pmax: 10%, mark: ingress}}
`,
	"queues.pfc": `queues:
  shared: {total: 32MB}
  pfc: {xoff: 500KB}
`,
	"queues.trim": `queues: {trim: {size: 64B, victim: either}}
`,
	"clocks": `clocks: {sync: huygens, offset: ±1ms, skew: ±20ppm, for: 100ms}
`,
	"clocks.ptp": `clocks: {sync: ptp, offset: ±100us, for: 1s, ptp: {interval: 10ms, servo: linreg, boundary: edge}}
`,
	"clocks.huygens": `clocks: {sync: huygens, offset: ±1ms, for: 100ms, huygens: {degree: 4, window: 5ms}}
`,
	"background": `background: {load: 30%, burst: 16}
`,
	"transport": `transport:
  kind: strack
  strack: {paths: 64}
`,
	"transport.pc4": `transport: {kind: pc4, pc4: {target_qtime: 5us, initial: line}}
`,
	"transport.roce": `transport: {kind: roce, roce: {preset: mellanox, qps: 4, rai: 40Mbps}}
`,
	"transport.swift": `transport: {kind: swift, swift: {base_target: 25us, fs_range: 0s}}
`,
	"transport.hpcc": `transport: {kind: hpcc, hpcc: {eta: 0.9, max_stage: 5}}
`,
	"transport.strack": `transport: {kind: strack, strack: {paths: 64, target: 8us}}
`,
	"transport.ccm": `transport: {kind: ccm, ccm: {inner: swift, paths: 8, timeout: 2ms, swift: {base_target: 25us}}}
`,
	"transport.uec": `transport: {kind: uec, uec: {cc: both, paths: reps, entropies: 256}}
`,
	"transport.wasm": `transport: {kind: wasm, wasm: {module: mine.wasm, params: {gain: 0.5}, ecn: true}}
`,
	"workload": `workload:
  - {collective: all-reduce, algorithm: ring, size: 64MB, ranks: 8}
  - {collective: incast, size: 1MB, ranks: {random: 4}, start: previous}
`,
	"workload.ranks": `workload: [{collective: all-to-all, size: 1MB, ranks: {groups: 2, size: 4}}]
`,
	"workload.flows": `workload: [{flows: [{id: a, from: h0, to: h1, size: 1MB, at: 5us}, {from: h1, to: h2, size: 2MB, after: a}]}]
`,
	"workload.poisson": `workload: [{collective: incast, size: 64KB, ranks: {random: 4}, poisson: {every: 50us, for: 2ms}}]
`,
	"faults": `faults:
  - {at: 1ms, link: leaf0-spine0, down: 500us, reroute: 100us}
  - {at: 2ms, link: leaf1-spine1, loss: 0.1%, for: 1ms}
  - {at: 3ms, host: h3, pause: 200us}
`,
	"measure": `measure: {queues: 5us, rates: 100us, queue_events: "leaf0->h0", cwnd: true, from: 1ms}
`,
	"expect": `expect:
  - verified == true
  - fct_slowdown.p99 <= 1.10 * flows
  - drops == 0 when transport.kind == roce
`,
	"sweep": `sweep:
  transport.kind: [pc4, strack]
  workload.0.size: [1MB, 16MB]
`,
	"engine": `engine: {kind: emu, dilation: 2000}
`,
	"engine.tcp": `engine: {kind: emu, tcp: {congctl: dctcp, ecn: true, rto_min: 1ms}}
`,
}
