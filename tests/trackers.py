"""Runs of [[loggers]] kind = "wandb" and "mlflow", as the real packages read them: tests/trackers.sh."""
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "runs"))
import tutti_run  # noqa: E402
from tutti_run import DIGITS, start, train  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # seven processes more
SHORT = {"train__max_duration": "60ba", "checkpoint__interval": "20ba", "train__auto_log_hparams": "true"}
LONG = {**SHORT, "train__max_duration": "100000ba"}  # to be killed


class WandbServer(http.server.BaseHTTPRequestHandler):
    """Takes what `wandb sync` sends, and keeps it as W&B does: by run, file and line."""
    runs, history, uploads, system, summary = set(), {}, set(), [], {}
    config = {}

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def do_GET(self):
        self.answer({})

    def do_PUT(self):
        self.body()
        self.uploads.add(self.path.removeprefix("/upload/"))
        self.answer({})

    def do_POST(self):
        body = self.body()
        if self.path != "/graphql" and not self.path.endswith("/file_stream"):
            return self.answer({})  # what the package says of itself
        sent = json.loads(body)
        if self.path != "/graphql":
            return self.take_stream(sent)
        asked, given = sent.get("operationName"), sent.get("variables", {})
        if asked == "UpsertBucket":
            self.runs.add((given["project"], given["name"]))
            self.config.update(json.loads(given["config"] or "{}"))
            project = {"id": "1", "name": given["project"], "entity": {"id": "2", "name": "me"}}
            bucket = {"id": "3", "name": given["name"], "displayName": given["displayName"], "config": "{}",
                      "description": "", "sweepName": None, "project": project, "historyLineCount": 0}
            return self.answer({"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}})
        if asked == "CreateRunFiles":
            here = f"http://127.0.0.1:{self.server.server_address[1]}/upload/"
            files = [{"name": name, "uploadUrl": here + name} for name in given["files"]]
            made = {"runID": "3", "uploadHeaders": [], "files": files}
            return self.answer({"data": {"createRunFiles": made}})
        return self.answer({"data": {}})

    def take_stream(self, sent):
        for name, part in (sent.get("files") or {}).items():
            lines = [json.loads(line) for line in part["content"]]
            if name == "wandb-history.jsonl":
                self.history.update({part["offset"] + i: line for i, line in enumerate(lines)})
            elif name == "wandb-events.jsonl":
                self.system.extend(lines)
            elif name == "wandb-summary.json":
                self.summary.update(lines[-1])
        self.answer({"exitcode": None, "limits": {}})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def wandb_server():
    kept = type("Kept", (WandbServer,), {"runs": set(), "history": {}, "uploads": set(), "system": [],
                                         "summary": {}, "config": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kept) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kept.port = server.server_address[1]
        yield kept
        server.shutdown()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class MlflowServer:
    """MLflow's own server with a database, on loopback."""

    def __init__(self, folder, port):
        self.uri = f"http://127.0.0.1:{port}"
        self.output = open(folder / "server.log", "a")
        self.process = subprocess.Popen(
            [BIN / "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
             "--workers", "1", "--artifacts-destination", folder / "artifacts", "--host", "127.0.0.1",
             "--port", str(port)],
            stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)
        for _ in range(3000):
            with contextlib.suppress(OSError), urllib.request.urlopen(self.uri + "/health") as answer:
                if answer.status == 200:
                    return
            time.sleep(0.1)
        self.stop()
        raise AssertionError("MLflow's server did not start: " + (folder / "server.log").read_text())

    def get(self, path):
        with urllib.request.urlopen(f"{self.uri}/api/2.0/mlflow/{path}") as answer:
            return json.load(answer)

    def post(self, path, **body):
        request = urllib.request.Request(f"{self.uri}/api/2.0/mlflow/{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def runs(self, experiment="digits"):
        found = self.get(f"experiments/get-by-name?experiment_name={experiment}")["experiment"]
        return self.post("runs/search", experiment_ids=[found["experiment_id"]]).get("runs", [])

    def points(self, run, metric):
        told = self.get(f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={metric}")
        return [(point["step"], point["value"]) for point in told.get("metrics", [])]

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.output.close()


class Trackers(tutti_run.RunTest):
    def recipe(self, sections):
        path = self.folder / "recipe.toml"
        text = DIGITS.read_text().replace('path = "', f'path = "{DIGITS.parent}/')
        path.write_text(text + '\n[[callbacks]]\nkind = "system_metrics_monitor"\n' + sections)
        return path

    def killed_and_resumed(self, recipe, steps=100):
        """A run that was killed behind a checkpoint, and has gone on to its end."""
        run = self.folder / "run"
        running = start(run, recipe=recipe, **LONG)
        running.wait_for(lambda: self.steps(run) > 50, "step 50")
        running.signal_ranks(signal.SIGKILL)
        running.wait()
        last = max(int(path.name.split("ba")[1]) for path in (run / "checkpoints").glob("ep*"))
        settings = {**LONG, "train__max_duration": f"{last + steps}ba"}
        train(run, "--resume", "auto", recipe=recipe, **settings)
        return run, settings

    def run_on(self, server, run, recipe, settings, experiment="digits"):
        """The finished run. A busy machine may need more than the ten seconds at the end of a run."""
        for _ in range(20):
            with contextlib.suppress(urllib.error.HTTPError):  # without experiment
                (tracked,) = server.runs(experiment) or [None]
                if tracked and tracked["info"]["status"] == "FINISHED":
                    return tracked
            train(run, "--resume", "auto", recipe=recipe, **settings)
        raise AssertionError("MLflow's server does not have the run: " + tutti_run.log(run))

    def steps(self, run):
        path = run / "metrics.jsonl"
        return path.read_text().count("step_ms") if path.exists() else 0

    def resolved(self, run):
        return tomllib.loads((run / "recipe.toml").read_text())

    def losses(self, run):
        return {line["step"] - 1: line["loss"] for line in tutti_run.metrics(run) if "loss" in line}

    def assert_curve(self, points, losses):
        self.assertEqual([step for step, _ in points], list(losses))
        for step, value in points:
            self.assertAlmostEqual(value, losses[step], delta=1e-6)

    def synced(self, server, run):
        (folder,) = (run / "wandb").iterdir()
        environment = {**os.environ, "WANDB_BASE_URL": f"http://127.0.0.1:{server.port}",
                       "WANDB_API_KEY": "a" * 40, "WANDB_DIR": str(self.folder)}
        told = subprocess.run([BIN / "wandb", "sync", "--yes", folder], env=environment, cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertEqual(len(list(folder.glob("*.synced"))), 1, told.stdout)
        return [server.history[line] for line in sorted(server.history)]

    def test_wandb_sync_sends_a_killed_run_as_one_run(self):
        recipe = self.recipe('[[loggers]]\nkind = "wandb"\nproject = "digits"\ntags = ["a", "b"]\n')
        run, _ = self.killed_and_resumed(recipe)
        with wandb_server() as server:
            rows = self.synced(server, run)
            self.assertEqual([row["_step"] for row in rows], list(range(len(rows))))
            losses = self.losses(run)
            self.assert_curve([(row["_step"], row["loss/train/total"]) for row in rows
                               if "loss/train/total" in row], losses)
            self.assertEqual(len(rows), len(losses) + 1)  # the last evaluation is after the last batch
            self.assertIn("metrics/eval/MulticlassAccuracy", rows[-1])
            self.assertTrue(all(a["_runtime"] <= b["_runtime"] for a, b in zip(rows, rows[1:])))
            self.assertEqual([project for project, _ in server.runs], ["digits"])
            self.assertEqual(server.config["optimizer.lr"]["value"], self.resolved(run)["optimizer"]["lr"])
            self.assertIn("system.cpu", server.system[0])
            self.assertIn("metrics/eval/MulticlassAccuracy", server.summary)
            first = dict(server.history)
            (run / "wandb").glob("*/*.synced").__next__().unlink()
            self.synced(server, run)
            self.assertEqual(server.history.keys(), first.keys())  # sent twice, there once

    def test_wandb_sync_sends_what_a_kill_left(self):
        run = self.folder / "run"
        running = start(run, recipe=self.recipe('[[loggers]]\nkind = "wandb"\n'), **LONG)
        running.wait_for(lambda: self.steps(run) > 50, "step 50")
        running.signal_ranks(signal.SIGKILL)
        running.wait()
        with wandb_server() as server:
            rows = self.synced(server, run)
        self.assertGreater(len(rows), 40)
        self.assertEqual([row["_step"] for row in rows], list(range(len(rows))))

    def test_media_reach_wandb_and_mlflow(self):
        text = pathlib.Path(__file__).parent.joinpath("runs/loggers_test.py").read_text()
        images = text.split('SHOWING = """')[1].split('"""')[0].replace("tensorboard", "wandb")
        tables = text.split('WRITING = """')[1].split('"""')[0].replace("tensorboard", "wandb")
        server = MlflowServer(self.folder, free_port())
        self.addCleanup(server.stop)
        for name, sections in (("images", images), ("tables", tables)):
            path, run = self.folder / f"{name}.toml", self.folder / name
            path.write_text(sections + f'\n[[loggers]]\nkind = "mlflow"\ntracking_uri = "{server.uri}"\n'
                            f'experiment_name = "{name}"\n')
            train(run, recipe=path)
            with wandb_server() as wandb:
                rows = self.synced(wandb, run)
            tracked = self.run_on(server, run, path, {}, name)
            listed = server.get(f"artifacts/list?run_id={tracked['info']['run_id']}&path=" +
                                ("images/Images" if name == "images" else "tables"))
            kept = [file["path"] for file in listed["files"]]
            if name == "images":
                shown = [row for row in rows if "Images/Train" in row]
                self.assertEqual([row["Images/Train"]["count"] for row in shown], [10, 10])
                self.assertLessEqual(set(shown[0]["Images/Train"]["filenames"]), wandb.uploads)
                self.assertEqual(kept, ["images/Images/Train-000000.png", "images/Images/Train-000002.png"])
            else:
                shown = [row["generations"]["path"] for row in rows if "generations" in row]
                self.assertEqual(len(shown), 2)
                self.assertLessEqual(set(shown), wandb.uploads)
                self.assertEqual(kept, ["tables/generations-000002.json", "tables/generations-000004.json"])

    def test_mlflows_server_shows_a_killed_run_as_one_run(self):
        server = MlflowServer(self.folder, free_port())
        self.addCleanup(server.stop)
        recipe = self.recipe(
            f'[[loggers]]\nkind = "mlflow"\nexperiment_name = "digits"\ntracking_uri = "{server.uri}"\n'
            'tags = {team = "vision"}\nlogging_buffer_seconds = 0\n')
        run, settings = self.killed_and_resumed(recipe)
        tracked = self.run_on(server, run, recipe, settings)
        self.assertIn({"key": "team", "value": "vision"}, tracked["data"]["tags"])
        self.assertIn("optimizer.lr", [param["key"] for param in tracked["data"]["params"]])
        self.assertIn("system/cpu_percentage", [metric["key"] for metric in tracked["data"]["metrics"]])
        self.assert_curve(server.points(tracked, "loss/train/total"), self.losses(run))

    def test_a_dead_server_costs_neither_a_step_nor_a_record(self):
        port = free_port()
        run = self.folder / "run"
        recipe = self.recipe(f'[[loggers]]\nkind = "mlflow"\nexperiment_name = "digits"\n'
                             f'tracking_uri = "http://127.0.0.1:{port}"\n')
        finished = train(run, recipe=recipe, **SHORT)
        self.assertRegex(tutti_run.log(run), rf"127.0.0.1:{port} lacks \d+ records")
        self.assertLess(finished.took_s, 60)
        server = MlflowServer(self.folder, port)
        self.addCleanup(server.stop)
        train(run, "--resume", "auto", recipe=recipe, **SHORT)
        tracked = self.run_on(server, run, recipe, SHORT)
        self.assert_curve(server.points(tracked, "loss/train/total"), self.losses(run))

    def test_a_server_that_never_answers_holds_nobody_up(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(8)
            finished = train(self.folder / "run", recipe=self.recipe(
                '[[loggers]]\nkind = "mlflow"\n'
                f'tracking_uri = "http://127.0.0.1:{silent.getsockname()[1]}"\n'), **SHORT)
        self.assertLess(finished.took_s, 60)
        self.assertRegex(tutti_run.log(self.folder / "run"), r"lacks \d+ records")

    def test_mlflow_shows_that_a_run_failed(self):
        import mlflow
        recipe = self.recipe('[[loggers]]\nkind = "mlflow"\n[[callbacks]]\nkind = "nan_monitor"\n')
        for name, more in (("stopped_by_an_error", {}), ("local", {"ranks": 1})):
            run = self.folder / name
            failing = start(run, recipe=recipe, optimizer__lr="1e30", **{**SHORT, **more})
            self.assertNotEqual(failing.wait().code, 0)
            (tracked,) = mlflow.MlflowClient(f"file://{run}/mlruns").search_runs(["0"])
            self.assertEqual(tracked.info.status, "FAILED")

    def test_mlflow_reads_a_killed_run_in_files(self):
        import mlflow
        run, _ = self.killed_and_resumed(self.recipe(
            '[[loggers]]\nkind = "mlflow"\nexperiment_name = "my digits"\nlogging_buffer_seconds = 0\n'))
        client = mlflow.MlflowClient(f"file://{run}/mlruns")
        experiment = client.get_experiment_by_name("my digits")
        (tracked,) = client.search_runs([experiment.experiment_id])
        self.assertEqual(tracked.info.status, "FINISHED")
        self.assertEqual(tracked.info.run_name, self.resolved(run)["run_name"])
        points = [(point.step, point.value) for point in client.get_metric_history(tracked.info.run_id,
                                                                                   "loss/train/total")]
        self.assert_curve(points, self.losses(run))
        self.assertIn("optimizer.lr", tracked.data.params)
        self.assertIn("system/cpu_percentage", tracked.data.metrics)


if __name__ == "__main__":
    unittest.main(verbosity=2)
