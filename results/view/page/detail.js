// Charts of what was selected: a port, a host or switch, a flow.

import { Chart } from "./chart.js";
import { bytes, count, palette, time } from "./format.js";

const most = 6; // lines in a chart

// sized returns the unit of a chart of bytes up to max, for Chart.
function sized(max) {
  return max >= 2e6 ? { unit: "MB", factor: 1e-6 } : { unit: "KB", factor: 1e-3 };
}

// thresholds returns the marking thresholds of a port as lines of a chart.
function thresholds(port) {
  const out = [];
  if (port.ecn_kmax_bytes) out.push({ y: port.ecn_kmax_bytes, name: "Kmax" });
  if (port.ecn_kmin_bytes) out.push({ y: port.ecn_kmin_bytes, name: "Kmin" });
  return out;
}

// overview returns the charts of the whole network, one line per run.
export function overview(runs, clock) {
  const names = runs.map((r) => r.title);
  const charts = [new Chart(clock, {
    title: "Waiting in all switches", ...sized(Math.max(...runs.map((r) => r.total.reduce((a, b) => Math.max(a, b), 0)))),
    series: runs.map((r, i) => ({ name: names[i], points: Array.from(r.total, (v, k) => [r.time(k), v]) })),
  })];
  const worst = runs.map(longest);
  const max = Math.max(...worst.map((p, i) => peak(runs[i], p)));
  runs.forEach((r, i) => {
    const p = worst[i];
    if (p < 0) return;
    charts.push(new Chart(clock, {
      title: `${runs.length > 1 ? `${names[i]}: ` : ""}longest queue, ${r.ports[p].name}`, max, ...sized(max),
      series: [{ name: r.ports[p].name, points: r.series(r.queue, p), color: palette[i] }], lines: thresholds(r.ports[p]),
    }));
  });
  const rates = runs.map((r) => busiest(r).map((c) => ({ name: `${r.conns[c].src} to ${r.conns[c].dst}`, points: r.connSeries(c).rate, step: true })));
  const fastest = Math.max(0, ...rates.flat().map((s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0)));
  runs.forEach((r, i) => {
    if (rates[i].length === 0) return;
    charts.push(new Chart(clock, {
      title: `${runs.length > 1 ? `${names[i]}: ` : ""}rates of ${rates[i].length} of ${count(r.conns.length)} connections`, unit: "Gb/s", max: fastest, series: rates[i],
    }));
  });
  runs.forEach((r, i) => {
    const clocks = r.model.clocks ?? [];
    if (clocks.length === 0) return;
    charts.push(new Chart(clock, {
      title: `${runs.length > 1 ? `${names[i]}: ` : ""}errors of clocks (size)`, unit: "ns",
      series: clocks.slice(0, most).map((c) => ({ name: c.host, points: c.points.map(([t, e]) => [t - r.begin, Math.abs(e)]).filter((p) => p[0] >= 0) })),
    }));
  });
  return charts;
}

function peak(run, port) {
  let q = 0;
  for (let i = 0; port >= 0 && i < run.frames; i++) q = Math.max(q, run.queue[i * run.ports.length + port]);
  return q;
}

// longest returns the switch port with the longest queue of a run; -1: none has any.
function longest(run) {
  let best = -1, most = 0;
  for (let p = 0; p < run.ports.length; p++) {
    if (run.nodes[run.ports[p].from].host) continue;
    const q = peak(run, p);
    if (q > most) { most = q; best = p; }
  }
  return best;
}

// busiest returns the first connections of the run that carried anything.
function busiest(run) {
  if (!run.packedConns) return [];
  const seen = [];
  for (let c = 0; c < run.conns.length && seen.length < most; c++) if (run.conns[c]) seen.push(c);
  return seen;
}

// about returns a heading, facts and charts of what was selected.
export function about(run, what, clock, scale, select) {
  if (what.port !== undefined) return aboutPort(run, what.port, clock, select);
  if (what.conn !== undefined) return aboutConn(run, what.conn, clock);
  return aboutNode(run, what.node, clock, select);
}

function aboutPort(run, p, clock, select) {
  const port = run.ports[p], facts = [[`${(port.rate_bps / 1e9).toLocaleString("en")} Gb/s`, "rate"]];
  if (port.buffer_bytes) facts.push([bytes(port.buffer_bytes), "buffer"]);
  if (port.ecn_kmax_bytes) facts.push([`${bytes(port.ecn_kmin_bytes || 0)} to ${bytes(port.ecn_kmax_bytes)}`, "ECN marks"]);
  return {
    heading: port.name, facts,
    links: [[run.nodes[port.from].name, () => select({ node: port.from })], [run.nodes[port.to].name, () => select({ node: port.to })]],
    charts: [
      new Chart(clock, { title: "Queue", ...sized(peak(run, p)), series: [{ name: port.name, points: run.series(run.queue, p) }], lines: thresholds(port) }),
      new Chart(clock, { title: "Use of the link", unit: "%", max: 100, series: [{ name: port.name, points: run.series(run.use, p, 100), step: true, color: palette[2] }] }),
      new Chart(clock, { title: "Marked and dropped per frame", unit: "packets", series: [{ name: "marked", points: run.series(run.mark, p), step: true, color: palette[4] }, { name: "dropped", points: run.series(run.drop, p), step: true, color: palette[1] }] }),
    ],
  };
}

function aboutNode(run, i, clock, select) {
  const node = run.nodes[i], ports = run.ports.map((p, k) => [p, k]).filter(([p]) => p.from === i);
  const busy = ports.map(([p, k]) => [peak(run, k), p, k]).sort((a, b) => b[0] - a[0]).slice(0, most);
  const charts = [];
  if (!node.host) {
    charts.push(new Chart(clock, { title: "Longest queues", ...sized(busy[0]?.[0] ?? 0), series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.queue, k) })) }));
  }
  charts.push(new Chart(clock, { title: "Use of its links, outward", unit: "%", max: 100, series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.use, k, 100), step: true })) }));
  const links = busy.map(([, p, k]) => [p.name, () => select({ port: k })]);
  const facts = [[node.tier, "tier"]];
  if (node.host) {
    const conns = run.conns.map((c, k) => [c, k]).filter(([c]) => c && (c.src === node.name || c.dst === node.name));
    if (run.conns.length > 0) facts.push([count(conns.length), "connections"]);
    for (const [c, k] of conns.slice(0, 24)) links.push([`${c.src} to ${c.dst}`, () => select({ conn: k })]);
    const clocks = (run.model.clocks ?? []).find((c) => c.host === node.name);
    if (clocks) charts.push(new Chart(clock, { title: "Error of its clock (size)", unit: "ns", series: [{ name: node.name, points: clocks.points.map(([t, e]) => [t - run.begin, Math.abs(e)]).filter((p) => p[0] >= 0) }] }));
  }
  return { heading: node.name, facts, links, charts };
}

function aboutConn(run, c, clock) {
  const conn = run.conns[c], s = run.connSeries(c), charts = [];
  charts.push(new Chart(clock, { title: "Rate", unit: "Gb/s", series: [{ name: "rate", points: s.rate, step: true }] }));
  if (s.window.length > 0) charts.push(new Chart(clock, { title: "Congestion window", unit: "KB", series: [{ name: "window", points: s.window, step: true, color: palette[1] }] }));
  return { heading: `${conn.src} to ${conn.dst}`, facts: [[bytes(conn.bytes), "sent"], [time(conn.start_us - run.begin), "first message"]], links: [], charts };
}
