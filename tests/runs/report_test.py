"""`tutti report`: the page as a browser shows it."""
import json
import re
import unittest

import browser
import tutti_run
from tutti_run import start, train, trained, tutti

SHORT = {"train__max_duration": "30ba", "checkpoint__interval": "15ba"}
LOCAL = ("--local-ranks", 2)
CURVES = """[...document.querySelectorAll("path.curve:not(.smooth)")].map((path) => ({
  title: path.closest("[data-title]").dataset.title, run: path.dataset.run, column: path.dataset.column,
  points: path.getAttribute("d").split(/[ML]/).length - 1, colour: getComputedStyle(path).stroke}))"""
TEXT = "document.getElementById('%s').innerText"
SECTIONS = "[...document.querySelectorAll('h2')].map((one) => one.innerText)"
BARS = """[...document.querySelectorAll(".bar")].map((bar) => [bar.getBoundingClientRect().width,
  [...bar.children].reduce((width, part) => width + part.getBoundingClientRect().width, 0)])"""
IMAGES = """
[model]
kind = "mlp"
hidden = [4]
[data.train]
kind = "synthetic"
samples = 48
batch_size = 24
shape = [3, 4, 5]
[optimizer]
kind = "sgd"
[[callbacks]]
kind = "image_visualizer"
interval = "2ba"
[[loggers]]
kind = "tensorboard"
[train]
max_duration = "4ba"
"""


def recorded():
    return trained(*LOCAL, ranks=1, **SHORT)


def unrecorded():
    return trained(*LOCAL, ranks=1, optimizer__lr=0.02, journal__level="off", **SHORT)


class Errors(tutti_run.RunTest):
    def test_a_folder_that_is_no_run_is_one_error(self):
        (self.folder / "empty").mkdir()
        (self.folder / "new").mkdir()
        (self.folder / "new" / "recipe.toml").touch()
        (self.folder / "new" / ".lock").touch()
        (self.folder / "drafts").mkdir()
        (self.folder / "drafts" / "recipe.toml").touch()
        for name, told in (("nowhere", "there is no such folder"), ("empty", "not a run folder: it has no recipe.toml"),
                           ("drafts", "not a run folder: it has a recipe.toml and nothing else that a run leaves"),
                           ("new", "there are no steps in ")):
            finished = tutti("report", self.folder / name).wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertRegex(finished.text, fr"^error: {self.folder / name}: {told}[^\n]*\n$")
            self.assertEqual((self.folder / name / ".lock").exists(), name == "new")


@unittest.skipIf(browser.executable() is None, "there is no Chromium")
class Report(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        cls.page = cls.enterClassContext(browser.Browser())

    def report(self, *runs):
        """Opens the page about the runs."""
        out = self.folder / "report.html"
        finished = tutti("report", *runs, "--out", out).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.page.open(out)
        self.assertEqual(self.page.errors, [])
        asked = [url for url in self.page.requests if url != "about:blank" and not url.startswith("data:")]
        self.assertEqual(asked, [out.as_uri()])
        self.page.requests.clear()
        return finished

    def curves(self):
        return {(curve["title"], curve["run"], curve["column"]): curve for curve in self.page.run(CURVES)}

    def text(self, id):
        return self.page.run(TEXT % id)

    def hover(self, title, share):
        """What the tooltip says at this share of a chart's width."""
        box = self.page.run(f"""(() => {{
          const plot = document.querySelector('[data-title="{title}"] svg.plot');
          plot.scrollIntoView({{block: "center"}});
          const box = plot.getBoundingClientRect();
          return [box.x, box.y, box.width, box.height]; }})()""")
        self.page.move(box[0] + share * box[2], box[1] + 0.4 * box[3])
        return self.text("tooltip")

    def test_one_run(self):
        run = recorded()
        self.report(run)
        lines = [line for line in tutti_run.metrics(run) if "loss" in line]
        evaluated = [line for line in tutti_run.metrics(run) if "metrics/eval/CrossEntropy" in line]
        points = {key[2]: curve["points"] for key, curve in self.curves().items()}
        for column in lines[-1].keys() - {"step", "epoch", "since_start_s", "grad_accum"}:
            self.assertEqual(points[column], 30, column)
        self.assertEqual(points["metrics/eval/CrossEntropy"], len(evaluated))
        self.assertIn("grad_accum", points)
        told = self.hover("loss", 0.999)
        self.assertIn("step 30", told)
        shown = [float(number) for number in re.findall(r"\d+\.\d+", told)]
        for loss in (lines[-1]["loss"], evaluated[-1]["metrics/eval/loss"]):
            self.assertTrue(any(abs(number - loss) < 1e-3 * loss for number in shown), told)
        self.assertIn("step 1\n", self.hover("loss", 0.001))
        self.assertRegex(self.text("runs-table"), r"\tended\t30\t")
        self.assertEqual(self.text("checkpoints-table").count("-ba"), 2)
        self.assertEqual(self.page.run("document.querySelectorAll('.mark[data-kind=checkpoint]').length"), 2)
        best = max(line["metrics/eval/MulticlassAccuracy"] for line in evaluated)
        step = next(line["step"] for line in evaluated if line["metrics/eval/MulticlassAccuracy"] == best)
        began = self.text("starts-table").split("\t")[-6]
        told = self.text("headline")
        self.assertRegex(told, fr"^Best MulticlassAccuracy: {best:.4g} of {run.name} after step {step}\n")
        self.assertIn(f"{began} UTC \u00b7 30 steps in ", told)
        self.assertRegex(told, fr"2 ranks in one process \u00b7 \S*/tutti train {tutti_run.DIGITS} --run-dir {run} ")
        self.assertEqual(self.page.run(SECTIONS)[0], "Runs")
        self.assertEqual(self.page.run(SECTIONS)[-1], "Recipe")

    def test_the_contents_lead_to_every_section(self):
        self.report(recorded())
        links = self.page.run("""[...document.querySelectorAll("#contents a")].map((link) =>
          [link.innerText, document.querySelector(`h2${link.getAttribute("href")}`)?.innerText])""")
        self.assertEqual(links, [[title, title] for title in self.page.run(SECTIONS)])

    def test_time_by_activity(self):
        self.report(recorded())
        bars = self.page.run("""[...document.querySelectorAll(".bar")].map(
          (bar) => [...bar.children].map((part) => [part.dataset.work, part.getBoundingClientRect().width]))""")
        self.assertEqual(len(bars), 2)
        for bar in bars:
            self.assertLessEqual({"forward", "backward", "update", "wait for all-reduce", "evaluation"}, {w for w, _ in bar})
            self.assertGreater(max(width for _, width in bar), 20)
        self.assertRegex(self.text("activity-table"), r"forward\t[\d.]+ m?s\t\d+\.\d%")

    def test_bars_may_be_in_percent(self):
        short = trained(*LOCAL, ranks=1, **{**SHORT, "train__max_duration": "1ba"})
        self.report(recorded(), short)
        shares = [filled / width for width, filled in self.page.run(BARS)]
        self.assertLess(min(shares), 0.999 * max(shares), "the shorter run has shorter bars")
        self.page.run("document.querySelectorAll('.choice button')[1].click()")
        for width, filled in self.page.run(BARS):
            self.assertAlmostEqual(filled, width, delta=1)

    def test_a_logarithmic_scale(self):
        self.report(recorded())
        ticks = """[...document.querySelectorAll('[data-title="loss"] .plot text[text-anchor=end]')].map(t => t.textContent)"""
        linear = self.page.run(ticks)
        self.page.run("""document.querySelector('[data-title="loss"] button').click()""")
        self.assertIn("0", linear)
        self.assertNotIn("0", self.page.run(ticks))
        self.assertEqual(self.curves()["loss", recorded().name, "loss"]["points"], 30)

    def test_runs_side_by_side(self):
        resumed = self.folder / "resumed"
        train(resumed, *LOCAL, ranks=1, **{**SHORT, "train__max_duration": "15ba"})
        train(resumed, *LOCAL, "--resume", "auto", ranks=1, **SHORT)
        runs = [recorded(), unrecorded(), resumed]
        self.report(*runs)
        losses = [curve for key, curve in self.curves().items() if key[0] == key[2] == "loss"]
        self.assertEqual([curve["run"] for curve in losses], [run.name for run in runs])
        self.assertEqual([curve["points"] for curve in losses], [30] * 3)
        self.assertEqual(len({curve["colour"] for curve in losses}), 3)
        self.assertIn(f"needs journal/, which {runs[1].name} lacks", self.text("page"))
        self.assertEqual(self.page.run("document.querySelectorAll('.bar').length"), 4)
        self.assertRegex(self.text("starts-table"), r"resumed\t2\t[-\d: ]+\t2\t[^\t]+\t16 to 30\tauto\texit code 0")
        self.assertEqual(self.page.run("document.querySelectorAll('.mark[data-kind=start]').length"), 1)
        differing = self.page.run("[...document.querySelectorAll('tr.differs code:first-child')].map(c => c.innerText)")
        self.assertLessEqual({"optimizer.lr", "journal.level"}, set(differing))
        self.assertNotIn("seed", differing)
        weight = "getComputedStyle(document.querySelector('%s td:first-child code')).fontWeight"
        self.assertGreaterEqual(int(self.page.run(weight % "#recipe-table .differs")), 600)
        self.assertEqual(self.page.run(weight % "#recipe-rest tr"), "400")
        tinted = self.page.run("[...document.querySelectorAll('#recipe-table .changed')].map((one) => one.innerText)")
        self.assertIn("0.02", tinted)
        self.assertIsNone(self.page.run("document.querySelector('#recipe-table tbody tr:not(.differs)')"))
        self.assertFalse(self.page.run("document.getElementById('recipe-fold').open"))
        self.assertIn("seed", self.page.run("document.getElementById('recipe-rest').textContent"))
        self.assertEqual(self.page.run(SECTIONS)[:2], ["Runs", "Recipes"])
        self.page.run("document.querySelectorAll('#legend input')[1].click()")
        self.assertEqual({key[1] for key in self.curves()}, {runs[0].name, resumed.name})
        self.page.run("document.querySelectorAll('#controls button')[1].click()")
        self.assertIn("training time", self.page.run("document.querySelector('.plot').textContent"))
        self.assertEqual(self.page.errors, [])

    def test_colours_are_the_users_choice(self):
        self.report(recorded())
        shades = {}
        for scheme in ("light", "dark"):
            self.page.scheme(scheme)
            colour = self.page.run("getComputedStyle(document.body).backgroundColor")
            shades[scheme] = sum(map(int, re.findall(r"\d+", colour)))
        self.assertLess(shades["dark"], 200)
        self.assertGreater(shades["light"], 600)

    def test_a_run_under_way(self):
        run = self.folder / "run"
        running = start(run, *LOCAL, ranks=1, train__max_duration="100000ep")
        running.wait_for(lambda: (run / "metrics.jsonl").exists() and len((run / "metrics.jsonl").read_bytes()) > 9000,
                         "steps")
        self.report(run)
        self.assertIn("\trunning\t", self.text("runs-table"))
        self.assertFalse(running.is_over())
        running.kill()
        self.report(run)
        self.assertIn("\tkilled\t", self.text("runs-table"))

    def made_up(self, name, lines, sections=""):
        run = self.folder / name
        run.mkdir()
        (run / "recipe.toml").write_text('run_name = "<b>&amp;</b>"\n' + sections)
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return run

    def test_many_steps_and_numbers_that_are_none(self):
        values = {50000: "nan", 50001: "inf", 70000: 900}
        run = self.made_up("long", ({"step": step, "loss": values.get(step, 1 / step), "step_ms": 2, "own": step % 7}
                                    for step in range(1, 100_001)))
        self.assertLess(self.report(run).took_s, 10)
        self.assertLess((self.folder / "report.html").stat().st_size, 1 << 20)
        points = {key[0]: curve["points"] for key, curve in self.curves().items()}
        self.assertEqual(points, {"loss": 600, "time of a step": 600, "own": 600})
        self.assertEqual(self.page.run("document.querySelectorAll('[data-title=loss] .cross').length"), 2)
        share = self.page.run("charts[0].x(70000) / charts[0].plot.getBoundingClientRect().width")
        self.assertRegex(self.hover("loss", share), r"\(.* to 900\)")

    def test_the_best_of_several_runs_is_first(self):
        metric = "metrics/eval/CrossEntropy"
        runs = [self.made_up(name, ({"step": step, "loss": 1, metric: value} for step, value in enumerate(values, 1)))
                for name, values in (("a", [3, 2, "nan"]), ("b", [4, 1, 2]), ("c", ["nan"]))]
        self.report(*runs)
        self.assertEqual(self.text("headline").splitlines()[0], "Best CrossEntropy: 1 of b after step 2, 2 of a")

    def test_a_sweep_is_sorted_with_its_keys_and_a_failure_comes_first(self):
        metric = "metrics/eval/MulticlassAccuracy"
        paths = [f"{sweep}/{name}" for sweep in ("x", "y") for name in ("low", "high")]
        for name in ("x", "y"):
            (self.folder / name).mkdir()
        for lr, path in enumerate(paths, 1):
            self.made_up(path, [{"step": step, "loss": 3, metric: 0.1 * lr} for step in (1, 2)],
                         f"[optimizer]\nlr = {lr}\n[train]\nmax_duration = '2ba'\n")
        (self.folder / paths[0] / "result.json").write_text('{"ended": "error", "reason": "step 3: NaNMonitor"}')
        self.report(*(self.folder / path for path in paths))
        rows = self.page.run("""[...document.querySelectorAll("#runs-table tr")].map(
          (row) => [...row.cells].map((cell) => cell.innerText))""")
        self.assertEqual([row[rows[0].index("lr")] for row in rows], ["lr", "4", "3", "2", "1"])
        self.assertTrue(self.text("headline").startswith(f"{self.folder / paths[0]} failed: step 3: NaNMonitor\n"))
        self.assertIn(f"Best MulticlassAccuracy: 0.4 of {self.folder / paths[3]} after", self.text("headline"))
        ticks = "[...document.querySelectorAll('[data-title=loss] .plot text[text-anchor=middle]')].map(t => t.textContent)"
        self.assertEqual(self.page.run(ticks), ["0", "1", "2", "step"])

    def test_the_loss_of_a_failed_run_is_no_headline(self):
        run = self.made_up("run", [{"step": 1, "loss": 2}])
        (run / "result.json").write_text('{"ended": "error", "reason": "step 2: no"}')
        self.report(run)
        self.assertTrue(self.text("headline").startswith("run failed: step 2: no\n"))
        self.assertNotIn("Best", self.text("headline"))

    def test_many_metrics_are_rows_and_a_confusion_matrix_is_a_heat_map(self):
        metrics = {f"metrics/eval/M{i}": i for i in range(6)}
        cells = {f"metrics/eval/ConfusionMatrix/{r}/{c}": 10 * r + c for r in range(10) for c in range(10)}
        self.report(self.made_up("run", [{"step": 1, "loss": 1}, {"step": 1, **metrics, **cells}]))
        self.assertEqual(self.text("metrics-table").split("\n")[:3], ["metric\trun", "M0\t0", "M1\t1"])
        self.assertNotIn("M1", self.text("runs-table"))
        self.assertEqual(self.page.run("document.querySelectorAll('.heat rect').length"), 100)
        self.assertEqual(len({key[0] for key in self.curves()}), 7)
        shade = "Number(getComputedStyle(document.querySelector('[data-cell=\"%s\"]')).fillOpacity)"
        self.assertAlmostEqual(self.page.run(shade % "3/7"), 37 / 345, delta=1e-3)

    def test_a_loss_that_spans_decades_is_logarithmic(self):
        steep = self.made_up("steep", ({"step": step, "loss": 100 / step, "lr": 1 / step} for step in range(1, 101)))
        flat = self.made_up("flat", ({"step": step, "loss": 2 + 1 / step, "lr": 1 / step} for step in range(1, 101)))
        pressed = "[...document.querySelectorAll('.chart-head button')].filter((b) => b.ariaPressed === 'true').map(" \
                  "(b) => b.closest('[data-title]').dataset.title)"
        ticks = "[...document.querySelectorAll('[data-title=loss] .plot text[text-anchor=end]')].map(t => t.textContent)"
        self.report(steep)
        self.assertEqual(self.page.run(pressed), ["loss"])
        self.assertEqual(self.page.run(ticks), ["1", "2", "5", "10", "20", "50", "100"])
        self.page.run("document.querySelector('[data-title=loss] button').click()")
        self.assertEqual(self.page.run(pressed), [])
        self.report(flat)
        self.assertEqual(self.page.run(pressed), [])

    def test_the_curves_of_monitors_are_folded_and_last(self):
        many = {f"l2_norm/grad/layer{i}.weight": i for i in range(9)}
        run = self.made_up("run", ({"step": step, "loss": 1, **many, "own": 2} for step in range(1, 9)))
        self.report(run)
        self.assertEqual(self.page.run(SECTIONS)[-2:], ["Recipe", "Monitors"])
        self.assertEqual({key[0] for key in self.curves()}, {"loss", "own"})
        self.assertEqual(self.page.run("[...document.querySelectorAll('#monitors ~ details')].map(d => d.innerText)"),
                         ["l2_norm/grad 9 charts"])
        self.page.run("document.querySelector('#monitors ~ details summary').click()")
        self.page.run("new Promise((drawn) => setTimeout(drawn))")
        self.assertEqual({key[0] for key in self.curves()}, {"loss", "own", *many})
        self.assertIn("layer8.weight\n", self.page.run("document.querySelector('#monitors ~ details').innerText"))

    def test_names_that_every_object_has(self):
        odd = ["constructor", "__proto__", "toString"]
        lines = [{"step": 1, "loss": 1, **{name: 2 for name in odd}, **{"metrics/eval/" + name: 3 for name in odd}}]
        self.report(self.made_up("plain", [{"step": 1, "loss": 1}]), self.made_up("odd", lines))
        self.assertEqual({key[1:] for key in self.curves() if key[0] != "loss"},
                         {("odd", prefix + name) for name in odd for prefix in ("", "metrics/eval/")})
        self.assertEqual([row.split("\t")[7:10] for row in self.text("runs-table").splitlines() if "\t" in row][1:],
                         [["3"] * 3, ["\u2013"] * 3])

    def test_images_that_were_logged_are_in_the_page(self):
        recipe, run = self.folder / "images.toml", self.folder / "run"
        recipe.write_text(IMAGES)
        train(run, recipe=recipe, ranks=1)
        self.report(run)
        self.page.run("Promise.all([...document.images].map((image) => image.decode()))")
        shown = self.page.run("""[...document.images].map((image) => [image.alt, image.naturalWidth,
          image.naturalHeight, image.getBoundingClientRect().width])""")
        self.assertEqual(shown, [[f"Images/Train after {steps} steps", 8 * 5, 4, 6 * 8 * 5] for steps in (0, 2)])
        self.assertEqual(self.page.errors, [])

    def test_texts_that_were_logged_are_in_the_page(self):
        run = self.made_up("run", [{"step": 1, "loss": 1}], '[[loggers]]\nkind = "jsonl"\nfilename = "logs.jsonl"\n')
        rows = [["In the", "<b>beginning</b>\nwas"], ["a|b", "c"]]
        lines = [{"type": "table", "name": "generations", "batch": 2, "columns": ["prompt", "generation"], "rows": rows},
                 {"type": "text", "name": "note", "batch": 1, "text": "all is well"},
                 {"type": "metrics", "name": "note", "batch": 3, "text": "no text"}]
        (run / "logs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "text", "na')
        self.report(run)
        cells = self.page.run("""[...document.querySelectorAll(".logged")].map((card) => [card.dataset.name,
          [...card.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.innerText))])""")
        self.assertEqual(cells, [["generations", [["", "prompt", "generation"], ["after 2 steps", *rows[0]], ["", *rows[1]]]],
                                 ["note", [["", ""], ["after 1 step", "all is well"]]]])

    def test_no_text_is_taken_for_markup(self):
        name = "<img src=x onerror=alert(1)>'\"&amp;"
        run = self.made_up(name, [{"step": 1, "loss": 1.5, name: 2, "metrics/eval/" + name: 3}])
        self.report(run)
        self.assertIn(name, self.text("runs-table"))
        self.assertIn("<b>&amp;</b>", self.text("recipe-table") + self.text("page"))
        self.assertEqual(self.page.run("document.querySelectorAll('img, main b').length"), 0)


if __name__ == "__main__":
    tutti_run.main()
