// What each rank did over time: a bar for its part in each repetition of a collective.

import { pixels, svg, svgSwatch } from "./chart.js";
import { palette, time } from "./format.js";

const maxRanks = 128;

export class Ranks {
  constructor(run, clock, select) {
    Object.assign(this, { run, clock });
    this.element = document.createElement("figure");
    this.element.className = "ranks";
    const parts = run.model.parts ?? [], hosts = [...new Set(parts.map((p) => p.host))].slice(0, maxRanks);
    const head = document.createElement("figcaption");
    head.textContent = parts.length === 0 ? "No collective" :
      `What each rank worked on${hosts.length === maxRanks ? `, the first ${maxRanks}` : ""}`;
    const k = pixels(), row = 15 * k, left = 44 * k, w = document.getElementById("panel").clientWidth - 26 * k, h = hosts.length * row + 20 * k;
    this.px = (t) => left + ((w - left - 8 * k) * t) / (clock.end || 1);
    const s = svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "ranks over time" });
    const of = new Map(hosts.map((n, i) => [n, i]));
    hosts.forEach((n, i) => s.append(svg("text", { x: left - 6 * k, y: i * row + 12 * k, class: "end" }, n)));
    for (const p of parts) {
      const i = of.get(p.host);
      if (i === undefined) continue;
      const x = this.px(p.start_us - run.begin), bar = svg("rect", {
        x, y: i * row + 2, width: Math.max(this.px(p.end_us - run.begin) - x, 1), height: row - 4 * k, rx: 2,
        fill: palette[p.item % palette.length], "fill-opacity": p.repeat % 2 ? 0.65 : 1,
      });
      bar.append(svg("title", {}, `${p.host}, rank ${p.rank}: ${p.collective} ${p.repeat}, ${time(p.start_us - run.begin)} to ${time(p.end_us - run.begin)}`));
      bar.addEventListener("click", () => select({ node: run.nodes.findIndex((m) => m.name === p.host) }));
      s.append(bar);
    }
    this.now = svg("line", { y1: 0, y2: h - 18 * k, class: "now" });
    s.append(this.now, svg("text", { x: left, y: h - 4 * k }, "0"), svg("text", { x: w - 8 * k, y: h - 4 * k, class: "end" }, time(clock.end)));
    const legend = document.createElement("div"), names = new Map(parts.map((p) => [p.item, p.collective]));
    legend.className = "legend";
    for (const [item, name] of [...names].slice(0, palette.length)) {
      const entry = document.createElement("span");
      entry.append(svgSwatch(palette[item % palette.length]), name);
      legend.append(entry);
    }
    if (names.size > 0) legend.append("no bar: waiting or computing");
    this.element.append(head, s, legend);
    this.move = () => { const x = this.px(clock.t); this.now.setAttribute("x1", x); this.now.setAttribute("x2", x); };
    clock.addEventListener("tick", this.move);
    this.move();
  }

  remove() { this.clock.removeEventListener("tick", this.move); this.element.remove(); }
}
