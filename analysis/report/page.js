// The page of a report: tables and charts of the runs in the element "data" (report_data.cpp describes it).
"use strict";

const RUN_COLOURS = 8;
const MOST_RANKS = 64;
const MOST_LANES = 6;
const WORK_COLOURS = {
  "forward": "forward", "backward": "backward", "update": "update", "prepare batch": "prepare",
  "wait for data": "data", "wait for all-reduce": "sums", "wait for gather": "gather", "retry": "retry",
  "wait for checkpoint": "disk", "wait for logs": "disk", "evaluation": "evaluation",
  "prediction": "evaluation", "end of step": "end",
};
// Bars begin with what trains.
const WORK_ORDER = ["prepare batch", "forward", "backward", "wait for gather", "wait for all-reduce",
                    "update", "end of step", "wait for data", "evaluation", "prediction",
                    "wait for checkpoint", "wait for logs", "retry", "set-up", "finish", "coordinate"];

// Of the other threads, what takes time of its own.
const BESIDE = ["load", "collectives", "write checkpoint", "publish checkpoint"];

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const tooltip = new Tooltip(document.getElementById("tooltip"));
const hidden = new Set();
const charts = [];
let timeAxis = false;

const colourOf = (run) => `var(--run-${run % RUN_COLOURS})`;
const workColour = (work) => `var(--work-${WORK_COLOURS[work] || "setup"})`;
const sum = (values) => values.reduce((total, value) => total + value, 0);

function swatch(colour) {
  const made = element("span", { className: "swatch" });
  made.style.background = colour;
  return made;
}

function heading(text, id) {
  page.append(element("h2", { textContent: text, id }));
}

// A table in a card; a column is [heading, class of its cells]; a cell is a text or a node.
function table(columns, rows, id) {
  const cell = (kind, content, className) => element(kind, { className }, content);
  const head = element("tr", {}, ...columns.map(([text, kind]) => cell("th", text, kind || "")));
  const body = rows.map((cells) => element("tr", { className: cells.className || "" },
    ...cells.map((content, i) => cell("td", content, columns[i][1] || ""))));
  const made = element("table", { id }, element("thead", {}, head), element("tbody", {}, ...body));
  page.append(element("div", { className: "card table" }, made));
}

function note(text) {
  return element("p", { className: "soft", textContent: text });
}

function nameCell(run, withPath) {
  const cell = element("span", {}, swatch(colourOf(run)), data.runs[run].name);
  if (withPath) cell.append(element("span", { className: "path", textContent: data.runs[run].path }));
  return cell;
}

function stateCell(run) {
  const bad = run.state === "failed" || run.state === "killed";
  const cell = element("span", {}, element("span", { className: bad ? "bad" : "", textContent: run.state }));
  if (run.state === "failed") cell.append(element("span", { className: "path", textContent: run.ending }));
  return cell;
}

function sizeText(bytes) {
  if (bytes < 1e3) return `${bytes} B`;
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${["", "kB", "MB", "GB", "TB"][power]}`;
}

function runsTable() {
  const results = [...new Set(data.runs.flatMap((run) => Object.keys(run.results)))].slice(0, 5);
  const columns = [["run", "name"], ["state"], ["steps", "number"], ["epoch", "number"], ["ranks", "number"],
                   ["training time", "number"], ["last loss", "number"],
                   ...results.map((name) => [name, "number"]), ["median samples/s", "number"],
                   ["median step (ms)", "number"], ["peak memory (MB)", "number"]];
  const rows = data.runs.map((run, i) => [
    nameCell(i, true), stateCell(run), numberText(run.steps), numberText(run.epoch),
    run.ranks.length ? String(run.ranks.length) : "–", durationText(run.seconds), numberText(run.loss),
    ...results.map((name) => numberText(run.results[name])), numberText(run.samples_per_s),
    numberText(run.step_ms), numberText(run.memory_mb)]);
  heading("Runs", "runs");
  table(columns, rows, "runs-table");
}

function recipeTable() {
  const differing = data.recipe.filter((row) => row.differs).length;
  heading("Recipe", "recipe");
  if (data.runs.length > 1)
    page.append(note(differing ? "Bold: keys in which the recipes differ." : "The recipes are the same."));
  const rows = data.recipe.map((row) => Object.assign(
    [element("code", { textContent: row.key }),
     ...row.values.map((value) => element("code", { textContent: value || "–" }))],
    { className: row.differs ? "differs" : "" }));
  table([["key", "name"], ...data.runs.map((run) => [run.name])], rows, "recipe-table");
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
  const button = (text, time) => {
    const made = element("button", { textContent: text, ariaPressed: String(time === timeAxis) });
    made.addEventListener("click", () => {
      timeAxis = time;
      for (const other of controls.querySelectorAll("button")) other.ariaPressed = String(other === made);
      showCharts();
    });
    return made;
  };
  const controls = document.getElementById("controls");
  controls.append("horizontal axis", button("step", false));
  if (data.runs.some((run) => run.clock.x.length)) controls.append(button("training time", true));
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
    return { label: "step", low: 0, high: last, place: (curve, step) => step, text: steps };
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
      const column = run.columns[line.column];
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

function showCharts() {
  const axis = axisOf();
  for (const one of charts) one.show(curvesOf(one.chart), axis, one.chart.group === "Loss" ? laneOf() : []);
}

// Curves of training are dashed beside those of evaluations.
function giveDashes(chart) {
  const others = chart.lines.filter((line) => line.label !== "train");
  for (const line of chart.lines)
    if (chart.lines.length < 2) line.dash = "";
    else line.dash = line.label === "train" ? "4 3" : DASHES[others.indexOf(line) % DASHES.length];
}

function chartGroups() {
  for (const group of new Set(data.charts.map((chart) => chart.group))) {
    heading(group, `group-${group.toLowerCase().replaceAll(" ", "-")}`);
    const grid = element("div", { className: group === "Loss" ? "charts wide" : "charts" });
    for (const chart of data.charts.filter((one) => one.group === group)) {
      giveDashes(chart);
      charts.push(new Chart(chart, tooltip));
      grid.append(charts.at(-1).card);
    }
    page.append(grid);
    if (group === "Loss") laneKey(grid);
  }
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

function bar(run, rank, times, longest) {
  const parts = WORK_ORDER.filter((work) => times[work] > 0).map((work) => {
    const part = element("i");
    part.dataset.work = work;
    part.style.width = `${(100 * times[work]) / longest}%`;
    part.style.background = workColour(work);
    const share = numberText((100 * times[work]) / sum(Object.values(times)));
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
  page.append(element("div", { className: "card" }, grid, element("div", { className: "works" }, ...works)));
  activityTable(recorded, used);
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
  page.append(note("Means over the ranks, of all starts together:"));
  const columns = recorded.flatMap((run) => [[run.name, "number"], ["", "number"]]);
  table([["activity", "name"], ...columns], rows, "activity-table");
}

function startsTable() {
  const rows = [];
  data.runs.forEach((run, i) => run.starts.forEach((start, s) => {
    const open = run.state === "running" && s + 1 === run.starts.length ? "running" : "killed";
    const ends = [...new Set(start.ends)].map((end) => end || open).join("; ");
    const steps = start.first > 0 ? `${numberText(start.first)} to ${numberText(start.last)}` : "none";
    const began = new Date(start.unix_ms).toISOString().slice(0, 19).replace("T", " ");
    rows.push([nameCell(i), String(s + 1), began, String(start.world), start.hosts.join(", "), steps,
               start.resume || "–", ends]);
  }));
  if (rows.length === 0) return;
  heading("Starts", "starts");
  table([["run", "name"], ["start", "number"], ["began (UTC)", "number"], ["ranks", "number"], ["hosts"],
         ["steps", "number"], ["resume"], ["end", "text"]], rows, "starts-table");
}

function checkpointsTable() {
  const rows = [];
  data.runs.forEach((run, i) => run.checkpoints.forEach((one) => rows.push(
    [nameCell(i), element("code", { textContent: one.name }), numberText(one.step), sizeText(one.bytes),
     String(one.files), one.problem])));
  if (rows.length === 0) return;
  heading("Checkpoints", "checkpoints");
  const columns = [["run", "name"], ["checkpoint"], ["step", "number"], ["size", "number"],
                   ["files", "number"], ["", "text"]];
  table(columns, rows, "checkpoints-table");
}

function faultsTable() {
  const rows = [];
  data.runs.forEach((run, i) => {
    for (const line of run.log)
      rows.push([nameCell(i), line.when, line.ranks.join(", "),
                 element("span", { className: line.error ? "bad" : "", textContent: line.text })]);
    const more = [[run.log_left_out, "earlier warnings are left out"],
                  [run.unreadable, "lines of metrics.jsonl cannot be read"]];
    for (const [count, text] of more)
      if (count > 0) rows.push([nameCell(i), "", "", `${numberText(count)} ${text}`]);
  });
  heading("Faults", "faults");
  if (rows.length === 0)
    return page.append(note("No warnings and no errors in the logs."));
  const columns = [["run", "name"], ["when", "name"], ["ranks", "number"], ["warning or error", "text"]];
  table(columns, rows, "faults-table");
}

legend();
runsTable();
chartGroups();
activity();
checkpointsTable();
startsTable();
faultsTable();
recipeTable();
showCharts();
let redraw = 0;
addEventListener("resize", () => {
  clearTimeout(redraw);
  redraw = setTimeout(showCharts, 100);
});
