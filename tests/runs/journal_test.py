"""What recorded runs tell: where two differ, and what each actor did when."""
import collections
import json
import os
import signal

import tutti_run
from tutti_run import DIGITS, TUTTI, Running, settings, start, train, tutti

SHORT = {"train__max_duration": "30ba", "checkpoint__interval": "15ba"}


def steps(run):
    path = run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


class Recorded(tutti_run.RunTest):
    def tell(self, *arguments, code=0):
        finished = tutti(*arguments).wait()
        self.assertEqual(finished.code, code, finished.text)
        return finished.text.strip()

    def record(self, name, *arguments, **options):
        """On two ranks in one process. A run that begins is one that any test may have recorded."""
        recording = train if arguments else tutti_run.copy_trained
        recording(self.folder / name, "--local-ranks", 2, *arguments, ranks=1, **{**SHORT, **options})
        return self.folder / name


class CutShort(Recorded):
    def test_a_journal_that_cannot_be_written_on(self):
        """It ends there, and the training does not; the log says so, and a replay how far it comes."""
        run = self.folder / "run"
        options = {"train__max_duration": "180ep", "train__eval_interval": "180ep", "checkpoint__interval": "60ep",
                   "collectives__bucket_mb": 0.001}  # many buckets: more than a MiB of digests
        finished = Running(["prlimit", "--fsize=1500000", TUTTI, "train", DIGITS, "--run-dir", run,
                            "--local-ranks", "2", *settings(**options)]).wait()
        self.assertEqual(finished.code, 0, finished.text)
        for rank in (0, 1):
            journal = next((run / "journal").glob(f"*/rank-{rank}.journal"))
            log = tutti_run.log(run, rank)
            at_once = log.find(f"the journal ends here, and training continues without it: {journal}: File too large")
            self.assertGreaterEqual(at_once, 0, log)
            self.assertGreater(log.find("the journal is not whole, and cannot be replayed to its end: "), at_once, log)
        told = self.tell("replay", run)
        self.assertRegex(told, r"digests, all equal; the record of rank 0 ends in step 2\d\d\d, where it")
        self.assertIn("File too large", told)

    def test_a_journal_that_somebody_truncates(self):
        """The training continues without the journal, and says so."""
        run = self.folder / "run"
        running = start(run, "--local-ranks", 2, ranks=1, train__max_duration="100000ep")
        running.wait_for(lambda: steps(run) > 20, "a step")
        journal = next((run / "journal").glob("*/rank-1.journal"))
        os.truncate(journal, 100)
        told = f"{journal}: it was cut short while the run wrote it"
        running.wait_for(lambda: told in tutti_run.log(run, 1), "what the log says")
        before = steps(run)
        running.wait_for(lambda: steps(run) > before + 100, "steps without the journal")
        self.tell("stop", run)
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertNotIn("the journal is not whole", tutti_run.log(run, 0))


class Diff(Recorded):
    def test_ranks_in_one_process_equal_mpirun(self):
        train(self.folder / "mpi", ranks=2, **SHORT)
        told = self.tell("diff", self.folder / "mpi", self.record("local"))
        self.assertRegex(told, r"^equal: 30 steps, \d{3} digests of 2 ranks$")

    def test_a_resumed_run_equals_a_whole_one(self):
        whole = self.record("whole", collectives__bucket_mb=0.01)
        self.record("resumed", train__max_duration="15ba", collectives__bucket_mb=0.01)
        resumed = self.record("resumed", "--resume", "auto", collectives__bucket_mb=0.01)
        told = self.tell("diff", whole, resumed)
        self.assertRegex(told, r"^equal: 15 steps, \d{3} digests of 2 ranks; "
                               r".*/whole has steps 1 to 30, .*/resumed 16 to 30$")

    def test_attempts_of_one_run_can_be_chosen(self):
        run = self.record("run", train__max_duration="15ba")
        self.record("run", "--resume", "auto")
        whole = self.record("whole")
        for start_of, steps in (1, "1 to 15"), (2, "16 to 30"):
            told = self.tell("diff", run, whole, "--attempt-a", start_of).splitlines()[-1]
            self.assertRegex(told, r"^equal: 15 steps, \d{3} digests of 2 ranks; ")
            self.assertIn(f"; {run} (attempt {start_of}) has steps {steps}, {whole} 1 to 30", told)
        told = self.tell("diff", run, run, "--attempt-b", 3, code=2)
        self.assertEqual(told, f"error: {run}: there is no attempt 3: it has journals of 2 attempts")
        self.tell("timeline", run, "--attempt", 1)
        trace = Trace(run / "timeline.json", self)
        steps = {event["args"]["step"] for event in trace.events if event.get("name") == "end of step"}
        self.assertEqual(steps, set(range(1, 16)))

    def test_a_rank_whose_record_was_cut_is_named(self):
        one, two = self.record("one"), self.record("two")
        journal = next((two / "journal").glob("*/rank-1.journal"))
        journal.write_bytes(journal.read_bytes()[:3000])
        told = self.tell("diff", one, two, code=1)
        self.assertRegex(told, r"^equal: (\d) steps?, \d+ digests of 2 ranks\n"
                               r"rank 1 of .*/two (ends at step \1|has no step), "
                               r"the run at step 30$")

    def test_another_learning_rate_shows_in_the_second_loss(self):
        told = self.tell("diff", self.record("one"), self.record("two", optimizer__lr=0.2), code=1)
        recipes, difference = told.splitlines()
        self.assertEqual(recipes, "recipes differ: optimizer.lr (0.1 against 0.2)")
        losses = [[line["loss"] for line in tutti_run.metrics(self.folder / run) if "loss" in line]
                  for run in ("one", "two")]
        self.assertEqual(losses[0][0], losses[1][0])
        self.assertNotEqual(losses[0][1], losses[1][1])
        self.assertRegex(difference, r"^first difference: step 2, rank 0, compute: loss \(.* against .*\)$")

    def test_another_seed_shows_in_the_first_weights(self):
        told = self.tell("diff", self.record("one"), self.record("two", seed=18), code=1)
        self.assertIn("recipes differ: seed (17 against 18)", told)
        self.assertRegex(told, r"first difference: before step 1, rank 0, compute: weights, in .*weight.* \(digest 0x")

    def test_an_impossible_comparison_is_one_error(self):
        one = self.record("one")
        train(self.folder / "alone", ranks=1, train__max_duration="3ba")
        for other in (self.record("control", journal__level="control"), self.record("off", journal__level="off"),
                      self.folder / "alone", self.folder / "nowhere"):
            told = self.tell("diff", one, other, code=2)
            self.assertRegex(told, r"^error: [^\n]*$")
            self.assertIn(str(other), told)


class Trace:
    """A timeline, read as the format wants it."""

    def __init__(self, path, test):
        self.test = test
        self.events = json.loads(path.read_text())["traceEvents"]
        self.threads = {e["tid"]: e["args"]["name"] for e in self.events if e.get("name") == "thread_name"}
        self.processes = {e["pid"]: e["args"]["name"] for e in self.events if e.get("name") == "process_name"}
        self.tracks = collections.defaultdict(list)  # events by thread
        for event in self.events:
            if event["ph"] in "BEisf" and event.get("s") != "p":
                self.tracks[event["pid"], event["tid"]].append(event)

    def check(self):
        self.test.assertEqual({event["ph"] for event in self.events} - set("MBEisfCX"), set())
        of_profiler = {event["tid"] for event in self.events if event["ph"] == "X"}
        self.test.assertEqual(len(self.threads), len(self.tracks) + len(of_profiler),
                              "threads have numbers and names of their own")
        for track in self.tracks.values():
            self.check_track(track)
        self.check_arrows()
        self.check_ends()

    def check_track(self, track):
        """Time does not run backwards; slices nest, and all end; nothing else lies outside of them."""
        depth = 0
        for before, event in zip([track[0], *track], track):
            self.test.assertGreaterEqual(event["ts"], before["ts"])
            depth += {"B": 1, "E": -1}.get(event["ph"], 0)
            self.test.assertGreaterEqual(depth, 0 if event["ph"] == "E" else 1, event)
            self.test.assertLessEqual(depth, 2)
        self.test.assertEqual(depth, 0)

    def check_ends(self):
        """Marks of a whole rank lie on a track of their own, behind all that the rank did."""
        marks = [event for event in self.events if event.get("s") == "p"]
        self.test.assertEqual(sorted(event["pid"] for event in marks), sorted(self.processes))
        for mark in marks:
            self.test.assertNotIn(mark["tid"], self.threads)
            self.test.assertEqual([event["ph"] for event in self.events if event.get("tid") == mark["tid"]], ["i"])
            self.test.assertEqual(mark["ts"], max(event["ts"] for event in self.events
                                                  if event["pid"] == mark["pid"] and "ts" in event))

    def check_arrows(self):
        """Each has one start and one end: of a message at one time, of a packet between ranks in that order."""
        starts, ends = ({e["id"]: e for e in self.events if e["ph"] == phase} for phase in "sf")
        self.test.assertEqual(starts.keys(), ends.keys())
        self.test.assertEqual(len(starts), sum(event["ph"] == "s" for event in self.events))
        self.test.assertEqual(len(ends), sum(event["ph"] == "f" for event in self.events))
        for id, start in starts.items():
            end = ends[id]
            self.test.assertEqual((start["name"], start["cat"]), (end["name"], end["cat"]))
            self.test.assertEqual(end["bp"], "e")
            if start["pid"] == end["pid"]:
                self.test.assertEqual(start["ts"], end["ts"])
            else:
                self.test.assertLess(start["ts"], end["ts"])

    def arrows_between(self, pid, other):
        """When those from one rank to another start and end."""
        starts = {event["id"]: event for event in self.events if event["ph"] == "s" and event["pid"] == pid}
        ends = [event for event in self.events
                if event["ph"] == "f" and event["pid"] == other and event["id"] in starts]
        for event in ends:
            self.test.assertEqual([self.threads[e["tid"]] for e in (starts[event["id"]], event)], ["sync"] * 2)
        return [(starts[event["id"]]["ts"], event["ts"]) for event in ends]

    def slices(self, pid, thread, name):
        """Begin, end of each slice of that name; time in microseconds."""
        found, open_slices = [], []
        for event in next(t for (p, tid), t in self.tracks.items() if p == pid and self.threads[tid] == thread):
            if event["ph"] == "B":
                open_slices.append(event)
            elif event["ph"] == "E":
                begin = open_slices.pop()
                if begin["name"] == name:
                    found.append((begin["ts"], event["ts"]))
        return found

    def ends(self):
        return [event["name"] for event in self.events if event.get("s") == "p"]


class Timeline(Recorded):
    def trace(self, run, *arguments):
        self.tell("timeline", run, *arguments)
        trace = Trace(self.folder / arguments[1] if arguments else run / "timeline.json", self)
        trace.check()
        return trace

    def test_two_ranks_under_mpirun(self):
        run = self.folder / "run"
        train(run, ranks=2, **SHORT)
        trace = self.trace(run, "--out", self.folder / "trace.json")
        self.assertEqual([name.split(",")[0] for name in trace.processes.values()], ["rank 0", "rank 1"])
        for pid in trace.processes:
            for name in ("prepare batch", "forward", "backward", "wait for all-reduce", "update", "end of step"):
                slices = trace.slices(pid, "compute", name)
                self.assertEqual(len(slices), 30, name)
                for (begin, end), (next_begin, _) in zip(slices, slices[1:]):
                    self.assertLessEqual(begin, end)
                    self.assertLessEqual(end, next_begin)
            self.assertEqual([len(trace.slices(pid, "steps", f"step {step}")) for step in (0, 1, 30, 31)], [0, 1, 1, 0])
            self.assertEqual(len(trace.slices(pid, "steps", "evaluation after step 15")), 1)
        self.assertEqual(len(trace.ends()), 2)
        self.assert_counters_are_those_of_the_metrics(trace, run)
        self.assert_parts_of_checkpoints_are_arrows(trace)
        self.assert_no_rank_leaves_before_all_entered(trace)

    def test_the_profilers_operators_lie_within_their_steps(self):
        run = self.folder / "run"
        finished = train(run, ranks=2, profiler="{skip_first=3, active=2}", **SHORT)
        self.assertNotIn("ERROR", finished.text)  # Kineto's
        traces = run / "torch_traces"
        self.assertEqual(sorted(path.name for path in traces.iterdir()),  # of each epoch
                         [f"rank{rank}.{batch}.pt.trace.json" for rank in (0, 1) for batch in (21, 6)])
        (traces / "rank2.6.pt.trace.json").write_text('{"traceEvents": [{"ph": "X"')  # cut off
        self.tell("timeline", run)
        trace = Trace(run / "timeline.json", self)
        trace.check()
        for pid in trace.processes:
            operators = [event for event in trace.events if event["ph"] == "X" and event["pid"] == pid]
            self.assertIn("operators, thread", trace.threads[operators[0]["tid"]])
            self.assertEqual({event["name"] for event in operators} & {"aten::addmm", "aten::relu"},
                             {"aten::addmm", "aten::relu"})
            for batch in (4, 5):
                own, = [event for event in operators if event["name"] == f"ProfilerStep#{batch}"]
                (begin, end), = trace.slices(pid, "steps", f"step {batch + 1}")
                self.assertLess(begin - 1000, own["ts"])
                self.assertLess(own["ts"] + own["dur"], end + 1000)

    def assert_counters_are_those_of_the_metrics(self, trace, run):
        lines = [line for line in tutti_run.metrics(run) if "loss" in line]
        for name, column in ("samples/s", "samples_per_s"), ("memory peak of a rank (MB)", "memory_peak_mb"):
            counted = [event["args"]["value"] for event in trace.events if event.get("name") == name]
            self.assertEqual(len(counted), 30)
            for value, line in zip(counted, lines):
                self.assertAlmostEqual(value, line[column], delta=1e-6 * line[column])

    def assert_parts_of_checkpoints_are_arrows(self, trace):
        """From rank 1 to rank 0, which then publishes; once the last one is, it tells rank 1 to end."""
        published = trace.slices(1, "supervisor", "publish checkpoint")
        parts, end = trace.arrows_between(2, 1), trace.arrows_between(1, 2)
        self.assertEqual((len(published), len(parts), len(end)), (2, 2, 1))
        for (_, arrived), (_, done) in zip(parts, published):
            self.assertLess(arrived, done)
        self.assertLess(published[-1][0], end[0][0])

    def assert_no_rank_leaves_before_all_entered(self, trace):
        entered = [trace.slices(pid, "sync", "end of pass") for pid in trace.processes]
        left = [trace.slices(pid, "compute", "update") for pid in trace.processes]
        for first, second, first_left, second_left in zip(*entered, *left):
            self.assertLess(max(first[0], second[0]), min(first_left[0], second_left[0]))

    def test_a_killed_run(self):
        run = self.folder / "run"
        running = start(run, "--local-ranks", 2, ranks=1, train__max_duration="100000ep")
        self.wait_for_steps(running, run)
        running.kill()
        self.assertEqual(self.trace(run).ends(), ["end of the journal: killed, or still running"] * 2)

    def test_a_live_run(self):
        run = self.folder / "run"
        running = start(run, "--local-ranks", 2, ranks=1, train__max_duration="100000ep")
        self.wait_for_steps(running, run)
        first = self.trace(run)
        running.wait_for(lambda: len(self.trace(run).events) > len(first.events), "more to draw")
        self.assertFalse(running.is_over())
        running.kill()

    def wait_for_steps(self, running, run):
        running.wait_for(lambda: steps(run) > 20, "20 steps")

    def test_journals_of_old_attempts_make_room(self):
        run = self.record("run", journal__keep=2)
        for epochs in 3, 4, 5:
            self.record("run", "--resume", "auto", train__max_duration=f"{epochs}ep", journal__keep=2)
        kept = sorted((run / "journal").iterdir())
        self.assertEqual(len(kept), 2)
        self.assertEqual([len(list(start.iterdir())) for start in kept], [2, 2])
        replayed = tutti("replay", run).wait()
        self.assertEqual(replayed.code, 0, replayed.text)

    def test_a_run_without_journal_is_refused(self):
        told = self.tell("timeline", self.record("off", journal__level="off"), code=2)
        self.assertRegex(told, r"^error: .*/off: there is no journal in it$")


if __name__ == "__main__":
    tutti_run.main()
