// Charts of a report: axes, curves, hover. Everything is drawn as SVG; nothing is taken from the network.
"use strict";

const SVG_NAMES = "http://www.w3.org/2000/svg";
const PLOT_HEIGHT = 230;
const LANE_HEIGHT = 13;
const DASHES = ["", "2 3", "8 3 2 3"];
const LOG_FROM = 1.5;    // decades of a loss, or between the middles of runs, that make a scale logarithmic
const SMOOTH_FROM = 60;  // points; a line through the noise is a mean over a sixtieth of them

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG_NAMES, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Four digits: 0.01234, 12.34, 12,345, 1.2e-5.
function numberText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return String(Number(value.toPrecision(3)).toExponential());
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

// 0, 500, 20k, 1.5M, 0.002, 2e-5.
function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e12) return Number(value.toPrecision(3)).toExponential();
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return Number((value / unit).toPrecision(4)) + letter;
  if (size !== 0 && size < 1e-3) return Number(value.toPrecision(3)).toExponential();
  return String(Number(value.toPrecision(4)));
}

// 5.2 ms, 12.3 s, 4 min 05 s, 2 h 03 min.
function durationText(seconds) {
  if (!(seconds >= 0)) return "–";
  if (seconds < 1) return numberText(Number((1000 * seconds).toPrecision(3))) + " ms";
  if (seconds < 60) return numberText(Number(seconds.toPrecision(3))) + " s";
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two((seconds % 3600) / 60)} min`;
}

// Multiples of 1, 2 or 5 times a power of ten, within a range; `whole`: whole numbers alone.
function linearTicks(low, high, count, whole) {
  const rough = Math.max(whole ? 1 : 0, (high - low) / count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}

// Powers of ten; where there are few, 2 and 5 times of them as well.
function logTicks(low, high) {
  const ticks = [];
  const decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / 6));
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    if (power % every === 0)
      for (const n of decades < 2.5 ? [1, 2, 5] : [1]) ticks.push(n * 10 ** power);
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return inside.length > 1 ? inside : linearTicks(low, high, 4);
}

function scaleOf(low, high, from, to, log) {
  const map = log ? Math.log10 : (value) => value;
  const span = map(high) - map(low) || 1;
  const scale = (value) => from + ((map(value) - map(low)) / span) * (to - from);
  scale.low = low;
  scale.high = high;
  return scale;
}

// The value below which this part of the values lies.
function quantile(values, part) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(part * (sorted.length - 1))] : 0;
}

function usualValue(curve) {
  return quantile(curve.high || curve.y, 0.98);
}

// True if a linear scale would show a flat line: a loss that falls through decades, or runs of other sizes.
function spansDecades(curves, isLoss) {
  const values = curves.flatMap((curve) => curve.y);
  if (values.some((value) => value !== null && value <= 0)) return false;
  const middles = curves.filter((curve) => curve.y.length).map((curve) => quantile(curve.y, 0.5));
  const spans = (low, high) => low > 0 && Math.log10(high / low) >= LOG_FROM;
  return spans(Math.min(...middles), Math.max(...middles)) ||
         (isLoss && spans(quantile(values, 0.02), quantile(values, 0.98)));
}

// The range of a value axis. `cut`: values far above those that are usual in each curve lie beyond it.
function valueRange(curves, log, cut) {
  let values = curves.flatMap((c) => [...(c.low || c.y), ...(c.high || c.y)]).filter((v) => v !== null);
  if (log) values = values.filter((value) => value > 0);
  if (values.length === 0) return { low: log ? 0.1 : 0, high: 1, most: 1 };
  values.sort((a, b) => a - b);
  const most = values[values.length - 1];
  let low = values[0];
  let high = most;
  const usual = Math.max(...curves.map(usualValue));
  if (cut && !log && low >= 0 && usual > 0 && high > 3 * usual) high = 1.4 * usual;
  if (log) return { low: low / 1.1, high: high * 1.1, most };
  if (low >= 0 && low < 0.5 * high) low = 0;
  if (low === high) [low, high] = low > 0 ? [0, 1.2 * high] : [low - 1, high + 1];
  const pad = 0.05 * (high - low);
  return { low: low === 0 ? 0 : low - pad, high: high + pad, most };
}

// The index of the point whose place is nearest.
function nearest(places, place) {
  let low = 0;
  let high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] < place) low = middle; else high = middle;
  }
  return Math.abs(places[high] - place) < Math.abs(places[low] - place) ? high : low;
}

function pathOf(points, stairs) {
  let path = "";
  points.forEach(([x, y], i) => {
    if (i === 0) path = `M${x.toFixed(1)},${y.toFixed(1)}`;
    else path += (stairs ? `H${x.toFixed(1)}V` : `L${x.toFixed(1)},`) + y.toFixed(1);
  });
  return path;
}

// True if a curve goes up and down all the time. `values` has nulls where nothing is drawn.
function isNoisy(all) {
  const values = all.filter((value) => value !== null);
  if (values.length < SMOOTH_FROM) return false;
  let way = 0;
  for (let i = 1; i < values.length; ++i) way += Math.abs(values[i] - values[i - 1]);
  return way > 6 * (Math.max(...values) - Math.min(...values));
}

function smoothed(values) {
  const half = Math.max(2, Math.round(values.length / SMOOTH_FROM));
  const sums = [0];
  for (const value of values) sums.push(sums.at(-1) + value);
  return values.map((_, i) => {
    const from = Math.max(0, i - half);
    const to = Math.min(values.length, i + half + 1);
    return (sums[to] - sums[from]) / (to - from);
  });
}

// A chart in a card. `curves`: {name, colour, column, label, dash, x, y, to, low, high, bad}, x ascending;
// `axis`: {label, low, high, place(curve, step), text(curve, i)}; `lane`: marks below the curves, {curve,
// step, kind, text, lane}.
class Chart {
  constructor(chart, tooltip) {
    this.chart = chart;
    this.tooltip = tooltip;
    this.log = false;
    this.chosen = false;  // the scale, by a click
    this.body = element("div", { className: "chart" });
    this.button = element("button", { textContent: "log", title: "logarithmic", ariaPressed: "false" });
    this.button.addEventListener("click", () => {
      this.chosen = true;
      this.setLog(!this.log);
      this.draw();
    });
    const prefix = chart.monitor ? `${chart.group}/` : "";  // the heading says it
    const name = chart.title.startsWith(prefix) ? chart.title.slice(prefix.length) : chart.title;
    const title = chart.unit ? `${name} (${chart.unit})` : name;
    this.head = element("div", { className: "chart-head" }, element("h3", { textContent: title }));
    this.card = element("section", { className: "card" }, this.head, this.body);
    this.card.dataset.title = chart.title;
    this.addKeys();
    this.head.append(this.button);
  }

  setLog(log) {
    this.log = log;
    this.button.ariaPressed = String(log);
  }

  addKeys() {
    if (this.chart.lines.length < 2) return;
    const keys = element("div", { className: "keys" });
    this.chart.lines.forEach((line) => {
      const stroke = svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": 2,
                                   "stroke-dasharray": line.dash });
      const picture = svg("svg", { width: 22, height: 10 }, stroke);
      keys.append(element("span", {}, picture, line.label));
    });
    this.head.append(keys);
  }

  show(curves, axis, lane) {
    Object.assign(this, { curves, axis, lane });
    this.button.hidden = !curves.some((curve) => curve.y.some((value) => value > 0));
    if (!this.chosen) this.setLog(spansDecades(curves, this.chart.less_is_better));
    this.draw();
  }

  draw() {
    const width = Math.max(260, this.body.clientWidth);
    const range = valueRange(this.curves, this.log, !["Loss", "Metrics"].includes(this.chart.group));
    const ticks = this.log ? logTicks(range.low, range.high) : linearTicks(range.low, range.high, 5);
    const left = 14 + 6.6 * Math.max(...ticks.map((tick) => tickText(tick).length));
    const lanes = this.lane.length ? 1 + Math.max(...this.lane.map((mark) => mark.lane)) : 0;
    const bottom = PLOT_HEIGHT - 40;
    this.height = PLOT_HEIGHT + lanes * LANE_HEIGHT + (lanes ? 6 : 0);
    this.x = scaleOf(this.axis.low, this.axis.high, left, width - 14, false);
    this.y = scaleOf(range.low, range.high, bottom, 8, this.log);
    this.plot = svg("svg", { class: "plot", height: this.height, viewBox: `0 0 ${width} ${this.height}` });
    this.drawAxes(ticks, left, width, bottom);
    this.drawCurves(left, width, bottom);
    if (!this.log && range.most > range.high) this.drawCut(range.most, width);
    this.drawLane(bottom + 12);
    this.hover(bottom);
    this.body.replaceChildren(this.plot);
  }

  drawAxes(ticks, left, width, bottom) {
    for (const tick of ticks) {
      const y = this.y(tick);
      this.plot.append(svg("line", { class: "grid", x1: left, x2: width - 14, y1: y, y2: y }),
                       svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, tickText(tick)));
    }
    this.plot.append(svg("line", { class: "axis", x1: left, x2: width - 14, y1: bottom, y2: bottom }));
    const most = Math.max(3, Math.floor(width / 110));
    for (const tick of linearTicks(this.axis.low, this.axis.high, most, this.axis.whole)) {
      const text = svg("text", { x: this.x(tick), y: this.height - 22, "text-anchor": "middle" });
      text.append(tickText(tick));
      this.plot.append(text);
    }
    this.plot.append(svg("text", { x: (left + width - 14) / 2, y: this.height - 5, "text-anchor": "middle" },
                         this.axis.label));
  }

  drawCurves(left, width, bottom) {
    const clip = `clip-${Chart.count = (Chart.count || 0) + 1}`;
    const frame = svg("rect", { x: left, y: 4, width: width - 14 - left, height: bottom - 3 });
    const all = svg("g", { "clip-path": `url(#${clip})` });
    this.plot.append(svg("clipPath", { id: clip }, frame), all);
    const noisy = new Set(this.curves.filter((curve) => isNoisy(curve.y)).map((curve) => curve.column));
    this.places = this.curves.map((curve) =>
      this.drawCurve(curve, all, noisy.has(curve.column) && curve.x.length >= SMOOTH_FROM));
    for (const curve of this.curves)
      for (const [step, value] of curve.bad || []) this.drawCross(curve, step, value);
  }

  drawCurve(curve, parent, noisy) {
    const middle = (i) => (curve.to ? (curve.x[i] + curve.to[i]) / 2 : curve.x[i]);
    const places = curve.x.map((_, i) => this.axis.place(curve, middle(i)));
    const shown = (value) => value !== null && (!this.log || value > 0);
    const points = (values) => values.map((value, i) => [places[i], value])
      .filter(([, value]) => shown(value)).map(([place, value]) => [this.x(place), this.y(value)]);
    if (curve.low) {
      const edge = points(curve.high).concat(points(curve.low).reverse());
      parent.append(svg("path", { class: "band", d: pathOf(edge) + "Z", style: `fill: ${curve.colour}` }));
    }
    const line = points(curve.y);
    const style = `stroke: ${curve.colour}`;
    const path = svg("path", { class: noisy ? "curve raw" : "curve", style,
                               d: pathOf(line, this.chart.stairs),
                               "stroke-dasharray": noisy ? "" : curve.dash });
    Object.assign(path.dataset, { run: curve.name, column: curve.column, points: line.length });
    parent.append(path);
    if (noisy) {
      const ys = smoothed(line.map(([, y]) => y));
      parent.append(svg("path", { class: "curve smooth", d: pathOf(line.map(([x], i) => [x, ys[i]])), style,
                                  "stroke-dasharray": curve.dash }));
    }
    if (line.length <= 40)
      for (const [x, y] of line)
        parent.append(svg("circle", { cx: x, cy: y, r: line.length === 1 ? 3.5 : 2.2,
                                      style: `fill: ${curve.colour}` }));
    return places;
  }

  drawCross(curve, step, value) {
    const x = this.x(this.axis.place(curve, step));
    const cross = svg("path", { class: "cross", d: `M${x - 3.5},6l7,7m0,-7l-7,7` });
    cross.append(svg("title", {}, `${curve.name}: ${value} at step ${step}`));
    this.plot.append(cross);
  }

  drawCut(most, width) {
    const text = `\u2191 up to ${numberText(most)}`;
    this.plot.append(svg("text", { x: width - 16, y: 16, "text-anchor": "end" }, text));
  }

  // Starts, checkpoints and faults, below the curves.
  drawLane(top) {
    for (const mark of this.lane) {
      const y = top + mark.lane * LANE_HEIGHT;
      const x = this.x(this.axis.place(mark.curve, mark.step));
      const shapes = { start: `M${x},${y - 6}v12`, checkpoint: `M${x},${y - 5}l4.5,8h-9z`,
                       fault: `M${x - 4},${y - 4}l8,8m0,-8l-8,8` };
      const colour = mark.curve.colour;
      const styles = { start: `stroke: ${colour}; stroke-width: 2`, checkpoint: `fill: ${colour}` };
      const shape = svg("path", { class: mark.kind === "fault" ? "mark cross" : "mark", d: shapes[mark.kind],
                                  style: styles[mark.kind] || "" });
      shape.dataset.kind = mark.kind;
      shape.addEventListener("pointerenter", (event) => this.tooltip.show(event, mark.text, []));
      shape.addEventListener("pointerleave", () => this.tooltip.hide());
      this.plot.append(shape);
    }
  }

  hover(bottom) {
    const guide = svg("line", { class: "guide", y1: 8, y2: bottom, visibility: "hidden" });
    const dots = svg("g");
    this.plot.append(guide, dots);
    const hide = () => {
      guide.setAttribute("visibility", "hidden");
      dots.replaceChildren();
      this.tooltip.hide();
    };
    this.plot.addEventListener("pointerleave", hide);
    this.plot.addEventListener("pointermove", (event) => {
      const box = this.plot.getBoundingClientRect();
      if (event.clientY - box.top > bottom + 3) return event.target.dataset.kind ? null : hide();
      this.point(event, event.clientX - box.left, guide, dots);
    });
  }

  // Shows the values at the point nearest to x.
  point(event, x, guide, dots) {
    const rows = [];
    const { low, high } = this.axis;
    const wanted = low + ((x - this.x(low)) / (this.x(high) - this.x(low))) * (high - low);
    let best = null;
    this.curves.forEach((curve, c) => {
      if (curve.x.length === 0) return;
      const i = nearest(this.places[c], wanted);
      const row = { curve, i, place: this.places[c][i] };
      rows.push(row);
      if (best === null || Math.abs(row.place - wanted) < Math.abs(best.place - wanted)) best = row;
    });
    if (best === null) return;
    dots.replaceChildren();
    guide.setAttribute("visibility", "visible");
    for (const end of ["x1", "x2"]) guide.setAttribute(end, this.x(best.place));
    for (const { curve, i, place } of rows)
      if (!this.log || curve.y[i] > 0)
        dots.append(svg("circle", { cx: this.x(place), cy: Math.max(8, this.y(curve.y[i])), r: 3.5,
                                    style: `fill: ${curve.colour}` }));
    this.tooltip.show(event, this.axis.text(best.curve, best.i), rows.map((row) => this.row(row)));
  }

  row({ curve, i }) {
    let value = numberText(curve.y[i]);
    if (curve.low && curve.low[i] !== curve.high[i])
      value += ` (${numberText(curve.low[i])} to ${numberText(curve.high[i])})`;
    return { colour: curve.colour, name: curve.label ? `${curve.name}, ${curve.label}` : curve.name, value };
  }
}

class Tooltip {
  constructor(box) {
    this.box = box;
  }

  show(event, title, rows) {
    const lines = rows.map((row) => {
      const swatch = element("span", { className: "swatch" });
      swatch.style.background = row.colour;
      const value = element("span", { className: "value", textContent: row.value });
      return element("div", {}, swatch, row.name, value);
    });
    this.box.replaceChildren(element("b", { textContent: title }), ...lines);
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - height - 4))}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}
