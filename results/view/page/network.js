// The network at one instant, on a canvas: links coloured by use, queues as bars at their ports.

import { bytes, level, percent, shown, styles } from "./format.js";

const detail = 1200; // with more ports, queues of a switch are one mark and idle links are not drawn
const steps = 16; // shades of use
const maxBundles = 4000; // lines of a large network: drawing them is what its frames cost

// shade returns how strongly a link is drawn that is busy for a share of the time; 0: idle.
const shade = (use) => (use > 0.002 ? Math.max(1, Math.round(use * steps)) : 0);

export class NetworkView {
  // scale is shared by all views, so that equal queues have equal bars. select is called with what
  // was clicked.
  constructor(run, scale, select) {
    this.run = run;
    this.scale = scale;
    this.select = select;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.zoom = 1;
    this.pan = [0, 0];
    this.t = 0;
    this.selected = null;
    this.route = new Set(); // ports on the selected flow's shortest paths
    this.listen();
  }

  listen() {
    let from = null, moved = false;
    this.canvas.addEventListener("pointerdown", (e) => {
      from = [e.offsetX, e.offsetY, ...this.pan]; moved = false;
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (from) {
        const dx = e.offsetX - from[0], dy = e.offsetY - from[1];
        moved = moved || Math.abs(dx) + Math.abs(dy) > 4;
        if (moved) { this.pan = [from[2] + dx, from[3] + dy]; this.draw(); }
        return;
      }
      this.hover(e.offsetX, e.offsetY);
    });
    this.canvas.addEventListener("pointerup", (e) => {
      if (from && !moved) this.select(this.find(e.offsetX, e.offsetY));
      from = null;
    });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoomAt(Math.exp(-e.deltaY / 300), e.offsetX, e.offsetY);
    }, { passive: false });
    this.canvas.addEventListener("dblclick", () => { this.zoom = 1; this.pan = [0, 0]; this.draw(); });
  }

  zoomAt(factor, x, y) {
    const zoom = Math.min(Math.max(this.zoom * factor, 1), 60), f = zoom / this.zoom;
    this.pan = [x - (x - this.pan[0]) * f, y - (y - this.pan[1]) * f];
    this.zoom = zoom;
    this.draw();
  }

  // fit computes the transformation from the drawing to the canvas.
  fit() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    const w = Math.max(box.width, 1), h = Math.max(box.height, 1);
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
    }
    if (!this.bounds) {
      const xs = this.run.nodes.map((n) => n.x), ys = this.run.nodes.map((n) => n.y);
      const min = (a) => a.reduce((x, y) => Math.min(x, y), Infinity), max = (a) => a.reduce((x, y) => Math.max(x, y), -Infinity);
      this.bounds = [min(xs), min(ys), max(xs), max(ys)];
    }
    const [x0, y0, x1, y1] = this.bounds, pad = 34;
    this.kx = ((w - 2 * pad) / Math.max(x1 - x0, 1)) * this.zoom;
    this.ky = ((h - 2 * pad) / Math.max(y1 - y0, 1)) * this.zoom;
    const lone = x1 - x0 < 1;
    this.x = (x) => (lone ? w / 2 : pad * this.zoom + (x - x0) * this.kx) + this.pan[0];
    this.y = (y) => pad * this.zoom + (y - y0) * this.ky + this.pan[1];
    this.size = Math.min(Math.max(Math.min((w * this.zoom) / Math.sqrt(this.run.nodes.length) / 7, 13 * styles().scale), 1.5), 30);
    return [w, h, ratio];
  }

  show(t) { this.t = t; this.draw(); }

  draw() {
    const g = this.canvas.getContext("2d"), s = styles(), run = this.run;
    const [w, h, ratio] = this.fit();
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    const frame = run.frameAt(this.t), rows = frame < 0 ? [0, 0] : [run.first[frame], run.first[frame + 1]];
    const coarse = run.ports.length > detail && this.zoom < 4;
    if (coarse) this.drawBundles(g, s, rows); else this.drawLinks(g, s, rows);
    this.drawMarked(g, s, rows);
    this.drawQueues(g, s, rows, coarse);
    if (coarse) this.drawDots(g, s); else this.drawNodes(g, s);
    this.drawFaults(g, s);
    if (this.longest) this.label(g, s, this.longest); // above the names of nodes
  }

  ends(p) {
    const a = this.run.nodes[this.run.ports[p].from], b = this.run.nodes[this.run.ports[p].to];
    const ax = this.x(a.x), ay = this.y(a.y), bx = this.x(b.x), by = this.y(b.y);
    const d = Math.hypot(bx - ax, by - ay) || 1, off = Math.min(2.2, this.size / 4);
    const ox = (-(by - ay) / d) * off, oy = ((bx - ax) / d) * off; // each direction on its own side
    return [ax + ox, ay + oy, bx + ox, by + oy, d];
  }

  // stroke draws the lines of ports.
  stroke(g, ports, color, alpha, width) {
    g.beginPath();
    for (const p of ports) {
      const [ax, ay, bx, by] = this.ends(p);
      g.moveTo(ax, ay); g.lineTo(bx, by);
    }
    g.globalAlpha = alpha; g.strokeStyle = color; g.lineWidth = width;
    g.stroke();
  }

  drawLinks(g, s, rows) {
    const run = this.run, shades = Array.from({ length: steps + 1 }, () => []), down = this.downPorts();
    const busy = new Float32Array(run.ports.length);
    for (let r = rows[0]; r < rows[1]; r++) busy[run.port[r]] = run.use[r];
    for (let p = 0; p < run.ports.length; p++) if (!down.has(p)) shades[shade(busy[p])].push(p);
    this.drawRoute(g, s, down);
    shades.forEach((list, k) => {
      const alpha = k === 0 ? 0.55 : 0.35 + (0.65 * k) / steps, wide = (0.8 + (2.2 * k) / steps) * Math.max(s.scale, 1);
      const color = k === 0 ? s.line : s.busy;
      if (this.route.size === 0) { this.stroke(g, list, color, alpha, wide); return; }
      this.stroke(g, list.filter((p) => !this.route.has(p)), color, alpha / 4, wide);
      this.stroke(g, list.filter((p) => this.route.has(p)), color, Math.max(alpha, 0.6), Math.max(wide, 1));
    });
  }

  // drawRoute draws the paths of the selected flow beneath the links, wide.
  drawRoute(g, s, down) {
    if (this.route.size === 0) return;
    g.lineCap = "round";
    this.stroke(g, [...this.route].filter((p) => !down.has(p)), s.route, 0.75, 10 * Math.max(s.scale, 1));
    g.lineCap = "butt";
  }

  // bundle joins links whose ends are closer than a few pixels, so that at most maxBundles are left:
  // bundles has their ends, four numbers each, and bundleOf the bundle of each port. It changes only
  // as the view moves.
  bundle() {
    const key = [this.canvas.width, this.canvas.height, this.zoom, ...this.pan].join();
    if (this.bundled === key) return;
    this.bundled = key;
    const run = this.run;
    for (let grid = 3; ; grid *= 1.5) {
      const cells = new Map(), seen = new Map(), ends = [];
      const cell = run.nodes.map((n) => {
        const at = Math.round(this.x(n.x) / grid) * 65536 + Math.round(this.y(n.y) / grid);
        if (!cells.has(at)) cells.set(at, cells.size);
        return cells.get(at);
      });
      this.bundleOf = new Int32Array(run.ports.length);
      run.ports.forEach((p, i) => {
        const a = cell[p.from], b = cell[p.to], pair = Math.min(a, b) * cells.size + Math.max(a, b);
        let k = seen.get(pair);
        if (k === undefined) {
          k = seen.size;
          seen.set(pair, k);
          const from = run.nodes[p.from], to = run.nodes[p.to];
          ends.push(this.x(from.x), this.y(from.y), this.x(to.x), this.y(to.y));
        }
        this.bundleOf[i] = k;
      });
      this.bundles = ends;
      if (seen.size <= maxBundles || grid > 12) return;
    }
  }

  // drawBundles draws the links of a large network: each bundle as its busiest link.
  drawBundles(g, s, rows) {
    this.bundle();
    const run = this.run, use = new Float32Array(this.bundles.length / 4), down = this.downPorts();
    for (let r = rows[0]; r < rows[1]; r++) use[this.bundleOf[run.port[r]]] = Math.max(use[this.bundleOf[run.port[r]]], run.use[r]);
    const shades = Array.from({ length: steps / 4 + 1 }, () => []); // fewer: each is a pass over the canvas
    for (let k = 0; k < use.length; k++) shades[Math.ceil(shade(use[k]) / 4)].push(4 * k);
    g.drawImage(this.idle(s), 0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.drawRoute(g, s, down);
    const faint = Math.max(Math.min(1, 3000 / use.length), 0.25); // many lines add up
    shades.forEach((list, k) => { if (k > 0) this.lines(g, list, s.busy, (0.2 + (0.6 * k * 4) / steps) * faint); });
  }

  // lines draws bundles, by where their numbers begin.
  lines(g, list, color, alpha) {
    const all = this.bundles;
    g.beginPath();
    for (const e of list) { g.moveTo(all[e], all[e + 1]); g.lineTo(all[e + 2], all[e + 3]); }
    g.globalAlpha = alpha; g.strokeStyle = color; g.lineWidth = 0.7;
    g.stroke();
    g.globalAlpha = 1;
  }

  // idle returns a picture of the idle links and the hosts of a large network. It changes only as the
  // view or the colours do.
  idle(s) {
    const key = [this.bundled, s.line, s.host].join();
    if (this.pictured === key) return this.picture;
    this.pictured = key;
    this.picture ??= document.createElement("canvas");
    this.picture.width = this.canvas.width; this.picture.height = this.canvas.height;
    const g = this.picture.getContext("2d"), ratio = window.devicePixelRatio || 1, wide = this.size * 0.6;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const all = Array.from({ length: this.bundles.length / 4 }, (_, k) => 4 * k);
    this.lines(g, all, s.line, 0.15 * Math.max(Math.min(1, 3000 / all.length), 0.25));
    g.fillStyle = s.host;
    for (const n of this.run.nodes) if (n.host) g.fillRect(this.x(n.x) - wide / 2, this.y(n.y) - wide / 2, wide, wide);
    return this.picture;
  }

  // drawMarked draws links that are down, selected or paused.
  drawMarked(g, s, rows) {
    const run = this.run, down = this.downPorts(), paused = [];
    if (down.size > 0) {
      g.setLineDash([3, 5]);
      this.stroke(g, down, s.line, 1, 1);
      g.setLineDash([]);
    }
    if (this.selected?.port !== undefined) this.stroke(g, [this.selected.port], s.text, 1, 4);
    for (let r = rows[0]; r < rows[1]; r++) if (run.pause[r]) paused.push(run.port[r]);
    g.setLineDash([4, 4]);
    this.stroke(g, paused, s.text, 1, 2);
    g.setLineDash([]);
    g.globalAlpha = 1;
  }

  // drawQueues draws a bar at the start of each port; in a large network it finds each switch's
  // longest queue, for drawDots.
  drawQueues(g, s, rows, coarse) {
    const run = this.run, full = Math.max(this.scale.max, 1);
    this.worst = coarse ? new Map() : null;
    this.longest = null;
    for (let r = rows[0]; r < rows[1]; r++) {
      const q = run.queue[r], p = run.port[r], port = run.ports[p];
      if (run.nodes[port.from].host) continue;
      if (coarse) {
        if (q > (this.worst.get(port.from)?.q ?? 0)) this.worst.set(port.from, { q, p });
        continue;
      }
      const dropped = run.drop[r], marked = run.mark[r];
      if (!q && !dropped && !marked) continue;
      const [ax, ay, bx, by, d] = this.ends(p), start = Math.min(this.size * 1.3, d / 3);
      const ux = (bx - ax) / d, uy = (by - ay) / d, long = this.barLength(d, s) * Math.min(q / full, 1);
      const wide = Math.max(4, this.size * 0.85), x = ax + ux * start, y = ay + uy * start;
      g.beginPath(); g.moveTo(x, y); g.lineTo(x + ux * Math.max(long, q ? 2 : 0), y + uy * Math.max(long, q ? 2 : 0));
      g.strokeStyle = s.levels[level(port, q)]; g.lineWidth = wide; g.stroke();
      if (marked) { g.beginPath(); g.arc(x + ux * long, y + uy * long, wide * 0.55, 0, 7); g.fillStyle = s.levels[1]; g.fill(); g.strokeStyle = s.back; g.lineWidth = 1; g.stroke(); }
      if (dropped) this.cross(g, x + ux * (long + wide), y + uy * (long + wide), wide, s.alert);
      if (q > (this.longest?.q ?? 0)) this.longest = { q, x: x + ux * long, y: y + uy * long, ux, uy };
    }
  }

  // barLength returns how long a link's bar is for the longest queue of the page.
  barLength(d, s = styles()) { return Math.min(d * 0.55, Math.max(70 * s.scale, this.canvas.clientHeight * 0.3)); }

  // label writes the bytes of a queue beside the end of its bar, on the side away from the middle.
  label(g, s, { q, x, y, ux, uy }) {
    const font = Math.min(Math.max(13, this.size * 1.3), 16) * s.scale, text = bytes(q), side = ux < 0 ? -1 : 1;
    g.font = `bold ${font}px "Liberation Sans", Arial, Helvetica, sans-serif`;
    const wide = g.measureText(text).width, left = x + side * (this.size * 0.8 + 4) - (side < 0 ? wide : 0);
    g.textAlign = "left"; g.textBaseline = "middle"; g.strokeStyle = s.back; g.lineWidth = 4; g.lineJoin = "round"; g.fillStyle = s.text;
    const at = [Math.min(Math.max(left, 2), this.canvas.clientWidth - wide - 2), y - Math.sign(uy) * font * 0.5];
    g.strokeText(text, ...at); g.fillText(text, ...at);
  }

  cross(g, x, y, r, color) {
    g.beginPath();
    g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r);
    g.strokeStyle = color; g.lineWidth = 2.5; g.stroke();
  }

  // drawDots draws the switches of a large network in the colours of their longest queues. Hosts are in
  // the picture of what is idle.
  drawDots(g, s) {
    const run = this.run, r = this.size, wide = r * 1.7, high = r * 1.1;
    run.nodes.forEach((n, i) => {
      if (n.host) return;
      const worst = this.worst.get(i);
      g.fillStyle = worst ? s.levels[level(run.ports[worst.p], worst.q)] : s.switch;
      g.fillRect(this.x(n.x) - wide / 2, this.y(n.y) - high / 2, wide, high);
    });
    const own = run.nodes[this.selected?.node];
    if (own) { g.strokeStyle = s.text; g.lineWidth = 3; g.strokeRect(this.x(own.x) - r, this.y(own.y) - r, 2 * r, 2 * r); }
  }

  drawNodes(g, s) {
    const run = this.run, r = this.size, font = Math.max(11, Math.min(r * 1.05, 15)) * s.scale;
    const label = run.nodes.length <= 80 || this.zoom > 3;
    const hosts = run.nodes.filter((n) => n.host).length;
    g.font = `${font}px "Liberation Sans", Arial, Helvetica, sans-serif`; g.textAlign = "center"; g.textBaseline = "middle";
    run.nodes.forEach((n, i) => {
      const x = this.x(n.x), y = this.y(n.y);
      if (x < -20 || y < -20 || x > this.canvas.clientWidth + 20 || y > this.canvas.clientHeight + 20) return;
      g.beginPath();
      if (n.host) { const q = hosts > 200 && this.zoom < 3 ? 0.6 : 1; g.arc(x, y, (r / 2) * q, 0, 7); } else g.rect(x - r * 0.85, y - r * 0.55, r * 1.7, r * 1.1);
      g.fillStyle = n.host ? s.host : s.switch;
      g.fill();
      g.strokeStyle = s.text; g.lineWidth = this.selected?.node === i ? 3 : 0.8; g.stroke();
      if (label && this.named(g, n, i)) {
        g.fillStyle = s.text;
        const beside = !n.host && this.between(i);
        g.textAlign = beside ? "right" : "center";
        const at = beside ? [x - r * 0.85 - 5, y] : [x, n.host ? y + r / 2 + font * 0.75 : y - r * 0.55 - font * 0.65];
        g.strokeStyle = s.back; g.lineWidth = 4; g.lineJoin = "round";
        g.strokeText(n.name, ...at); // a halo, so that links do not cross the name
        g.fillText(n.name, ...at);
      }
    });
  }

  // between reports whether links lead up and down from a node, so that its name belongs beside it.
  between(i) {
    if (!this.updown) {
      this.updown = this.run.nodes.map(() => 0);
      for (const p of this.run.ports) {
        const d = this.run.nodes[p.to].y - this.run.nodes[p.from].y;
        this.updown[p.from] |= d < 0 ? 1 : d > 0 ? 2 : 4;
      }
    }
    return this.updown[i] === 3;
  }

  // named reports whether a node gets its name: of a row of hosts every one, or every second or third,
  // so that names do not touch.
  named(g, n, i) {
    if (!n.host) return true;
    if (!this.row) { // place of a host in its row, and what is closest there
      const rows = new Map();
      this.run.nodes.forEach((m, k) => { if (m.host) rows.has(m.y) ? rows.get(m.y).push(k) : rows.set(m.y, [k]); });
      this.row = new Map();
      for (const list of rows.values()) {
        list.sort((a, b) => this.run.nodes[a].x - this.run.nodes[b].x);
        const gap = list.slice(1).reduce((d, k, at) => Math.min(d, this.run.nodes[k].x - this.run.nodes[list[at]].x), Infinity);
        const longest = list.reduce((a, k) => (this.run.nodes[k].name.length > a.length ? this.run.nodes[k].name : a), "");
        list.forEach((k, at) => this.row.set(k, { at, gap, longest }));
      }
    }
    const r = this.row.get(i), need = g.measureText(r.longest).width + 4;
    return r.gap * this.kx >= need || r.at % Math.ceil(need / Math.max(r.gap * this.kx, 1)) === 0;
  }

  drawFaults(g, s) {
    for (const f of this.run.faultsAt(this.t)) {
      for (const [x, y] of this.placesOf(f)) this.cross(g, x, y, this.size * 0.8, s.alert);
    }
  }

  // downPorts returns the ports whose link a fault has cut at the present instant.
  downPorts() {
    const run = this.run, out = new Set();
    for (const f of run.faultsAt(this.t)) {
      if (!f.link || f.what !== "down") continue;
      run.ports.forEach((p, i) => {
        const a = run.nodes[p.from].name, b = run.nodes[p.to].name;
        if (f.link === `${a}-${b}` || f.link === `${b}-${a}`) out.add(i);
      });
    }
    return out;
  }

  placesOf(f) {
    const run = this.run, out = [];
    if (f.host) {
      const n = run.nodes.find((m) => m.name === f.host);
      if (n) out.push([this.x(n.x), this.y(n.y)]);
    }
    if (f.link) {
      run.links.forEach((ports) => {
        const p = run.ports[ports[0]], a = run.nodes[p.from], b = run.nodes[p.to];
        if (f.link === `${a.name}-${b.name}` || f.link === `${b.name}-${a.name}` || f.link === p.name) {
          out.push([(this.x(a.x) + this.x(b.x)) / 2, (this.y(a.y) + this.y(b.y)) / 2]);
        }
      });
    }
    return out;
  }

  // find returns the node or the port at a point of the canvas.
  find(x, y) {
    const run = this.run;
    let best = null, near = Math.max(this.size, 8);
    run.nodes.forEach((n, i) => {
      const d = Math.hypot(this.x(n.x) - x, this.y(n.y) - y);
      if (d < near) { near = d; best = { node: i }; }
    });
    if (best) return best;
    near = 6;
    for (let p = 0; p < run.ports.length; p++) {
      const [ax, ay, bx, by, d] = this.ends(p);
      const along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / (d * d);
      if (along < 0 || along > 1) continue;
      const off = Math.abs((x - ax) * (by - ay) - (y - ay) * (bx - ax)) / d + (along > 0.5 ? 0.5 : 0);
      if (off < near) { near = off; best = { port: p }; }
    }
    return best;
  }

  hover(x, y) {
    const what = this.find(x, y);
    this.tip.hidden = !what;
    if (!what) return;
    this.tip.textContent = this.describe(what);
    this.tip.style.left = `${Math.min(x + 14, this.canvas.clientWidth - 180)}px`;
    this.tip.style.top = `${y + 14}px`;
  }

  describe(what) {
    const run = this.run, frame = run.frameAt(this.t);
    if (what.node !== undefined) {
      const n = run.nodes[what.node];
      return `${n.name} (${n.tier})`;
    }
    const p = run.ports[what.port];
    if (frame < 0) return shown(p.name);
    return `${shown(p.name)}: ${percent(run.value(run.use, frame, what.port))} busy, ${bytes(run.value(run.queue, frame, what.port))} queued`;
  }
}
