// Queues of all ports over time as a heat map, on a canvas.

import { pixels } from "./chart.js";
import { bytes, shown, styles, time } from "./format.js";

export class HeatMap {
  // It has at most maxRows ports, those with the longest queues. keyed: with the key of the colours.
  constructor(run, clock, scale, select, keyed, maxRows) {
    Object.assign(this, { run, clock, scale, select });
    this.element = document.createElement("figure");
    this.element.className = "heat";
    const head = document.createElement("figcaption");
    const all = run.ports.map((p, i) => [run.peaks[i], i]).filter(([q, i]) => q > 0 && !run.nodes[run.ports[i].from].host);
    all.sort((a, b) => b[0] - a[0]);
    this.rows = all.slice(0, maxRows).map((r) => r[1]);
    this.rows.sort((a, b) => a - b);
    head.textContent = all.length === 0 ? "No queue in a switch" :
      all.length > maxRows ? `${maxRows} ports with the longest queues, of ${all.length}` : "Ports with a queue";
    const key = document.createElement("div"); // what the colours mean
    key.className = "key";
    const ramp = document.createElement("i");
    ramp.style.background = `linear-gradient(to right,${stops().map((c) => `rgb(${c})`).join(",")})`;
    key.append("0", ramp, bytes(scale.max));
    this.canvas = document.createElement("canvas");
    this.labels = document.createElement("div");
    this.labels.className = "labels";
    for (const p of this.rows) {
      const b = document.createElement("button");
      b.textContent = shown(run.ports[p].name);
      b.addEventListener("click", () => select({ port: p }));
      this.labels.append(b);
    }
    const body = document.createElement("div");
    body.className = "body";
    const plot = document.createElement("div");
    plot.className = "plot";
    this.now = document.createElement("div");
    this.now.className = "cursor";
    plot.append(this.canvas, this.now);
    body.append(this.labels, plot);
    const ends = document.createElement("div");
    ends.className = "ends";
    ends.append(span("0"), span(time(clock.end)));
    this.element.append(head, ...(all.length > 0 ? [body, ends] : []), ...(keyed ? [key] : []));
    this.canvas.addEventListener("click", (e) => {
      clock.set((e.offsetX / this.canvas.clientWidth) * clock.end);
      const row = this.rows[Math.floor((e.offsetY / this.canvas.clientHeight) * this.rows.length)];
      if (row !== undefined) select({ port: row });
    });
    this.canvas.addEventListener("pointermove", (e) => {
      const t = (e.offsetX / this.canvas.clientWidth) * clock.end, p = this.rows[Math.floor((e.offsetY / this.canvas.clientHeight) * this.rows.length)];
      const f = run.frameAt(t);
      if (p !== undefined && f >= 0) this.canvas.title = `${shown(run.ports[p].name)} at ${time(t)}: ${bytes(run.value(run.queue, f, p))}`;
    });
    this.move = () => { this.now.style.left = `${(100 * clock.t) / (clock.end || 1)}%`; };
    clock.addEventListener("tick", this.move);
    this.draw();
    this.move();
  }

  remove() { this.clock.removeEventListener("tick", this.move); this.element.remove(); }

  draw() {
    const n = this.rows.length, w = 900;
    this.canvas.width = w;
    this.canvas.height = Math.max(n, 1);
    this.canvas.style.height = this.labels.style.height = `${Math.max(n, 1) * (n > 8 || pixels() > 1 ? 16 : 26) * pixels()}px`;
    if (n === 0) return;
    const g = this.canvas.getContext("2d"), image = g.createImageData(w, n), max = Math.max(this.scale.max, 1);
    const colors = stops();
    for (let x = 0; x < w; x++) {
      const f = this.run.frameAt(((x + 0.5) / w) * this.clock.end);
      for (let y = 0; y < n; y++) {
        const v = Math.sqrt(Math.min(this.run.value(this.run.queue, f, this.rows[y]) / max, 1));
        const c = blend(v, colors), o = (y * w + x) * 4;
        image.data[o] = c[0]; image.data[o + 1] = c[1]; image.data[o + 2] = c[2]; image.data[o + 3] = 255;
      }
    }
    g.putImageData(image, 0, 0);
  }
}

const light = [[255, 255, 255], [253, 212, 158], [252, 141, 89], [179, 0, 0]];
const night = [[28, 32, 40], [90, 50, 30], [213, 94, 0], [255, 200, 120]];

// stops returns the colours of the map, from empty to the longest queue.
function stops() { return styles().back.startsWith("#1") ? night : light; }

function blend(v, colors) {
  const k = Math.min(Math.floor(v * 3), 2), f = v * 3 - k;
  return colors[k].map((c, i) => c + (colors[k + 1][i] - c) * f);
}

function span(text) {
  const s = document.createElement("span");
  s.textContent = text;
  return s;
}
