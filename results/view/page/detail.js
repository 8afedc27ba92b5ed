// Charts of what was selected: a port, a host or switch, a flow.

import { Chart, valueAt } from "./chart.js";
import { bytes, colorsOf, count, palette, shown, time } from "./format.js";

const lines = 6; // in a chart

// sized returns the unit of a chart of bytes up to max, for Chart.
function sized(max) {
  const [unit, factor] = max >= 2e6 ? ["MB", 1e-6] : ["KB", 1e-3];
  return { unit, factor, say: (v) => bytes(v / factor) };
}

// thresholds returns the marking thresholds of a port as lines of a chart.
function thresholds(port) {
  const out = [];
  if (port.ecn_kmax_bytes) out.push({ y: port.ecn_kmax_bytes, name: "Kmax" });
  if (port.ecn_kmin_bytes) out.push({ y: port.ecn_kmin_bytes, name: "Kmin" });
  return out;
}

// overview returns the charts of the whole network, those of several runs on one scale.
export function overview(runs, clock) {
  const names = runs.map((r) => r.title), colors = colorsOf(runs), of = (i, text) => (runs.length > 1 ? `${text}: ${names[i]}` : text);
  const charts = [], longest = runs.map(longestQueue), peaks = longest.map((p, i) => (p < 0 ? 0 : runs[i].peaks[p]));
  const waiting = Math.max(...runs.map((r) => r.total.reduce((a, b) => Math.max(a, b), 0)));
  if (waiting > 1.02 * Math.max(...peaks)) { // more than one queue
    charts.push(new Chart(clock, {
      title: "Waiting in all switches", ...sized(waiting),
      series: runs.map((r, i) => ({ name: names[i], color: colors[i], points: Array.from(r.total, (v, k) => [r.time(k), v]) })),
    }));
  }
  const ports = longest.map((p, i) => runs[i].ports[p]), queued = runs.map((_, i) => i).filter((i) => ports[i]);
  const same = queued.every((i) => ports[i].name === ports[queued[0]].name);
  if (queued.length > 0) {
    charts.push(new Chart(clock, {
      title: `Longest queue${same ? `, ${shown(ports[queued[0]].name)}` : ""}`, ...sized(Math.max(...peaks)),
      series: queued.map((i) => ({
        name: same ? names[i] : `${names[i]}, ${shown(ports[i].name)}`, points: runs[i].series(runs[i].queue, longest[i]), color: colors[i],
      })),
      lines: thresholds(ports[queued[0]]),
    }));
  }
  const rates = runs.map((r) => largest(r).map((c) => ({ name: flow(r.conns[c]), points: r.connSeries(c).rate, step: true })));
  const fastest = Math.max(0, ...rates.flat().map((s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0)));
  runs.forEach((r, i) => {
    if (rates[i].length === 0) return;
    const all = r.conns.filter((c) => c).length;
    charts.push(new Chart(clock, {
      title: of(i, all > rates[i].length ? `Rates of ${rates[i].length} of ${count(all)} flows` : "Rates of flows"), unit: "Gb/s", max: fastest, series: rates[i],
    }));
  });
  const errors = runs.map(apart);
  const widest = Math.max(0, ...errors.flat().map((s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0)));
  runs.forEach((r, i) => {
    if (errors[i].length > 0) charts.push(new Chart(clock, { title: of(i, "Clocks, apart from their mean"), unit: "ns", max: widest, series: errors[i] }));
  });
  return charts;
}

// apart returns how far the first clocks of a run are from the mean of all, whatever the true time:
// one-way delays show that.
function apart(run) {
  const clocks = run.model.clocks ?? [];
  const mean = (t) => clocks.reduce((sum, c) => sum + valueAt(c.points, t), 0) / clocks.length;
  return clocks.slice(0, lines).map((c) => ({
    name: c.host, points: c.points.map(([t, e]) => [t - run.begin, Math.abs(e - mean(t))]).filter((p) => p[0] >= 0),
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
  return all.sort((a, b) => run.conns[b].bytes - run.conns[a].bytes || a - b).slice(0, lines);
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
    heading: shown(port.name), facts,
    links: [[run.nodes[port.from].name, () => select({ node: port.from })], [run.nodes[port.to].name, () => select({ node: port.to })]],
    charts: [
      new Chart(clock, { title: "Queue", ...sized(run.peaks[p]), series: [{ name: port.name, points: run.series(run.queue, p) }], lines: thresholds(port) }),
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
    charts.push(new Chart(clock, { title: "Longest queues", ...sized(busy[0]?.[0] ?? 0), series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.queue, k) })) }));
  }
  charts.push(new Chart(clock, { title: "Use of its links, outward", unit: "%", max: 100, series: busy.map(([, p, k]) => ({ name: p.name, points: run.series(run.use, k, 100), step: true })) }));
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
  if (s.window.length > 0) charts.push(new Chart(clock, { title: "Congestion window", unit: "KB", series: [{ name: "window", points: s.window, step: true, color: palette[1] }] }));
  return { heading: flow(conn), facts: [[bytes(conn.bytes), "sent"], [time(conn.start_us - run.begin), "first message"]], links: [], charts };
}
