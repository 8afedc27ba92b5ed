// Numbers as people read them, and colours.

// scales are the units for people by the unit of a number, in rising order: see units.Shown, whose rule
// this is.
const scales = {
  us: [["ps", 1e-6], ["ns", 1e-3], ["us", 1], ["ms", 1e3], ["s", 1e6]],
  ns: [["ps", 1e-3], ["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]],
  B: [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]],
  "Gb/s": [["b/s", 1e-9], ["kb/s", 1e-6], ["Mb/s", 1e-3], ["Gb/s", 1], ["Tb/s", 1e3]],
};

// scaleOf returns the unit in which a value reads best, and how many of the given unit it has.
export function scaleOf(unit, v) {
  const all = scales[unit], a = Math.abs(v);
  if (!all || a === 0) return [unit, 1];
  return all.findLast(([, of]) => a >= of * 0.99995) ?? all[0];
}

// number writes four significant digits, or all of the whole part. If steady, zeros at the end stay,
// so that a value that changes keeps its width.
export function number(v, steady = false) {
  const a = Math.abs(v);
  let scale = 1, digits = 0;
  while (a > 0 && a * scale < 1000 && scale < 1e12) { scale *= 10; digits++; }
  const rounded = Math.round(a * scale) / scale;
  let text = steady || rounded < 1e-6 ? rounded.toFixed(digits) : String(rounded);
  if (!steady && text.includes(".")) text = text.replace(/\.?0+$/, "");
  const [whole, rest] = text.split(".");
  if (whole.length > 4) text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return v < 0 && rounded > 0 ? `-${text}` : text;
}

// quantity writes a value of a unit in the unit in which it reads best: 8.283 ms.
export function quantity(v, unit, steady = false) {
  const [name, of] = scaleOf(unit, v);
  return `${number(v / of, steady)} ${name}`.trim();
}

export const time = (us, steady = false) => quantity(us, "us", steady);
export const bytes = (n) => quantity(n, "B");

// shown writes the name of a port for a heading, which must not break within the arrow.
export const shown = (name) => name.replace("->", "\u00a0\u2192\u00a0");

export const percent = (share) => `${Math.round(share * 100)} %`;
export const count = (n) => number(Math.round(n));

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
