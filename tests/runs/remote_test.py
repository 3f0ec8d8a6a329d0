"""Checkpoints in a remote store, which a command reaches that fails, hangs, is slow or dies."""
import json
import pathlib
import shutil

import tutti_run
from tutti_run import DIGITS, digest, log, start, train, trained, tutti

STORE = pathlib.Path(__file__).with_name("remote_store.sh")
SHORT = {"train__max_duration": "20ba", "checkpoint__interval": "5ba", "checkpoint__keep": -1}


class Remote(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "store"
        self.bucket = self.root / "bucket" / "digits"
        self.root.mkdir()

    def options(self, **more):
        line = f"sh {STORE} {self.root}"
        return {**SHORT, "checkpoint__save_folder": "fake://bucket/{run_name}",
                "remote__upload_command": line + " put {source} {target}",
                "remote__fetch_command": line + " get {source} {target}",
                "remote__list_command": line + " ls {remote}",
                "remote__delete_command": line + " rm {remote}",
                "remote__retry_interval": "0sec", **more}

    def calls(self, verb):
        lines = (self.root / "calls").read_text().splitlines()
        return [line.split()[-1].removeprefix("fake://bucket/digits/") for line in lines
                if line.startswith(verb)]

    def complete(self):
        return sorted(path.parent.name for path in self.bucket.glob("*/manifest.json"))

    def test_a_bare_machine_resumes_with_the_bits_of_a_run_that_was_never_stopped(self):
        (self.root / "failures").write_bytes(b"x" * 4)  # of five attempts
        first = train(self.folder / "first", **self.options(train__stop_at="10ba"))
        self.assertEqual(self.complete(), ["ep0-ba10", "ep0-ba5"])
        self.assertEqual((self.bucket / "latest").read_text(), "ep0-ba10\n")
        put = self.calls("put")
        for name in self.complete():
            of = [file for file in put if file.startswith(name)]
            self.assertEqual(of[-1], f"{name}/manifest.json", "the last of its checkpoint")
        for text in (first.text, log(self.folder / "first"), (self.folder / "first" / "recipe.toml").read_text()):
            self.assertNotIn(str(STORE), text)
        shutil.rmtree(self.folder / "first")
        resumed = train(self.folder / "second", "--resume", "auto", ranks=1, **self.options())
        self.assertIn("fetched fake://bucket/digits/ep0-ba10\n", resumed.text)
        self.assertIn("resumes after step 10,", resumed.text)
        self.assertEqual(digest(self.folder / "second"), digest(trained(**SHORT)))
        self.assertEqual(self.calls("put").count("ep0-ba10/manifest.json"), 1, "it is there already")
        replayed = tutti("replay", self.folder / "second").wait()
        self.assertEqual(replayed.code, 0, replayed.text)

    def test_a_partial_copy_is_no_checkpoint_and_a_damaged_one_is_passed_over_with_a_line(self):
        run = self.folder / "run"
        (self.root / "slow").touch()
        running = start(run, ranks=1, **self.options(train__max_duration="10000ep"))
        running.wait_for(lambda: len(self.complete()) > 1 and self.calls("put")[-1].endswith(".h5"),
                         "a third copy under way")
        running.kill()
        (self.root / "slow").unlink()
        whole = self.complete()
        self.assertGreater(len(list(self.bucket.glob("ep*"))), len(whole))
        shutil.rmtree(run)
        newest = max(whole, key=lambda name: int(name.split("-ba")[1]))
        with (self.bucket / newest / "rank-0.h5").open("r+b") as file:
            file.seek(5000)
            file.write(b"damaged")
        left = max(set(whole) - {newest}, key=lambda name: int(name.split("-ba")[1]))
        step = int(left.split("-ba")[1])
        finished = train(run, "--resume", "auto", ranks=1, **self.options(train__max_duration=f"{step + 5}ba"))
        self.assertIn(f"warning: ignored: fake://bucket/digits/{newest}: ", finished.text)
        self.assertIn(f"resumes after step {step},", finished.text)
        self.assertIn(f"ep{(step + 5) // 15}-ba{step + 5}", self.complete())

    def test_a_store_that_fails_never_stops_a_training_and_gets_the_rest_later(self):
        run = self.folder / "run"
        options = self.options(remote__num_attempts=2, remote__timeout="1sec", remote__finish_timeout="3sec",
                               train__max_duration="1000ba", checkpoint__interval="200ba", checkpoint__keep=2)
        running = start(run, ranks=1, **options)
        running.wait_for(lambda: "ep13-ba200" in self.complete(), "the first copy")
        (self.root / "hangs").touch()
        running.wait_for(lambda: "was ended after 1 s" in log(run), "a command that hangs")
        finished = running.wait()
        self.assertEqual(finished.code, 3, finished.text)
        result = json.loads((run / "result.json").read_text())
        self.assertEqual(result["ended"], "max_duration")
        self.assertEqual(result["not_uploaded"], ["ep53-ba800", "ep66-ba1000"])
        self.assertIn("not in fake://bucket/digits at the end of the run", finished.text)
        status = tutti("status", run).wait().text
        self.assertRegex(status, "uploads +fake://bucket/digits: the newest is ep13-ba200, 2 not uploaded; sh ")
        (self.root / "hangs").unlink()
        resumed = tutti("resume", run, *tutti_run.settings(**{key: value for key, value in options.items()
                                                             if "_command" in key})).wait()
        self.assertEqual(resumed.code, 0, resumed.text)
        self.assertEqual(self.complete(), ["ep53-ba800", "ep66-ba1000"])
        self.assertNotIn("not_uploaded", (run / "result.json").read_text())

    def test_what_cannot_work_is_refused_before_training(self):
        run = self.folder / "run"

        def refused(*arguments, **options):
            finished = start(run, *arguments, ranks=1, **options).wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertEqual(len(finished.errors()), 1, finished.text)
            return finished.errors()[0]

        self.assertIn("a remote path needs [remote] command",
                      refused(**SHORT, checkpoint__save_folder="s3://bucket/digits"))
        self.assertIn("there is no {target}", refused(**self.options(remote__upload_command="cp {source}")))
        (self.root / "broken").touch()
        error = refused(**self.options(remote__num_attempts=1))
        self.assertIn("sh ..., which uploads tutti.txt, failed with exit code 5; what it printed is in", error)
        self.assertNotIn("SECRET", error)
        (self.root / "broken").unlink()
        train(run, ranks=1, **self.options(train__max_duration="5ba"))
        self.assertIn("has checkpoints (ep0-ba5), with which those of a run that starts afresh would be mixed",
                      refused(**self.options()))
        loaded = train(self.folder / "other", ranks=2, **{
            **self.options(), "checkpoint__save_folder": self.folder / "saved",
            "checkpoint__load_path": "fake://bucket/digits"})
        self.assertIn("resumes after step 5,", loaded.text)
        self.assertEqual(digest(self.folder / "saved"), digest(trained(**SHORT)))


if __name__ == "__main__":
    tutti_run.main()
