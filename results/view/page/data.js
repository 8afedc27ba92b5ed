// Data of one run: what the program wrote (see model.go), unpacked for drawing.

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

// Varints reads the numbers of packed frames (see columns.go), which are below 2^53.
class Varints {
  constructor(text) { this.bytes = bytesOf(text); this.at = 0; }
  next() {
    let v = 0, factor = 1, b;
    do {
      b = this.bytes[this.at++] ?? 0;
      v += (b & 127) * factor;
      factor *= 128;
    } while (b > 127);
    return v;
  }
}

export class Run {
  constructor(model) {
    this.model = model;
    this.title = model.title;
    this.nodes = model.network.nodes;
    this.ports = model.network.ports;
    this.portIndex = new Map(this.ports.map((p, i) => [p.name, i]));
    this.begin = model.begin_us;
    this.conns = model.conns ?? [];
    this.setFrames(model.frames);
    const links = new Map();
    this.ports.forEach((p, i) => {
      const key = p.from < p.to ? `${p.from}-${p.to}` : `${p.to}-${p.from}`;
      if (!links.has(key)) links.set(key, []);
      links.get(key).push(i);
    });
    this.links = [...links.values()];
  }

  // setFrames replaces all frames. A frame has a row for each port that did something: rows first[i]
  // to before first[i + 1], in order of ports, in the columns port, queue, use, mark, drop and pause.
  // Of a port without a row all are 0.
  setFrames(f) {
    const n = f.count, numbers = new Varints(f.rows ?? ""), most = numbers.bytes.length >> 1; // two bytes a row, at least
    this.frames = n;
    this.at = new Float64Array(n);
    this.first = new Int32Array(n + 1);
    const port = new Int32Array(most), queue = new Float32Array(most), use = new Float32Array(most);
    const mark = new Uint32Array(most), drop = new Uint32Array(most), pause = new Uint8Array(most);
    this.total = new Float64Array(n); // bytes that wait in switches
    this.marks = new Float64Array(n); this.drops = new Float64Array(n); this.pauses = new Float64Array(n); // by frame
    this.peaks = new Float64Array(this.ports.length); // longest queue of each port
    this.maxQueue = 0; // of a switch
    let ps = 0, r = 0;
    for (let i = 0; i < n; i++) {
      ps += numbers.next();
      this.at[i] = ps / 1e6;
      const dt = this.at[i] - (i > 0 ? this.at[i - 1] : this.begin);
      for (let left = numbers.next(), p = 0; left > 0; left--, r++) {
        const head = numbers.next(), flags = head & 15;
        p += Math.floor(head / 16);
        port[r] = p;
        const queued = flags & 1 ? numbers.next() : 0;
        queue[r] = queued;
        if (flags & 2) this.marks[i] += mark[r] = numbers.next();
        if (flags & 4) this.drops[i] += drop[r] = numbers.next();
        if (flags & 8) this.pauses[i] += pause[r] = 1;
        const capacity = (this.ports[p].rate_bps * dt) / 8e6, sent = numbers.next();
        use[r] = capacity > 0 ? Math.min(sent / capacity, 1) : 0; // since the frame before
        this.peaks[p] = Math.max(this.peaks[p], queued);
        if (!this.nodes[this.ports[p].from].host) {
          this.total[i] += queued;
          this.maxQueue = Math.max(this.maxQueue, queued);
        }
      }
      this.first[i + 1] = r;
    }
    Object.assign(this, {
      port: port.slice(0, r), queue: queue.slice(0, r), use: use.slice(0, r), mark: mark.slice(0, r), drop: drop.slice(0, r), pause: pause.slice(0, r),
    });
    this.end = n > 0 ? this.at[n - 1] : this.model.end_us;
    this.connRows = null;
    this.packedConns = f.conns;
  }

  // value returns what a column has of a port in a frame.
  value(column, frame, port) {
    const r = frame < 0 ? -1 : find(this.port, this.first[frame], this.first[frame + 1], port);
    return r < 0 ? 0 : column[r];
  }

  get length() { return Math.max(this.end, this.model.end_us || 0) - this.begin; }

  // frameAt returns the last frame at or before t microseconds after the workload began; -1: none.
  frameAt(t) {
    let lo = 0, hi = this.frames;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.at[mid] - this.begin <= t + 1e-9) lo = mid + 1; else hi = mid;
    }
    return lo - 1;
  }

  time(frame) { return this.at[frame] - this.begin; }

  // series returns the values of a port over time.
  series(column, port, scale = 1) {
    const out = [];
    for (let i = 0; i < this.frames; i++) out.push([this.time(i), this.value(column, i, port) * scale]);
    return out;
  }

  // sentByHosts returns the sum of the rates of all links from hosts over time, in Gb/s.
  sentByHosts() {
    const out = [];
    for (let i = 0; i < this.frames; i++) {
      let sum = 0;
      for (let r = this.first[i]; r < this.first[i + 1]; r++) {
        const p = this.ports[this.port[r]];
        if (this.nodes[p.from].host) sum += this.use[r] * p.rate_bps;
      }
      out.push([this.time(i), sum / 1e9]);
    }
    return out;
  }

  // connSeries returns rate in Gb/s and window in bytes of a connection over time.
  connSeries(conn) {
    if (!this.packedConns) return { rate: [], window: [] };
    this.connRows ??= unpackConns(this.packedConns, this.frames);
    const rows = this.connRows, rate = [], window = [];
    let w = 0, seen = false, sum = 0, span = 0;
    for (let i = 0; i < this.frames; i++) {
      const r = find(rows.conn, rows.first[i], rows.first[i + 1], conn);
      const t = this.time(i), dt = i > 0 ? t - this.time(i - 1) : t;
      let bytes = 0;
      if (r >= 0) { bytes = rows.arrived[r]; w = rows.window[r]; seen = true; }
      sum += bytes; span += dt; // packets arrive whole: over less than a round trip their rate says little
      if (span >= Math.max(this.length / 150, this.model.network.base_rtt_us ?? 0) || i === this.frames - 1) {
        rate.push([t - span, span > 0 ? (sum * 8) / span / 1e3 : 0]);
        sum = 0; span = 0;
      }
      if (seen && w > 0) window.push([t, w]);
    }
    return { rate, window };
  }

  // pathsOf returns the ports on shortest paths from one node to another, by name. Which of them a
  // flow takes is not recorded.
  pathsOf(src, dst) {
    const from = this.nodes.findIndex((n) => n.name === src), to = this.nodes.findIndex((n) => n.name === dst), out = new Set();
    if (from < 0 || to < 0) return out;
    if (!this.leading) { // ports by the node that they lead to
      this.leading = this.nodes.map(() => []);
      this.ports.forEach((p, i) => this.leading[p.to].push(i));
    }
    const hops = new Int32Array(this.nodes.length).fill(-1), queue = [to];
    hops[to] = 0;
    for (let i = 0; i < queue.length && hops[from] < 0; i++) {
      for (const p of this.leading[queue[i]]) {
        const n = this.ports[p].from;
        if (hops[n] < 0) { hops[n] = hops[queue[i]] + 1; queue.push(n); }
      }
    }
    const on = new Set([from]);
    for (let d = hops[from]; d > 0; d--) {
      for (const n of queue.filter((k) => hops[k] === d - 1)) {
        for (const p of this.leading[n]) {
          const k = this.ports[p].from;
          if (hops[k] === d && on.has(k)) { out.add(p); on.add(n); }
        }
      }
    }
    return out;
  }

  // events returns the instants of an event's kind, in order.
  events(kind) {
    if (kind === "fault") return (this.model.faults ?? []).map((f) => f.from_us - this.begin).filter((t) => t >= 0);
    const counts = { drop: this.drops, mark: this.marks, pause: this.pauses }[kind];
    const out = [];
    for (let i = 0; i < this.frames; i++) if (counts[i] > 0 && !(counts[i - 1] > 0)) out.push(this.time(i));
    return out;
  }

  // down reports whether a fault cuts the link between two nodes at t.
  faultsAt(t) {
    return (this.model.faults ?? []).filter((f) => t >= f.from_us - this.begin &&
      (f.until_us ? t < f.until_us - this.begin : !f.once || t < f.from_us - this.begin + this.length / 100));
  }
}

function find(column, lo, hi, value) {
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (column[mid] === value) return mid;
    if (column[mid] < value) lo = mid + 1; else hi = mid;
  }
  return -1;
}

// unpackConns returns the rows of connections: row first[i] is the first of frame i.
function unpackConns(text, frames) {
  const numbers = new Varints(text), first = [], conn = [], arrived = [], window = [];
  for (let i = 0; i < frames; i++) {
    first.push(conn.length);
    for (let left = numbers.next(), c = 0; left > 0; left--) {
      c += numbers.next();
      conn.push(c); arrived.push(numbers.next()); window.push(numbers.next());
    }
  }
  first.push(conn.length);
  return { first, conn, arrived, window };
}

// unpack returns the models in the page (see Page in page.go).
export async function unpack(text) {
  const [head, ...frames] = text.split(".");
  const stream = new Blob([bytesOf(head)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const models = JSON.parse(await new Response(stream).text());
  models.forEach((m, i) => { m.frames.rows = frames[2 * i]; m.frames.conns = frames[2 * i + 1]; });
  return models;
}
