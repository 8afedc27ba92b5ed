// Charts of what was selected: a port, a host or switch, a flow.

import { Chart, valueAt } from "./chart.js";
import { bytes, colorsOf, count, palette, quantity, shown, time } from "./format.js";

const lines = 6; // of a chart in colour
const faint = 100; // others behind them

// thresholds returns the marking thresholds of a port as lines of a chart.
function thresholds(port) {
  const out = [];
  if (port.ecn_kmax_bytes) out.push({ y: port.ecn_kmax_bytes, name: "Kmax" });
  if (port.ecn_kmin_bytes) out.push({ y: port.ecn_kmin_bytes, name: "Kmin" });
  return out;
}

// marking returns the thresholds of ports, the highest first: those that differ in the colours of
// their ports.
function marking(ports) {
  const all = ports.map(([p, color]) => thresholds(p).map((l) => ({ ...l, color })));
  const plain = all.map((lines) => lines.map((l) => l.y).join());
  if (plain.every((text) => text === plain[0])) return thresholds(ports[0][0]);
  return all.flat().sort((a, b) => b.y - a.y);
}

// overview returns the charts of the whole network, those of several runs on one scale. select is
// called with a run and what of it was clicked.
export function overview(runs, clock, select) {
  const names = runs.map((r) => r.title), colors = colorsOf(runs), of = (i, text) => (runs.length > 1 ? `${text}: ${names[i]}` : text);
  const charts = [], longest = runs.map(longestQueue), peaks = longest.map((p, i) => (p < 0 ? 0 : runs[i].peaks[p]));
  const bare = runs.map((_, i) => i).filter((i) => runs[i].conns.length === 0); // of programs, whose flows are not known
  if (bare.length > 0) {
    charts.push(new Chart(clock, {
      title: "Sent by all hosts", unit: "Gb/s",
      series: bare.map((i) => ({ name: names[i], color: colors[i], points: runs[i].sentByHosts(), step: true })),
    }));
  }
  const waiting = Math.max(...runs.map((r) => r.total.reduce((a, b) => Math.max(a, b), 0)));
  if (waiting > 1.02 * Math.max(...peaks)) { // more than one queue
    charts.push(new Chart(clock, {
      title: "Waiting in all switches", unit: "B",
      series: runs.map((r, i) => ({ name: names[i], color: colors[i], points: Array.from(r.total, (v, k) => [r.time(k), v]) })),
    }));
  }
  const ports = longest.map((p, i) => runs[i].ports[p]), queued = runs.map((_, i) => i).filter((i) => ports[i]);
  const same = queued.every((i) => ports[i].name === ports[queued[0]].name);
  if (queued.length > 0) {
    charts.push(new Chart(clock, {
      title: `Longest queue${same ? `, ${shown(ports[queued[0]].name)}` : ""}`, unit: "B",
      series: queued.map((i) => ({
        name: same ? names[i] : `${names[i]}, ${shown(ports[i].name)}`, points: runs[i].series(runs[i].queue, longest[i]), color: colors[i],
      })),
      lines: marking(queued.map((i) => [ports[i], colors[i]])),
    }));
  }
  const rates = runs.map((r, i) => largest(r).map((c) => ({
    name: flow(r.conns[c]), points: r.connSeries(c).rate, step: true, pick: () => select(i, { conn: c }),
  })));
  const top = (all) => Math.max(0, ...all.flat().map((s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0)));
  const split = (all) => ({ series: all.slice(0, lines), others: all.slice(lines) });
  runs.forEach((r, i) => {
    if (rates[i].length === 0) return;
    const all = r.conns.filter((c) => c).length, shown = rates[i].length;
    charts.push(new Chart(clock, {
      title: of(i, all > shown ? `Rates of ${shown} of ${count(all)} flows` : "Rates of flows"), unit: "Gb/s", max: top(rates), ...split(rates[i]),
    }));
  });
  const errors = runs.map((r, i) => apart(r, (node) => select(i, { node })));
  runs.forEach((r, i) => {
    if (errors[i].length > 0) charts.push(new Chart(clock, { title: of(i, "Clocks, apart from their mean"), unit: "ns", max: top(errors), ...split(errors[i]) }));
  });
  return charts;
}

// apart returns how far the clocks of a run are from the mean of all, whatever the true time:
// one-way delays show that. pick is called with the host of a clock.
function apart(run, pick) {
  const clocks = run.model.clocks ?? [];
  const means = new Map(); // most clocks have points at the same instants
  const mean = (t) => {
    if (!means.has(t)) means.set(t, clocks.reduce((sum, c) => sum + valueAt(c.points, t), 0) / clocks.length);
    return means.get(t);
  };
  return clocks.map((c) => ({
    name: c.host, points: c.points.map(([t, e]) => [t - run.begin, Math.abs(e - mean(t))]).filter((p) => p[0] >= 0),
    pick: () => pick(run.nodes.findIndex((n) => n.name === c.host)),
  }));
}

const flow = (c) => `${c.src} to ${c.dst}`;

// longestQueue returns the switch port with the longest queue of a run; -1: none has any.
function longestQueue(run) {
  let best = -1, most = 0;
  for (let p = 0; p < run.ports.length; p++) {
    if (run.nodes[run.ports[p].from].host) continue;
    if (run.peaks[p] > most) { most = run.peaks[p]; best = p; }
  }
  return best;
}

// largest returns the connections of the run that carried most.
function largest(run) {
  if (!run.packedConns) return [];
  const all = run.conns.map((_, c) => c).filter((c) => run.conns[c]);
  return all.sort((a, b) => run.conns[b].bytes - run.conns[a].bytes || a - b).slice(0, lines + faint);
}

// about returns a heading, facts and charts of what was selected.
export function about(run, what, clock, scale, select) {
  if (what.port !== undefined) return aboutPort(run, what.port, clock, select);
  if (what.conn !== undefined) return aboutConn(run, what.conn, clock);
  return aboutNode(run, what.node, clock, select);
}

function aboutPort(run, p, clock, select) {
  const port = run.ports[p], facts = [[quantity(port.rate_bps / 1e9, "Gb/s"), "rate"]];
  if (port.buffer_bytes) facts.push([bytes(port.buffer_bytes), "buffer"]);
  if (port.ecn_kmax_bytes) facts.push([`${bytes(port.ecn_kmin_bytes || 0)} to ${bytes(port.ecn_kmax_bytes)}`, "ECN marks"]);
  return {
    heading: shown(port.name), facts,
    links: [[run.nodes[port.from].name, () => select({ node: port.from })], [run.nodes[port.to].name, () => select({ node: port.to })]],
    charts: [
      new Chart(clock, { title: "Queue", unit: "B", series: [{ name: port.name, points: run.series(run.queue, p) }], lines: thresholds(port) }),
      new Chart(clock, { title: "Use of the link", unit: "%", max: 100, series: [{ name: port.name, points: run.series(run.use, p, 100), step: true, color: palette[2] }] }),
      new Chart(clock, { title: "Marked and dropped per frame", unit: "packets", series: [{ name: "marked", points: run.series(run.mark, p), step: true, color: palette[4] }, { name: "dropped", points: run.series(run.drop, p), step: true, color: palette[1] }] }),
    ],
  };
}

function aboutNode(run, i, clock, select) {
  const node = run.nodes[i], ports = run.ports.map((p, k) => [p, k]).filter(([p]) => p.from === i);
  const busy = ports.map(([p, k]) => [run.peaks[k], p, k]).sort((a, b) => b[0] - a[0]).slice(0, lines);
  const charts = [];
  if (!node.host) {
    charts.push(new Chart(clock, { title: busy.length < ports.length ? `Longest queues, of ${ports.length} ports` : "Queues of its ports", unit: "B", series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.queue, k) })) }));
  }
  charts.push(new Chart(clock, { title: busy.length < ports.length ? `Use of ${busy.length} of ${ports.length} links, outward` : "Use of its links, outward", unit: "%", max: 100, series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.use, k, 100), step: true })) }));
  const links = busy.map(([, p, k]) => [shown(p.name), () => select({ port: k })]);
  const facts = [[node.tier, "tier"]];
  if (node.host) {
    const conns = run.conns.map((c, k) => [c, k]).filter(([c]) => c && (c.src === node.name || c.dst === node.name));
    if (run.conns.length > 0) facts.push([count(conns.length), "connections"]);
    for (const [c, k] of conns.slice(0, 24)) links.push([flow(c), () => select({ conn: k })]);
    const clocks = (run.model.clocks ?? []).find((c) => c.host === node.name);
    if (clocks) charts.push(new Chart(clock, { title: "Error of its clock (size)", unit: "ns", series: [{ name: node.name, points: clocks.points.map(([t, e]) => [t - run.begin, Math.abs(e)]).filter((p) => p[0] >= 0) }] }));
  }
  return { heading: node.name, facts, links, charts };
}

function aboutConn(run, c, clock) {
  const conn = run.conns[c], s = run.connSeries(c), charts = [];
  charts.push(new Chart(clock, { title: "Rate", unit: "Gb/s", series: [{ name: "rate", points: s.rate, step: true }] }));
  if (s.window.length > 0) charts.push(new Chart(clock, { title: "Congestion window", unit: "B", series: [{ name: "window", points: s.window, step: true, color: palette[1] }] }));
  return { heading: flow(conn), facts: [[bytes(conn.bytes), "sent"], [time(conn.start_us - run.begin), "first message"]], links: [], charts };
}
