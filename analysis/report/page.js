// The page of a report: tables and charts of the runs in the element "data" (report_data.cpp describes it).
"use strict";

const RUN_COLOURS = 8;
const MOST_RANKS = 64;
const MOST_LANES = 6;
const MOST_UNFOLDED = 4;  // charts of a group of monitors
const WORK_COLOURS = {
  "forward": "forward", "backward": "backward", "update": "update", "prepare batch": "prepare",
  "wait for data": "data", "wait for all-reduce": "sums", "wait for gather": "gather", "retry": "retry",
  "wait for checkpoint": "disk", "evaluation": "evaluation",
  "prediction": "evaluation", "end of step": "end",
};
// Bars begin with what trains.
const WORK_ORDER = ["prepare batch", "forward", "backward", "wait for gather", "wait for all-reduce",
                    "update", "end of step", "wait for data", "evaluation", "prediction",
                    "wait for checkpoint", "retry", "set-up", "finish", "coordinate"];

// Of the other threads, what takes time of its own.
const BESIDE = ["load", "collectives", "write checkpoint", "publish checkpoint"];

const data = JSON.parse(document.getElementById("data").textContent);
// Names of metrics are the user's: an object would find "constructor" in every run.
for (const run of data.runs)
  for (const part of ["columns", "results"]) run[part] = new Map(Object.entries(run[part]));
const page = document.getElementById("page");
const contents = element("nav", { id: "contents", ariaLabel: "Contents" });
const tooltip = new Tooltip(document.getElementById("tooltip"));
const hidden = new Set();
const charts = [];
let timeAxis = false;
let shares = false;        // bars in percent
const resizeBars = [];

const colourOf = (run) => `var(--run-${run % RUN_COLOURS})`;
const workColour = (work) => `var(--work-${WORK_COLOURS[work] || "setup"})`;
const sum = (values) => values.reduce((total, value) => total + value, 0);

function swatch(colour) {
  const made = element("span", { className: "swatch" });
  made.style.background = colour;
  return made;
}

// A section's heading, and its line in the contents.
function heading(text, id) {
  page.append(element("h2", { textContent: text, id }));
  contents.append(element("a", { textContent: text, href: `#${id}` }));
}

function legend() {
  data.runs.forEach((run, i) => {
    const box = element("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(i); else hidden.add(i);
      showCharts();
    });
    const label = element("label", {}, swatch(colourOf(i)), run.name);
    if (data.runs.length > 1) label.prepend(box);
    document.getElementById("legend").append(label);
  });
  const axes = [["step", false]];
  if (data.runs.some((run) => run.clock.x.length)) axes.push(["training time", true]);
  const buttons = choice(axes, (time) => {
    timeAxis = time;
    showCharts();
  });
  document.getElementById("controls").append("horizontal axis", ...buttons);
}

// Buttons of which one is pressed, at first the first; `choose` gets its value.
function choice(texts, choose) {
  const buttons = texts.map(([textContent, value], i) => {
    const made = element("button", { textContent, ariaPressed: String(i === 0) });
    made.addEventListener("click", () => {
      for (const other of buttons) other.ariaPressed = String(other === made);
      choose(value);
    });
    return made;
  });
  return buttons;
}

// Seconds of training at the end of a step, between the points of the clock.
function secondsAt(clock, step) {
  const steps = clock.to || clock.x;
  if (steps.length === 0) return 0;
  let high = steps.findIndex((one) => one >= step);
  const values = clock.high || clock.y;
  if (high === 0) return values[0];
  if (high < 0) return values.at(-1);
  const share = (step - steps[high - 1]) / (steps[high] - steps[high - 1]);
  return values[high - 1] + share * (values[high] - values[high - 1]);
}

// The axis of all charts, so that they can be compared.
function axisOf() {
  const shown = data.runs.filter((run, i) => !hidden.has(i));
  const steps = (curve, i) => curve.to && curve.to[i] !== curve.x[i]
    ? `steps ${numberText(curve.x[i])} to ${numberText(curve.to[i])}` : `step ${numberText(curve.x[i])}`;
  if (!timeAxis) {
    const last = Math.max(1, ...shown.map((run) => run.steps));
    return { label: "step", low: 0, high: last, whole: true, place: (curve, step) => step, text: steps };
  }
  const longest = Math.max(1e-9, ...shown.map((run) => run.seconds));
  const [unit, label] = longest < 120 ? [1, "s"] : longest < 7200 ? [60, "min"] : [3600, "h"];
  const place = (curve, step) => secondsAt(data.runs[curve.run].clock, step) / unit;
  return { label: `training time (${label})`, low: 0, high: longest / unit, place,
           text: (curve, i) => `${steps(curve, i)}, after ${durationText(unit * place(curve, curve.x[i]))}` };
}

function curvesOf(chart) {
  const curves = [];
  data.runs.forEach((run, i) => {
    for (const line of chart.lines) {
      const column = run.columns.get(line.column);
      if (column && !hidden.has(i))
        curves.push({ ...column, run: i, name: run.name, colour: colourOf(i), column: line.column,
                      label: line.label, dash: line.dash });
    }
  });
  return curves;
}

// Marks below the curves of the loss.
function laneOf() {
  const marks = [];
  let lane = 0;
  data.runs.forEach((run, i) => {
    if (hidden.has(i)) return;
    const add = (step, kind, text) =>
      marks.push({ curve: { run: i, colour: colourOf(i) }, lane, step, kind, text: `${run.name}: ${text}` });
    run.starts.forEach((start, s) => {
      if (s > 0 && start.first > 0) add(start.first, "start", `start ${s + 1} at step ${start.first}`);
      for (const fault of start.faults.slice(0, 200))
        add(fault.step, "fault", `${fault.text} at step ${fault.step}, rank ${fault.rank}`);
    });
    for (const one of run.checkpoints) add(one.step, "checkpoint", `checkpoint ${one.name}`);
    if (marks.length && marks.at(-1).lane === lane && lane < MOST_LANES - 1) ++lane;
  });
  return marks;
}

// Charts in a fold are drawn once it is open: a closed one has no width.
function showCharts() {
  const axis = axisOf();
  for (const one of charts)
    if (!one.card.closest("details:not([open])"))
      one.show(curvesOf(one.chart), axis, isLoss(one.chart) ? laneOf() : []);
}

function isLoss(chart) {
  return chart.group === "Loss" && !chart.monitor;
}

// Curves of training are dashed beside those of evaluations.
function giveDashes(chart) {
  const others = chart.lines.filter((line) => line.label !== "train");
  for (const line of chart.lines)
    if (chart.lines.length < 2) line.dash = "";
    else line.dash = line.label === "train" ? "4 3" : DASHES[others.indexOf(line) % DASHES.length];
}

// Lists of the charts of each group.
function groupsOf(shown) {
  const groups = new Map();
  for (const chart of shown) groups.set(chart.group, [...(groups.get(chart.group) || []), chart]);
  return groups;
}

function gridOf(shown) {
  const grid = element("div", { className: isLoss(shown[0]) ? "charts wide" : "charts" });
  for (const chart of shown) {
    giveDashes(chart);
    charts.push(new Chart(chart, tooltip));
    grid.append(charts.at(-1).card);
  }
  return grid;
}

function chartGroups() {
  for (const [group, shown] of groupsOf(data.charts.filter((chart) => !chart.monitor))) {
    heading(group, `group-${charts.length}`);
    const grid = gridOf(shown);
    page.append(grid);
    if (isLoss(shown[0])) laneKey(grid);
  }
}

// What callbacks log beside metrics: the last of the page, folded where it is much.
function monitors() {
  const groups = groupsOf(data.charts.filter((chart) => chart.monitor));
  if (groups.size > 0) heading("Monitors", "monitors");
  for (const [group, shown] of groups) {
    const grid = gridOf(shown);
    const count = `${shown.length} ${shown.length === 1 ? "chart" : "charts"}`;
    page.append(shown.length > MOST_UNFOLDED ? fold(group, count, grid, "") : grid);
  }
  for (const one of page.querySelectorAll("details")) one.addEventListener("toggle", showCharts);
  if (data.charts_left_out > 0)
    page.append(note(`${data.charts_left_out} more columns are not shown.`));
}

function laneKey(grid) {
  const kinds = new Set(laneOf().map((mark) => mark.kind));
  const texts = { start: "| another start", checkpoint: "\u25b2 checkpoint",
                  fault: "\u2715 out of memory, skipped step or failed checkpoint" };
  const shown = Object.keys(texts).filter((kind) => kinds.has(kind)).map((kind) => texts[kind]);
  const where = data.runs.length > 1 ? "Below the curves, a line for each run" : "Below the curve";
  if (shown.length) grid.after(note(`${where}: ${shown.join(", ")}`));
}

// A bar is as long as its time, or as all others if shares are shown.
function bar(run, rank, times, longest) {
  const total = sum(Object.values(times));
  const parts = WORK_ORDER.filter((work) => times[work] > 0).map((work) => {
    const part = element("i");
    part.dataset.work = work;
    resizeBars.push(() => { part.style.width = `${(100 * times[work]) / (shares ? total : longest)}%`; });
    part.style.background = workColour(work);
    const share = numberText((100 * times[work]) / total);
    part.addEventListener("pointermove", (event) => tooltip.show(event, `${run.name}, rank ${rank}`,
      [{ colour: workColour(work), name: work, value: `${durationText(times[work])} (${share}%)` }]));
    part.addEventListener("pointerleave", () => tooltip.hide());
    return part;
  });
  return element("div", { className: "bar" }, ...parts);
}

function activity() {
  heading("Time by activity", "activity");
  const recorded = data.runs.filter((run) => run.ranks.length > 0);
  if (recorded.length < data.runs.length) {
    const names = data.runs.filter((run) => run.ranks.length === 0).map((run) => run.name).join(", ");
    page.append(note(`Time by activity needs journal/, which ${names} lacks: [journal] level is "off".`));
  }
  if (recorded.length === 0) return;
  const total = (rank) => sum(Object.values(rank.compute));
  const longest = Math.max(...recorded.flatMap((run) => run.ranks.map(total)));
  const grid = element("div", { className: "activity" });
  data.runs.forEach((run, i) => {
    if (run.ranks.length === 0) return;
    const label = (className, textContent) => element("span", { className, textContent });
    grid.append(element("div", { className: "run" }, swatch(colourOf(i)), ` ${run.name}`));
    run.ranks.slice(0, MOST_RANKS).forEach((rank, r) => grid.append(
      label("label", `rank ${r}`), bar(run, r, rank.compute, longest),
      label("total", durationText(total(rank)))));
    const more = run.ranks.length - MOST_RANKS;
    if (more > 0) grid.append(label("label", `and ${more} more`));
  });
  const counts = (rank, work) => rank.compute[work] > 5e-4 * total(rank);
  const used = WORK_ORDER.filter((work) =>
    recorded.some((run) => run.ranks.some((rank) => counts(rank, work))));
  const works = used.map((work) => element("span", {}, swatch(workColour(work)), work));
  const key = element("div", { className: "works" }, ...works);
  page.append(element("div", { className: "card" }, barControls(), grid, key));
  activityTable(recorded, used);
}

function barControls() {
  const show = (inShares) => {
    shares = inShares;
    for (const resize of resizeBars) resize();
  };
  show(shares);
  const buttons = choice([["time", false], ["percent", true]], show);
  return element("div", { className: "chart-head choice" }, ...buttons);
}

// Seconds a rank, the mean over ranks; what other threads do beside Compute has no share of its time.
function activityTable(recorded, used) {
  const mean = (run, part, work) => sum(run.ranks.map((rank) => rank[part][work] || 0)) / run.ranks.length;
  const all = recorded.flatMap((run) => run.ranks.flatMap((rank) => Object.keys(rank.beside)));
  const beside = [...new Set(all)].filter((work) => BESIDE.includes(work));
  const share = (run, work) => mean(run, "compute", work) / sum(used.map((one) => mean(run, "compute", one)));
  const cells = (run, part, work, also) => {
    const seconds = mean(run, part, work);
    return seconds > 0 ? [durationText(seconds), also] : ["\u2013", ""];
  };
  const rows = used.map((work) => [work, ...recorded.flatMap((run) =>
    cells(run, "compute", work, `${(100 * share(run, work)).toFixed(1)}%`))]);
  for (const work of beside)
    rows.push([element("span", { className: "soft", textContent: `beside it: ${work}` }),
               ...recorded.flatMap((run) => cells(run, "beside", work, ""))]);
  page.append(note("Means over the ranks, of all attempts together:"));
  const columns = recorded.flatMap((run) => [[run.name, "number"], ["", "number"]]);
  page.append(table([["activity", "name"], ...columns], rows, "activity-table"));
}

legend();
headline();
page.append(contents);
runsTable();
if (recipesDiffer()) recipe();
chartGroups();
matrices();
loggedItems();
activity();
checkpointsTable();
startsTable();
faultsTable();
if (!recipesDiffer()) recipe();
monitors();
showCharts();
let redraw = 0;
addEventListener("resize", () => {
  clearTimeout(redraw);
  redraw = setTimeout(showCharts, 100);
});
