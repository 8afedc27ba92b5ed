// Numbers as people read them, and colours.

// time writes microseconds with a unit.
export function time(us) {
  const a = Math.abs(us);
  if (a >= 1e6) return `${(us / 1e6).toPrecision(4)} s`;
  if (a >= 1e3) return `${(us / 1e3).toPrecision(4)} ms`;
  if (a >= 1 || a === 0) return `${a === 0 ? 0 : us.toPrecision(4)} us`;
  return `${(us * 1e3).toPrecision(3)} ns`;
}

// bytes writes a number of bytes with a unit.
export function bytes(n) {
  if (n >= 1e6) return `${(n / 1e6).toPrecision(3)} MB`;
  if (n >= 1e3) return `${(n / 1e3).toPrecision(3)} KB`;
  return `${n} B`;
}

// shown writes the name of a port for a heading, which must not break within the arrow.
export const shown = (name) => name.replace("->", "\u00a0\u2192\u00a0");

export const percent = (share) => `${Math.round(share * 100)} %`;
export const count = (n) => n.toLocaleString("en");

// number writes a value of a chart's axis.
export function number(v) {
  const a = Math.abs(v);
  return a >= 1000 ? count(Math.round(v)) : a >= 10 || Number.isInteger(v) ? `${Math.round(v * 10) / 10}` : v.toPrecision(2);
}

// The colours of Okabe and Ito, which colour-blind people can tell apart, in the order of the charts
// of reports. On dark they are lighter, and the light blue comes first.
export const palette = [];
export const scheme = matchMedia("(prefers-color-scheme: dark)");
function mix() {
  const blues = scheme.matches ? ["#56b4e9", "#3d8bd4"] : ["#0072b2", "#56b4e9"];
  palette.splice(0, palette.length, blues[0], scheme.matches ? "#ff8a3d" : "#d55e00", scheme.matches ? "#2fc79a" : "#009e73", "#cc79a7", "#e69f00", blues[1], "#7f7f7f", "#a0522d");
}
scheme.addEventListener("change", mix);
mix();

// colorsOf returns the colour of each run: that of its transport, or if two have the same, by position.
export function colorsOf(runs) {
  const of = runs.map((r) => r.model.color), own = of.every((c) => c > 0) && new Set(of).size === of.length;
  return runs.map((_, i) => palette[((own ? of[i] - 1 : i) % palette.length)]);
}

// level returns how full a queue is: 0 below the marking threshold, 1 while it marks, 2 beyond.
export function level(port, queued) {
  const low = port.ecn_kmin_bytes || (port.buffer_bytes || 0) / 4, high = port.ecn_kmax_bytes || (port.buffer_bytes || 0) / 2;
  if (!low || queued <= low) return 0;
  return queued <= high ? 1 : 2;
}

// styles returns the colours of the page, which follow light and dark.
export function styles() {
  const s = getComputedStyle(document.documentElement);
  const get = (name) => s.getPropertyValue(name).trim();
  return { text: get("--text"), dim: get("--dim"), line: get("--line"), back: get("--back"), panel: get("--panel"), host: get("--host"), switch: get("--switch"), busy: get("--busy"), route: get("--route"), alert: get("--alert"), levels: [get("--calm"), get("--marking"), get("--full")], scale: parseFloat(get("--scale")) || 1 };
}
