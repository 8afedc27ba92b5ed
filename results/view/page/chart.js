// Line charts over time as SVG, with the page's instant as a line through all of them.

import { number, palette, quantity, scaleOf, time } from "./format.js";

const space = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text = "") {
  const e = document.createElementNS(space, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== "") e.textContent = text;
  return e;
}

// nice returns a round upper end of an axis.
export function nice(v) {
  if (!(v > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(v));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((k) => k * p).find((k) => k >= v * 0.999);
}

// pixels returns how many pixels of the page are one of an ordinary page: more in projector mode.
export const pixels = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

// Chart draws series [{name, points: [[t, y], ...], step}] and lines [{y, name, color}] across, in the unit in
// which its largest value reads best; max is the least end of its axis. Behind them it draws others
// [{name, points, step, pick}] faintly, and calls pick of the one that is clicked. It is drawn by fit.
export class Chart {
  constructor(clock, { title, unit, series, others = [], lines = [], end = clock.end, max = 0 }) {
    Object.assign(this, { clock, title, unit, series, others, lines, values: [] });
    this.end = end > 0 ? end : 1;
    const top = Math.max(max, ...[...series, ...others].map((s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0)), ...lines.map((l) => l.y));
    const [name, of] = scaleOf(unit, top);
    this.axis = { name, of };
    this.max = nice(top / of) * of;
    this.element = document.createElement("figure");
    this.element.className = "chart";
    this.move = () => this.cursor();
    clock.addEventListener("tick", this.move);
  }

  remove() { this.clock.removeEventListener("tick", this.move); this.element.remove(); }

  // fit draws the chart in w by h pixels.
  fit(w, h) {
    const k = pixels(), left = 62 * k, right = 8 * k, top = 8 * k, bottom = 20 * k;
    this.element.replaceChildren();
    this.px = (t) => left + ((w - left - right) * t) / this.end;
    this.py = (y) => h - bottom - ((h - top - bottom) * Math.min(y, this.max)) / this.max;
    const head = document.createElement("figcaption");
    const name = document.createElement("span");
    name.textContent = this.title;
    const only = value(); // of a single series; several have a legend
    this.values = this.series.length === 1 ? [only] : [];
    head.append(name, only, this.button("SVG", () => this.save("svg")), this.button("CSV", () => this.save("csv")));
    this.svg = svg("svg", { viewBox: `0 0 ${w} ${h}`, class: "lines", role: "img", "aria-label": this.title });
    for (let i = 0; i <= 2; i++) {
      const y = (this.max * i) / 2;
      this.svg.append(svg("line", { x1: left, x2: w - right, y1: this.py(y), y2: this.py(y), class: "grid" }));
      this.svg.append(svg("text", { x: left - 5 * k, y: this.py(y) + 4 * k, class: "end" }, i < 2 ? number(y / this.axis.of) : `${number(y / this.axis.of)} ${this.axis.name}`));
    }
    this.svg.append(svg("text", { x: left, y: h - 4 * k }, "0"), svg("text", { x: w - right, y: h - 4 * k, class: "end" }, time(this.end)));
    let above = -Infinity;
    for (const l of this.lines) {
      this.svg.append(svg("line", { x1: left, x2: w - right, y1: this.py(l.y), y2: this.py(l.y), class: "threshold", ...(l.color && { style: `stroke:${l.color}` }) }));
      if (this.py(l.y) - above < 12 * k) continue; // no room for its name
      above = this.py(l.y);
      this.svg.append(svg("text", { x: w - right - 2, y: above - 3 * k, class: "end halo" }, l.name));
    }
    for (const s of this.others) {
      const d = this.path(s), hit = svg("path", { d, class: "hit" }); // wide enough to click
      hit.append(svg("title", {}, s.name));
      hit.addEventListener("click", (e) => { e.stopPropagation(); s.pick(); });
      this.svg.append(svg("path", { d, class: "faint" }), hit);
    }
    this.series.forEach((s, i) => this.svg.append(svg("path", { d: this.path(s), stroke: s.color ?? palette[i % palette.length], class: "series" })));
    this.now = svg("line", { y1: top, y2: h - bottom, class: "now" });
    this.svg.append(this.now);
    this.svg.addEventListener("click", (e) => {
      const box = this.svg.getBoundingClientRect();
      this.clock.set((((e.clientX - box.left) / box.width) * w - left) / (w - left - right) * this.end);
    });
    this.element.append(head, this.svg);
    if (this.series.length > 1) {
      const legend = document.createElement("div");
      legend.className = "legend";
      this.series.forEach((s, i) => {
        const item = document.createElement("span");
        const v = value();
        this.values.push(v);
        item.append(svgSwatch(s.color ?? palette[i % palette.length]), s.name, v);
        legend.append(item);
      });
      if (this.others.length > 0) legend.append("grey: others, click one to follow it");
      this.element.append(legend);
    }
    this.cursor();
  }

  path(s) {
    return s.points.map(([t, v], k) => {
      const x = this.px(t).toFixed(1), y = this.py(v).toFixed(1);
      return k === 0 ? `M${x} ${y}` : `${s.step ? `H${x}` : ""}L${x} ${y}`;
    }).join("");
  }

  button(text, act) {
    const b = document.createElement("button");
    b.className = "small";
    b.textContent = text;
    b.title = `save this chart as ${text}`;
    b.addEventListener("click", act);
    return b;
  }

  cursor() {
    if (!this.now) return;
    const x = this.px(Math.min(this.clock.t, this.end));
    this.now.setAttribute("x1", x); this.now.setAttribute("x2", x);
    this.values.forEach((v, i) => { v.textContent = quantity(valueAt(this.series[i].points, this.clock.t), this.unit, true); });
  }

  save(kind) {
    let text = "";
    if (kind === "csv") {
      text = "series,time_us,value\n" + [...this.series, ...this.others].map((s) => s.points.map(([t, v]) => `"${s.name.replaceAll('"', '""')}",${t},${v}`).join("\n")).join("\n") + "\n";
    } else {
      const copy = this.svg.cloneNode(true);
      copy.setAttribute("xmlns", space);
      copy.prepend(svg("style", {}, ".series{fill:none;stroke-width:1.6}.faint{fill:none;stroke:#999;opacity:.5}.hit{display:none}.grid{stroke:#ccc}.threshold{stroke:#888;stroke-dasharray:4 3}.now{stroke:#000}text{font:12px sans-serif}.end{text-anchor:end}"));
      text = new XMLSerializer().serializeToString(copy);
    }
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "image/svg+xml" }));
    a.download = `${this.title.replace(/[^\w-]+/g, "-")}.${kind}`;
    a.click();
    URL.revokeObjectURL(a.href);
  }
}

function value() {
  const v = document.createElement("span");
  v.className = "value";
  return v;
}

export function svgSwatch(color) {
  const s = svg("svg", { viewBox: "0 0 14 8", class: "swatch", "aria-hidden": "true" });
  s.append(svg("rect", { width: 14, height: 8, rx: 2, fill: color }));
  return s;
}

// valueAt returns the last value at or before t.
export function valueAt(points, t) {
  let lo = 0, hi = points.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (points[mid][0] <= t + 1e-9) lo = mid + 1; else hi = mid;
  }
  return lo > 0 ? points[lo - 1][1] : 0;
}
