// The network at one instant, on a canvas: links coloured by use, queues as bars at their ports.

import { bytes, level, levels, percent, shown, styles } from "./format.js";

const detail = 1200; // with more ports, queues of a switch are one mark and idle links are not drawn
const steps = 16; // shades of use

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
    const xs = this.run.nodes.map((n) => n.x), ys = this.run.nodes.map((n) => n.y);
    if (!this.bounds) {
      const min = (a) => a.reduce((x, y) => Math.min(x, y), Infinity), max = (a) => a.reduce((x, y) => Math.max(x, y), -Infinity);
      this.bounds = [min(xs), min(ys), max(xs), max(ys)];
    }
    const [x0, y0, x1, y1] = this.bounds, pad = 34;
    this.kx = ((w - 2 * pad) / Math.max(x1 - x0, 1)) * this.zoom;
    this.ky = ((h - 2 * pad) / Math.max(y1 - y0, 1)) * this.zoom;
    const lone = x1 - x0 < 1;
    this.x = (x) => (lone ? w / 2 : pad * this.zoom + (x - x0) * this.kx) + this.pan[0];
    this.y = (y) => pad * this.zoom + (y - y0) * this.ky + this.pan[1];
    this.size = Math.min(Math.max(Math.min((w * this.zoom) / Math.sqrt(this.run.nodes.length) / 9, 13), 1.5), 30);
    return [w, h, ratio];
  }

  show(t) { this.t = t; this.draw(); }

  draw() {
    const g = this.canvas.getContext("2d"), s = styles(), run = this.run;
    const [w, h, ratio] = this.fit();
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    const frame = run.frameAt(this.t), ports = run.ports.length, base = frame * ports;
    const coarse = ports > detail && this.zoom < 4;
    this.drawLinks(g, s, frame, base, coarse);
    this.drawQueues(g, s, frame, base, coarse);
    this.drawNodes(g, s, frame, base, coarse);
    this.drawFaults(g, s);
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

  drawLinks(g, s, frame, base, coarse) {
    const run = this.run, shades = Array.from({ length: steps + 1 }, () => []), down = this.downPorts();
    for (let p = 0; p < run.ports.length; p++) {
      if (down.has(p)) continue;
      const use = frame >= 0 ? run.use[base + p] : 0;
      shades[use > 0.002 ? Math.max(1, Math.round(use * steps)) : 0].push(p);
    }
    if (this.route.size > 0) { // beneath the links, wide
      g.lineCap = "round";
      this.stroke(g, [...this.route].filter((p) => !down.has(p)), "#cc79a7", 0.7, 10 * Math.max(s.scale, 1));
      g.lineCap = "butt";
    }
    shades.forEach((list, k) => {
      if (k === 0 && coarse && this.run.ports.length > 8 * detail) return;
      const alpha = coarse ? (k === 0 ? 0.08 : 0.15 + (0.6 * k) / steps) : k === 0 ? 0.55 : 0.35 + (0.65 * k) / steps;
      const wide = coarse ? 0.6 : (0.8 + (2.2 * k) / steps) * Math.max(s.scale, 1);
      const color = k === 0 ? s.line : s.busy;
      if (this.route.size === 0) { this.stroke(g, list, color, alpha, wide); return; }
      this.stroke(g, list.filter((p) => !this.route.has(p)), color, alpha / 4, wide);
      this.stroke(g, list.filter((p) => this.route.has(p)), color, Math.max(alpha, 0.6), Math.max(wide, 1));
    });
    g.globalAlpha = 1;
    if (down.size > 0) {
      g.setLineDash([3, 5]);
      this.stroke(g, down, s.line, 1, 1);
      g.setLineDash([]);
    }
    if (this.selected?.port !== undefined) this.stroke(g, [this.selected.port], s.text, 1, 4);
    if (frame < 0) return;
    const paused = [];
    for (let p = 0; p < run.ports.length; p++) if (run.pause[base + p]) paused.push(p);
    g.setLineDash([4, 4]);
    this.stroke(g, paused, s.text, 1, 2);
    g.setLineDash([]);
  }

  // drawQueues draws a bar at the start of each port; in a large network a square at each switch with
  // its longest queue.
  drawQueues(g, s, frame, base, coarse) {
    this.worst = null;
    if (frame < 0) return;
    const run = this.run, full = Math.max(this.scale.max, 1);
    if (coarse) this.worst = new Map();
    for (let p = 0; p < run.ports.length; p++) {
      const q = run.queue[base + p], port = run.ports[p];
      if (run.nodes[port.from].host) continue;
      if (coarse) {
        if (q > (this.worst.get(port.from)?.q ?? 0)) this.worst.set(port.from, { q, p });
        continue;
      }
      const dropped = run.drop[base + p], marked = run.mark[base + p];
      if (!q && !dropped && !marked) continue;
      const [ax, ay, bx, by, d] = this.ends(p), start = Math.min(this.size * 1.3, d / 3);
      const ux = (bx - ax) / d, uy = (by - ay) / d, long = Math.min(d * 0.55, 70 * Math.max(s.scale, 1)) * Math.min(q / full, 1);
      const wide = Math.max(4, this.size * 0.85), x = ax + ux * start, y = ay + uy * start;
      g.beginPath(); g.moveTo(x, y); g.lineTo(x + ux * Math.max(long, q ? 2 : 0), y + uy * Math.max(long, q ? 2 : 0));
      g.strokeStyle = levels[level(port, q)]; g.lineWidth = wide; g.stroke();
      if (marked) { g.beginPath(); g.arc(x + ux * long, y + uy * long, wide * 0.55, 0, 7); g.fillStyle = "#e69f00"; g.fill(); }
      if (dropped) this.cross(g, x + ux * (long + wide), y + uy * (long + wide), wide, "#d55e00");
    }
  }

  cross(g, x, y, r, color) {
    g.beginPath();
    g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r);
    g.strokeStyle = color; g.lineWidth = 2.5; g.stroke();
  }

  drawNodes(g, s, frame, base, coarse) {
    const run = this.run, r = this.size, font = Math.max(9, Math.min(r * 1.05, 15)) * s.scale;
    const label = run.nodes.length <= 80 || this.zoom > 3;
    const hosts = run.nodes.filter((n) => n.host).length;
    g.font = `${font}px "Liberation Sans", Arial, Helvetica, sans-serif`; g.textAlign = "center"; g.textBaseline = "middle";
    run.nodes.forEach((n, i) => {
      const x = this.x(n.x), y = this.y(n.y);
      if (x < -20 || y < -20 || x > this.canvas.clientWidth + 20 || y > this.canvas.clientHeight + 20) return;
      g.beginPath();
      if (n.host) { const q = hosts > 200 && this.zoom < 3 ? 0.6 : 1; g.arc(x, y, (r / 2) * q, 0, 7); } else g.rect(x - r * 0.85, y - r * 0.55, r * 1.7, r * 1.1);
      const worst = this.worst?.get(i);
      g.fillStyle = worst ? levels[level(run.ports[worst.p], worst.q)] : n.host ? s.host : s.switch;
      g.fill();
      const own = this.selected?.node === i;
      if (!coarse || own) { g.strokeStyle = s.text; g.lineWidth = own ? 3 : 0.8; g.stroke(); }
      if (label && this.named(g, n, i)) {
        g.fillStyle = s.text;
        const at = n.host ? y + r / 2 + font * 0.75 : y - r * 0.55 - font * 0.65;
        g.strokeStyle = s.back; g.lineWidth = 3; g.lineJoin = "round";
        g.strokeText(n.name, x, at); // a halo, so that links do not cross the name
        g.fillText(n.name, x, at);
      }
    });
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
      for (const [x, y] of this.placesOf(f)) this.cross(g, x, y, this.size * 0.8, "#d55e00");
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
    const p = run.ports[what.port], c = frame * run.ports.length + what.port;
    if (frame < 0) return shown(p.name);
    return `${shown(p.name)}: ${percent(run.use[c])} busy, ${bytes(run.queue[c])} queued`;
  }
}
