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
	"topology.links": `topology:
  kind: custom
  nodes: [{name: h0}, {name: h1}, {name: s0, switch: true}]
  links:
    - {between: [h0, s0]}
    - {between: [h1, s0], rate: 50Gbps, queues: {buffer: 200KB}}
`,
	"queues": `queues:
  buffer: 1MB
  ecn: {kmin: 100KB, kmax: 400KB, pmax: 20%}
`,
	"queues.pfc": `queues:
  shared: {total: 32MB}
  pfc: {xoff: 500KB}
`,
	"clocks": `clocks: {sync: huygens, offset: ±1ms, skew: ±20ppm, for: 100ms}
`,
	"background": `background: {load: 30%, burst: 16}
`,
	"transport": `transport:
  kind: strack
  strack: {paths: 64}
`,
	"workload": `workload:
  - {collective: all-reduce, algorithm: ring, size: 64MB, ranks: 8}
  - {collective: incast, size: 1MB, ranks: {random: 4}, start: previous}
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
}
