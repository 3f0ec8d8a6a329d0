// The texts and tables of a report: headline, runs, recipes, attempts, checkpoints, faults, images and texts.
"use strict";

const MANY_METRICS = 6;     // with keys: metrics are then rows of a table of their own
const MOST_FAILURES = 3;    // in the headline
const MATRIX_PIXELS = 380;
const MOST_CELL_TEXTS = 12; // rows of a matrix whose numbers are written
const DARK_CELL = 0.6;      // share of its row
const LEAST_PICTURE = 256;  // pixels: smaller images are enlarged by a whole number

// A table in a card; a column is [heading, class of its cells]; a cell is a text or a node.
function table(columns, rows, id) {
  const cell = (kind, content, className) => element(kind, { className }, content);
  const head = element("tr", {}, ...columns.map(([text, kind]) => cell("th", text, kind || "")));
  const body = rows.map((cells) => element("tr", { className: cells.className || "" },
    ...cells.map((content, i) => cell("td", content, columns[i][1] || ""))));
  const made = element("table", { id }, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { className: "card table" }, made);
}

function note(text) {
  return element("p", { className: "soft", textContent: text });
}

function code(text) {
  return element("code", { textContent: text });
}

function nameCell(run, withPath) {
  const cell = element("span", {}, swatch(colourOf(run)), data.runs[run].name);
  if (withPath && data.runs[run].path !== data.runs[run].name)
    cell.append(element("span", { className: "path", textContent: data.runs[run].path }));
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

// Metrics are those of the evaluator "eval" where nothing else is said.
function inShort(metric) {
  return metric.replace(/^eval\//, "");
}

function timeText(unix_ms) {
  return new Date(unix_ms).toISOString().slice(0, 19).replace("T", " ");
}

// The runs that have a best value, the best first. A loss of a run that failed is no result.
function rankedRuns() {
  const sign = data.headline.less_is_better ? 1 : -1;
  const counts = (run) => run.best && (run.state !== "failed" || data.headline.name !== "loss");
  return data.runs.map((run, i) => ({ run, i })).filter(({ run }) => counts(run))
    .sort((a, b) => sign * (a.run.best.value - b.run.best.value));
}

// The indices of all runs, the best first.
function orderOfRuns() {
  const ranked = rankedRuns().map(({ i }) => i);
  return [...ranked, ...data.runs.map((_, i) => i).filter((i) => !ranked.includes(i))];
}

// The answer first: failures, the best value and the run that has it; then when, where and by which command runs
// began.
function headline() {
  const card = element("section", { className: "card", id: "headline" });
  const failed = data.runs.map((run, i) => ({ run, i })).filter(({ run }) => run.state === "failed");
  for (const failure of failed.slice(0, MOST_FAILURES)) card.append(failureLine(failure));
  if (failed.length > MOST_FAILURES)
    card.append(element("p", { className: "bad" }, `${failed.length - MOST_FAILURES} more failed`));
  const ranking = rankedRuns();
  if (ranking.length > 0) card.append(bestLine(ranking));
  data.runs.forEach((run, i) => card.append(originLine(run, i)));
  page.append(card);
}

function failureLine({ run, i }) {
  return element("p", { className: "answer bad" }, swatch(colourOf(i)), `${run.name} failed: ${run.ending}`);
}

function bestLine(ranking) {
  const of = ({ run, i }) => element("span", { className: "of" }, swatch(colourOf(i)), run.name);
  const [first, ...others] = ranking;
  const value = element("strong", { textContent: numberText(first.run.best.value) });
  const line = element("p", { className: "answer" }, `Best ${inShort(data.headline.name)}: `, value, " of ",
                       of(first), ` after step ${numberText(first.run.best.step)}`);
  for (const other of others) line.append(", ", numberText(other.run.best.value), " of ", of(other));
  return line;
}

// Of the newest start that did not resume another.
function originLine(run, i) {
  const line = element("p", { className: "origin" }, nameCell(i));
  const first = run.starts.findLastIndex((start) => start.first === 1);
  const start = run.starts[Math.max(0, first)];
  const add = (...what) => line.append(" \u00b7 ", ...what);
  if (start) add(`${timeText(start.unix_ms)} UTC`);
  add(`${numberText(run.steps)} steps in ${durationText(run.seconds)}`);
  if (start) add(`${start.world} ${start.world === 1 ? "rank" : "ranks"} ${placeText(start.hosts)}`);
  if (start && start.command) add(code(start.command));
  return line;
}

function placeText(hosts) {
  const together = hosts.length === 1 && hosts[0] === "this process";  // kLocalHost of recorded_run.h
  return together ? "in one process" : `on ${hosts.join(", ")}`;
}

// The best run first. Many metrics have a table of their own, where each is a row.
function runsTable() {
  const metrics = [...new Set(data.runs.flatMap((run) => [...run.results.keys()]))];
  const keys = data.recipe.filter((row) => row.column);
  const results = metrics.length + keys.length < MANY_METRICS ? metrics : [];
  const best = results.length === 0 && metrics.length > 0 ? [[`best ${inShort(data.headline.name)}`, "number"]] : [];
  const columns = [["run", "name"], ["state"], ["steps", "number"], ["epoch", "number"], ["ranks", "number"],
                   ["training time", "number"], ["last loss", "number"], ...best,
                   ...results.map((name) => [inShort(name), "number"]),
                   ...keys.map((row) => [row.column, "number"]), ["median samples/s", "number"],
                   ["median step (ms)", "number"], ["peak memory (MB)", "number"]];
  const rows = orderOfRuns().map((i) => {
    const run = data.runs[i];
    return [
      nameCell(i, true), stateCell(run), numberText(run.steps), numberText(run.epoch),
      run.ranks.length ? String(run.ranks.length) : "\u2013", durationText(run.seconds), numberText(run.loss),
      ...best.map(() => numberText(run.best?.value)), ...results.map((name) => numberText(run.results.get(name))),
      ...keys.map((row) => code(row.values[i] || "\u2013")), numberText(run.samples_per_s),
      numberText(run.step_ms), numberText(run.memory_mb)];
  });
  heading("Runs", "runs");
  page.append(table(columns, rows, "runs-table"));
  if (best.length > 0) metricsTable(metrics);
}

function metricsTable(metrics) {
  const order = orderOfRuns();
  const rows = metrics.map((name) =>
    [inShort(name), ...order.map((i) => numberText(data.runs[i].results.get(name)))]);
  page.append(note("Last values of the evaluations:"));
  page.append(table([["metric", "name"], ...order.map((i) => [data.runs[i].name, "number"])], rows, "metrics-table"));
}

// A matrix of an evaluation as a heat map: the colour of a cell is its share of its row.
function heatMap(matrix, colour) {
  const { rows } = matrix;
  const columns = Math.max(...rows.map((row) => row.length));
  const size = Math.max(4, Math.floor(MATRIX_PIXELS / Math.max(rows.length, columns)));
  const edge = 34;
  const drawn = svg("svg", { class: "plot heat", width: edge + columns * size + 2, height: edge + rows.length * size + 2 });
  const text = (x, y, content, more = {}) =>
    drawn.append(svg("text", { x, y, "text-anchor": "middle", ...more }, content));
  text(edge + (columns * size) / 2, 11, "predicted");
  text(0, 0, "target", { transform: `translate(10 ${edge + (rows.length * size) / 2}) rotate(-90)` });
  rows.forEach((row, r) => {
    const all = sum(row) || 1;
    if (size >= 14) text(edge - 9, edge + (r + 0.5) * size + 4, String(r));
    row.forEach((value, c) => {
      const x = edge + c * size;
      const cell = svg("rect", { x, y: edge + r * size, width: size, height: size,
                                 style: `fill: ${colour}; fill-opacity: ${value / all}` });
      cell.dataset.cell = `${r}/${c}`;
      cell.addEventListener("pointermove", (event) => tooltip.show(event, `target ${r}, predicted ${c}`,
        [{ colour, name: `${((100 * value) / all).toFixed(1)}% of target ${r}`, value: numberText(value) }]));
      cell.addEventListener("pointerleave", () => tooltip.hide());
      drawn.append(cell);
      if (rows.length <= MOST_CELL_TEXTS && value !== 0) text(x + size / 2, edge + (r + 0.5) * size + 4, numberText(value),
             value / all > DARK_CELL ? { class: "on-dark" } : {});
    });
  });
  for (let c = 0; size >= 14 && c < columns; ++c) text(edge + (c + 0.5) * size, edge - 6, String(c));
  return drawn;
}

function matrices() {
  if (!data.runs.some((run) => run.matrices.length > 0)) return;
  heading("Matrices", "matrices");
  const grid = element("div", { className: "charts" });
  for (const i of orderOfRuns())
    for (const matrix of data.runs[i].matrices) {
      const card = element("section", { className: "card matrix" });
      card.append(element("h3", { textContent: inShort(matrix.name) }));
      const about = element("p", { className: "soft" });
      if (data.runs.length > 1) about.append(nameCell(i), ", ");
      about.append(`last values, ${matrix.text}`);
      card.append(about);
      if (matrix.rows.length > 0) card.append(heatMap(matrix, colourOf(i)));
      grid.append(card);
    }
  page.append(grid);
}

function recipesDiffer() {
  return data.recipe.some((row) => row.differs);
}

// Of several runs, the keys in which they differ; of one, those that describe any run. The rest is folded.
function recipe() {
  const several = data.runs.length > 1;
  const first = data.recipe.filter((row) => (several ? row.differs : row.main));
  const rest = data.recipe.filter((row) => !first.includes(row));
  heading(several ? "Recipes" : "Recipe", "recipe");
  const differing = first.length ? "Keys in which the recipes differ:" : "The recipes are the same.";
  if (several) page.append(note(differing));
  if (first.length) page.append(recipeTable(first, "recipe-table"));
  if (rest.length)
    page.append(fold(several ? "The same in all" : "All other keys", `${rest.length} keys`,
                     recipeTable(rest, "recipe-rest"), "recipe-fold"));
}

function recipeTable(rows, id) {
  const cells = rows.map((row) => Object.assign(
    [code(row.key), ...row.values.map((value) => valueCell(value, row))],
    { className: row.differs ? "differs" : "" }));
  return table([["key", "name"], ...data.runs.map((run) => [run.name])], cells, id);
}

// A value that is not the first run's is tinted.
function valueCell(value, row) {
  const cell = code(value || "–");
  if (value !== row.values[0]) cell.className = "changed";
  return cell;
}

// A part of the page that is opened by a click.
function fold(title, count, content, id) {
  const counted = element("span", { className: "soft", textContent: count });
  return element("details", { className: "fold", id }, element("summary", {}, `${title} `, counted), content);
}

function startsTable() {
  const rows = [];
  data.runs.forEach((run, i) => run.starts.forEach((start, s) => {
    const open = run.state === "running" && s + 1 === run.starts.length ? "running" : "killed";
    const ends = [...new Set(start.ends)].map((end) => end || open).join("; ");
    const steps = start.first > 0 ? `${numberText(start.first)} to ${numberText(start.last)}` : "none";
    rows.push([nameCell(i), String(s + 1), timeText(start.unix_ms), String(start.world),
               start.hosts.join(", "), steps, start.resume || "–", ends]);
  }));
  if (rows.length === 0) return;
  heading("Attempts", "attempts");
  page.append(table([["run", "name"], ["attempt", "number"], ["began (UTC)", "number"], ["ranks", "number"],
                     ["hosts"], ["steps", "number"], ["resume"], ["end", "text"]], rows, "starts-table"));
}

function checkpointsTable() {
  const rows = [];
  data.runs.forEach((run, i) => run.checkpoints.forEach((one) => rows.push(
    [nameCell(i), code(one.name), numberText(one.step), sizeText(one.bytes), String(one.files),
     one.problem])));
  if (rows.length === 0) return;
  heading("Checkpoints", "checkpoints");
  const columns = [["run", "name"], ["checkpoint"], ["step", "number"], ["size", "number"],
                   ["files", "number"], ["", "text"]];
  page.append(table(columns, rows, "checkpoints-table"));
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
  page.append(table(columns, rows, "faults-table"));
}

// What the loggers of a run have beside numbers: for each name, a row of images or a table for each run.
function loggedItems() {
  const names = [...new Set(data.runs.flatMap((run) => run.logged.map((item) => item.name)))];
  if (names.length === 0) return;
  heading("Images and texts", "logged");
  for (const name of names) {
    const card = element("section", { className: "card logged" }, element("h3", { textContent: name }));
    card.dataset.name = name;
    data.runs.forEach((run, i) => {
      const items = run.logged.filter((item) => item.name === name);
      if (items.length === 0) return;
      if (data.runs.length > 1) card.append(element("p", {}, nameCell(i)));
      const images = items.filter((item) => item.png);
      if (images.length) card.append(element("div", { className: "images" }, ...images.map(picture)));
      const texts = items.filter((item) => !item.png);
      if (texts.length) card.append(textTable(texts));
    });
    page.append(card);
  }
  const left_out = sum(data.runs.map((run) => run.logged_left_out));
  if (left_out > 0)
    page.append(note(`${numberText(left_out)} more are left out: the page has a few of each name.`));
}

function after(item) {
  return `after ${numberText(item.batches)} ${item.batches === 1 ? "step" : "steps"}`;
}

function picture(item) {
  const image = element("img", { alt: `${item.name} ${after(item)}` });
  image.addEventListener("load", () => {
    const zoom = Math.max(1, Math.floor(LEAST_PICTURE / image.naturalWidth));
    image.style.width = `${zoom * image.naturalWidth}px`;
  });
  image.src = `data:image/png;base64,${item.png}`;
  const caption = element("figcaption", { className: "soft", textContent: after(item) });
  return element("figure", {}, image, caption);
}

// A row for each text, or each row of a table. Columns are those of the first.
function textTable(items) {
  const tables = items.map((item) => (item.columns ? item : { ...item, ...markdownTable(item.markdown) }));
  const columns = tables[0].columns;
  const text = (content) => element("span", { className: "logged-text", textContent: content });
  const rows = tables.flatMap((one) => (one.rows || []).map((row, r) =>
    [r === 0 ? after(one) : "", ...columns.map((_, i) => text(row[i] ?? ""))]));
  return table([["", "name"], ...columns.map((column) => [column, "text"])], rows, "");
}

// "| a | b |" under two lines of heading, as TensorBoard is given tables; anything else is one text.
function markdownTable(markdown) {
  const cells = (line) => line.slice(2, -2).split(" | ").map((cell) => cell.replaceAll("\\|", "|"));
  const lines = markdown.split("\n").filter((line) => line !== "");
  const isTable = lines.length > 1 && lines.every((line) => line.startsWith("| "));
  if (!isTable) return { columns: [""], rows: [[markdown]] };
  return { columns: cells(lines[0]), rows: lines.slice(2).map(cells) };
}
