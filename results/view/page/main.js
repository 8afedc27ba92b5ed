// The page: runs side by side on one clock, and what was selected.

import { controls } from "./act.js";
import { pixels } from "./chart.js";
import { Clock } from "./clock.js";
import { Run, unpack } from "./data.js";
import { about, overview } from "./detail.js";
import { bytes, colorsOf, count, quantity, scheme, time } from "./format.js";
import { HeatMap } from "./heat.js";
import { NetworkView } from "./network.js";
import { Ranks } from "./ranks.js";

const acts = document.querySelector("meta[name=weft-act]"); // null: the page only shows
const live = document.querySelector("meta[name=weft-live]"); // null: the page has its data
const $ = (id) => document.getElementById(id);
const clock = new Clock();
const scale = { max: 1 }; // the longest queue of all runs
let runs = [], views = [], panels = [], chosen = null, tab = "overview", stepper = "drop", colors = [];

// show builds the page for a list of models.
function show(models) {
  runs = models.map((m) => new Run(m));
  colors = colorsOf(runs);
  $("stage").replaceChildren();
  views = runs.map((run, i) => {
    const view = new NetworkView(run, scale, (what) => select(i, what));
    const box = document.createElement("section");
    box.className = "view";
    const head = document.createElement("h2"), state = document.createElement("span");
    if (models.length > 1) { // a single run is named by the page's title
      view.swatch = document.createElement("i");
      view.swatch.style.background = colors[i];
      head.append(view.swatch, run.title, " ");
    }
    head.append(state);
    state.className = `status ${run.model.grade}`;
    state.textContent = run.model.status;
    const facts = document.createElement("p");
    facts.className = "facts";
    facts.textContent = (run.model.facts ?? []).join(" · ");
    const frame = document.createElement("div");
    frame.className = "canvas";
    frame.append(view.canvas, view.tip);
    view.now = document.createElement("p");
    view.now.className = "now-line";
    view.most = document.createElement("strong");
    view.also = document.createElement("span");
    view.now.append(view.most, view.also);
    box.append(head, facts, view.now, frame);
    $("stage").append(box);
    return view;
  });
  document.body.classList.toggle("pair", runs.length > 1);
  measure();
  for (const o of $("kind").options) o.disabled = live === null && runs.every((r) => r.events(o.value).length === 0);
  const first = ["fault", "drop", "pause", "mark"].find((k) => ![...$("kind").options].find((o) => o.value === k).disabled);
  $("kind").disabled = $("event").disabled = !first;
  stepper = $("kind").value = first ?? "drop";
  clock.setSpeed(clock.end / 10); // the whole run in ten seconds
  clock.t = fullest();
  clock.rests = true;
  renderPanels();
  update();
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("weft-shown"))); // for benchmarks: painted
}

// fullest returns the instant at which most bytes wait: the first thing to look at.
function fullest() {
  let t = 0, most = 0;
  for (const r of runs) r.total.forEach((v, i) => { if (v > most) { most = v; t = r.time(i); } });
  return t;
}

// measure computes what all views share.
function measure() {
  scale.max = Math.max(1, ...runs.map((r) => r.maxQueue));
  $("bar").textContent = scale.max > 1 ? `longest bar: ${bytes(scale.max)}` : "";
  clock.extend(Math.max(...runs.map((r) => r.length)), runs.at(-1).length);
  drawTrack();
}

function update() {
  runs.forEach((run, i) => {
    views[i].show(clock.t);
    const f = run.frameAt(clock.t);
    const faults = run.faultsAt(clock.t).map((x) => `${x.link ?? x.host ?? "clock"} ${x.what}`).join(", ");
    const ended = run.model.end_us && live === null && clock.t >= run.length - 1e-6;
    views[i].most.textContent = ended ? `ended after ${time(run.length)}` : f < 0 ? "" : `${bytes(run.total[f])} queued`;
    views[i].also.textContent = f < 0 || ended ? faults : [run.marks[f] && `${count(run.marks[f])} marked`, run.drops[f] && `${count(run.drops[f])} dropped`, faults].filter(Boolean).join(", ");
    views[i].now.classList.toggle("ended", Boolean(ended));
    views[i].canvas.setAttribute("aria-label", `network of ${run.title} at ${time(clock.t)}: ${views[i].now.textContent}`);
  });
  $("time").textContent = time(clock.t, true);
  $("slider").value = clock.end > 0 ? Math.round((clock.t / clock.end) * 1000) : 0;
  $("slider").setAttribute("aria-valuetext", time(clock.t));
  $("instant").style.left = `${clock.end > 0 ? (clock.t / clock.end) * 100 : 0}%`;
}

// drawTrack draws bytes that wait above the slider, and the faults.
function drawTrack() {
  const c = $("track"), g = c.getContext("2d"), box = c.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  c.width = Math.max(1, box.width * ratio); c.height = Math.max(1, box.height * ratio);
  const max = Math.max(1, ...runs.map((r) => r.total.reduce((a, b) => Math.max(a, b), 0)));
  $("waiting").textContent = max > 1 ? `waiting in all switches, at most ${bytes(max)}` : "nothing waits in a switch";
  runs.forEach((run, i) => {
    g.beginPath();
    g.moveTo(0, c.height);
    for (let f = 0; f < run.frames; f++) g.lineTo((run.time(f) / clock.end) * c.width, c.height - (run.total[f] / max) * c.height * 0.95);
    g.lineTo((run.length / clock.end) * c.width, c.height);
    g.globalAlpha = 0.3;
    g.fillStyle = g.strokeStyle = colors[i];
    g.fill();
    g.globalAlpha = 1;
    g.lineWidth = ratio;
    g.stroke();
    for (const f of run.model.faults ?? []) {
      const x = ((f.from_us - run.begin) / clock.end) * c.width;
      g.fillStyle = getComputedStyle(c).getPropertyValue("--alert");
      g.fillRect(x - ratio, 0, 2 * ratio, c.height);
    }
  });
}

function select(i, what) {
  chosen = what ? { run: i, what } : null;
  views.forEach((v, k) => {
    v.selected = chosen && k === i ? what : null;
    v.route = new Set();
    if (v.selected?.conn !== undefined) {
      const c = runs[k].conns[v.selected.conn];
      v.route = runs[k].pathsOf(c.src, c.dst);
    }
  });
  tab = chosen ? "selected" : "overview";
  renderPanels();
  update();
}

function renderPanels() {
  panels.forEach((p) => p.remove());
  panels = [];
  const side = $("panel");
  side.replaceChildren();
  for (const b of document.querySelectorAll("nav button")) {
    const on = b.dataset.tab === tab;
    b.setAttribute("aria-selected", on);
    if (b.dataset.tab === "selected") b.hidden = !chosen;
    if (b.dataset.tab === "ranks") b.hidden = !ranked();
  }
  const add = (list) => { for (const p of list) { panels.push(p); side.append(p.element); } };
  const k = pixels(), wide = matchMedia("(min-width:60.01rem)").matches; // else the panel is as high as what is in it
  if (tab === "overview") add(overview(runs, clock, select));
  const rows = k > 1 ? Math.max(6, Math.floor((side.clientHeight / runs.length - 100 * k) / (16 * k))) : 60; // for a projector, without scrolling
  if (tab === "heat") runs.forEach((r, i) => { title(side, r); add([new HeatMap(r, clock, scale, (w) => select(i, w), i === runs.length - 1, rows)]); });
  if (tab === "ranks") runs.forEach((r, i) => { title(side, r); add([new Ranks(r, clock, (w) => select(i, w))]); });
  if (tab === "selected" && chosen) {
    const run = runs[chosen.run], a = about(run, chosen.what, clock, scale, (w) => select(chosen.run, w));
    const head = document.createElement("h3");
    head.textContent = runs.length > 1 ? `${run.title}: ${a.heading}` : a.heading;
    const facts = document.createElement("p");
    facts.textContent = a.facts.map(([v, n]) => `${n} ${v}`).join(" · ");
    const links = document.createElement("p");
    links.className = "links";
    for (const [text, go] of a.links) {
      const b = document.createElement("button");
      b.className = "small"; b.textContent = text; b.addEventListener("click", go);
      links.append(b);
    }
    side.append(head, facts, links);
    if (acts) side.append(controls(acts.content, run, chosen.what, note));
    add(a.charts);
  }
  const charts = panels.filter((p) => p.fit), w = side.clientWidth - 26 * k; // without what the panel leaves free at its sides
  for (const p of charts) p.fit(w, 1);
  if (charts.length === 0) return;
  const last = side.lastElementChild, free = side.clientHeight - 20 * k - (last.offsetTop + last.offsetHeight - side.offsetTop);
  for (const p of charts) p.fit(w, wide ? Math.min(Math.max(free / charts.length, 110 * k), 280 * k) : 150);
}

function title(side, run) {
  if (runs.length < 2) return;
  const h = document.createElement("h3");
  h.textContent = run.title;
  side.append(h);
}

// step moves to the next frame, or with a kind to the next event of it.
function step(direction, kind = "") {
  clock.toggle(false);
  clock.follow = false;
  let all = kind ? runs.flatMap((r) => r.events(kind)) : runs.flatMap((r) => Array.from({ length: r.frames }, (_, i) => r.time(i)));
  all = [...new Set(all)].sort((a, b) => a - b);
  const next = direction > 0 ? all.find((t) => t > clock.t + 1e-9) : all.findLast((t) => t < clock.t - 1e-9);
  if (next !== undefined) clock.set(next);
  else if (kind) note(`no ${direction > 0 ? "later" : "earlier"} ${kind}`);
}

function note(text) {
  $("note").textContent = text;
  setTimeout(() => { if ($("note").textContent === text) $("note").textContent = ""; }, 2500);
}

function speed(factor) {
  clock.setSpeed(Math.min(Math.max(clock.speed * factor, 1e-3), 1e9));
}

function listen() {
  clock.addEventListener("tick", () => { if (!listen.due) { listen.due = true; requestAnimationFrame(() => { listen.due = false; update(); }); } });
  clock.addEventListener("state", () => {
    $("play").textContent = clock.playing ? "Pause" : "Play";
    $("speed").textContent = `${time(Number(clock.speed.toPrecision(2)))} a second`;
  });
  $("play").addEventListener("click", () => clock.toggle());
  $("slower").addEventListener("click", () => speed(0.5));
  $("faster").addEventListener("click", () => speed(2));
  $("back").addEventListener("click", () => step(-1));
  $("forward").addEventListener("click", () => step(1));
  $("kind").addEventListener("change", (e) => { stepper = e.target.value; });
  $("event").addEventListener("click", () => step(1, stepper));
  $("slider").addEventListener("input", (e) => { clock.toggle(false); clock.follow = false; clock.set((e.target.value / 1000) * clock.end); });
  $("projector").addEventListener("click", projector);
  $("keys").addEventListener("click", () => $("help").showModal());
  for (const b of document.querySelectorAll("nav button")) b.addEventListener("click", () => { tab = b.dataset.tab; renderPanels(); });
  window.addEventListener("resize", () => { renderPanels(); drawTrack(); update(); });
  scheme.addEventListener("change", () => {
    colors = colorsOf(runs);
    views.forEach((v, i) => { if (v.swatch) v.swatch.style.background = colors[i]; });
    renderPanels(); drawTrack(); update();
  });
  for (const a of document.querySelectorAll("header nav a")) a.addEventListener("click", () => { a.hash = location.hash; });
  let clicked = false; // the focus came from a click
  document.addEventListener("pointerdown", () => { clicked = true; });
  document.addEventListener("keydown", (e) => { if (e.key === "Tab") clicked = false; }, true);
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
    if (e.target.matches("input, select") && e.key !== " " && (e.key.startsWith("Arrow") || e.target.matches("select"))) return;
    const tabbed = e.target.matches("button:focus-visible"); // reached by the keyboard, where space presses
    if (e.key === " " && tabbed && !clicked) return;
    const act = {
      " ": () => clock.toggle(), ArrowRight: () => (e.shiftKey ? step(1, stepper) : step(1)), ArrowLeft: () => (e.shiftKey ? step(-1, stepper) : step(-1)),
      Home: () => clock.set(0), End: () => clock.set(clock.end), "+": () => speed(2), "-": () => speed(0.5), p: projector, "?": () => $("help").showModal(),
      Escape: () => select(0, null), 1: () => choose("overview"), 2: () => choose("heat"), 3: () => choose("ranks"), f: () => { clock.follow = true; clock.set(runs.at(-1).length); },
      PageDown: () => document.querySelector("header nav a[rel=next]")?.click(), PageUp: () => document.querySelector("header nav a[rel=prev]")?.click(),
      z: () => views.forEach((v) => v.zoomAt(1.5, v.canvas.clientWidth / 2, v.canvas.clientHeight / 2)),
      x: () => views.forEach((v) => v.zoomAt(1 / 1.5, v.canvas.clientWidth / 2, v.canvas.clientHeight / 2)),
    }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (act) { e.preventDefault(); act(); }
  });
}

// ranked reports whether ranks of any run did something: those of programs are not known.
const ranked = () => runs.some((r) => r.model.parts?.length > 0);

function choose(name) {
  if (name === "ranks" && !ranked()) return;
  tab = name;
  renderPanels();
}

function projector() {
  const on = document.documentElement.classList.toggle("projector");
  history.replaceState(null, "", on ? "#projector" : location.pathname + location.search); // for the pages that this one leads to
  renderPanels();
  drawTrack();
  update();
}

// watch follows runs that go on: the program sends a model with each event.
function watch(url) {
  const source = new EventSource(url);
  let shown = false;
  source.addEventListener("runs", (e) => {
    const models = JSON.parse(e.data);
    if (!shown || models.some((m, i) => m.title !== runs[i].title || m.status !== runs[i].model.status)) {
      const t = clock.t, what = chosen;
      clock.follow ||= !shown;
      shown = true;
      show(models);
      if (clock.follow) measure(); else clock.set(t);
      if (what) select(what.run, what.what);
      return;
    }
    models.forEach((m, i) => { runs[i].model = m; runs[i].conns = m.conns ?? []; runs[i].setFrames(m.frames); });
    measure();
    clock.setSpeed(clock.end / 10);
    if (performance.now() - (watch.drawn ?? 0) > 1500 && !document.activeElement?.closest(".acts-row")) { watch.drawn = performance.now(); renderPanels(); }
    update();
  });
  source.addEventListener("end", (e) => { source.close(); clock.follow = false; $("note").textContent = e.data; renderPanels(); });
  source.onerror = () => note("the program that ran the lab has ended");
}

listen();
if (location.hash === "#projector") document.documentElement.classList.add("projector");
if (live) watch(live.content);
else unpack($("data").textContent).then(show, (err) => note(`cannot read the data of this page: ${err}`));
window.weft = { clock, quantity, runs: () => runs, views: () => views, select }; // for tests
