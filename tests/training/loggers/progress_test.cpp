#include "training/loggers/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "tests/runtime/scratch.h"
#include "tests/runtime/stalled_pipe.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct MadeUpClock final : Clock {
  TimePoint now() const override { return time; }
  int64_t unix_ms() const override { return 0; }
  TimePoint time{};
};

const Time kTwoEpochs(20, TimeUnit::kBatch);

class ProgressTest : public testing::Test {
 protected:
  // The output for the calls of `log`, until the end.
  std::string shown(const std::function<void(Progress&)>& log) {
    std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
    show(log, out);
    std::fclose(out);
    return read_text(scratch_.path("out"));
  }

  void show(const std::function<void(Progress&)>& log, std::FILE* out) {
    Progress progress({.out = out, .warn = [this](const std::string& what) { warnings_.push_back(what); }},
                      clock_);
    progress.open({.run_dir = "runs/trial", .max_duration = kTwoEpochs, .dataloader_len = 10});
    log(progress);
    if (!progress.finish(/*late=*/false)) progress.finish(/*late=*/true);
  }

  // The output after `open`, for the calls of `log`, until the end.
  std::string opened(
      Progress::Options options, const LogStart& start,
      const std::function<void(Progress&)>& log = [](Progress&) {}) {
    options.out = std::fopen(scratch_.path("out").c_str(), "w");
    Progress progress(options, clock_);
    progress.open(start);
    log(progress);
    progress.finish(/*late=*/true);
    std::fclose(options.out);
    return read_text(scratch_.path("out"));
  }

  static void steps(Progress& progress, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step)
      progress.log_step({.samples = 8, .max_duration = kTwoEpochs}, during(step));
  }

  static LogTime during(int64_t step) {
    LogTime time{.step = step};
    time.at.batch = time.at.batch_in_epoch = step - 1;
    time.at.sample = 8 * (step - 1);
    return time;
  }

  static LogTime after(int64_t step) {
    LogTime time{.step = step};
    time.at.batch = time.at.batch_in_epoch = step;
    return time;
  }

  Scratch scratch_;
  MadeUpClock clock_;
  std::vector<std::string> warnings_;
};

TEST_F(ProgressTest, MetricsAreShownWithTheirLabelsWhereThereAreSeveral) {
  const auto table_of = [&](const LoggedMetrics& metrics) {
    return shown([&](Progress& progress) { progress.log_evaluation(metrics, during(3)); });
  };
  EXPECT_THAT(table_of({{"metrics/eval/a", 0.5}, {"metrics/eval/b", 1}}), HasSubstr("  a   "));
  const std::string both = table_of({{"metrics/eval/a", 0.5}, {"metrics/far/a", 0.25}});
  EXPECT_THAT(both, HasSubstr("  eval/a   "));
  EXPECT_THAT(both, HasSubstr("  far/a    "));
}

TEST_F(ProgressTest, AReaderThatStallsHoldsNobodyUp) {
  StalledPipe pipe;
  show(
      [](Progress& progress) {
        for (int64_t step = 1; step <= 1000; ++step) {
          steps(progress, step, step);
          progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(step));  // shown each time
          progress.flush(/*sync=*/false);
        }
      },
      pipe.out);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_, ElementsAre(StartsWith("progress: ")));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(" lines were not shown")));
}

TEST_F(ProgressTest, LastStepIsShownOnce) {
  const std::string text = shown([](Progress& progress) {
    steps(progress, 1, 3);
    progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(3));
  });
  const std::string last = "epoch 1/2  step 3/10  0%  loss 0";
  EXPECT_NE(text.find(last), std::string::npos) << text;
  EXPECT_EQ(text.find(last), text.rfind(last)) << text;
}

TEST_F(ProgressTest, LastStepIsShownBelowItsEvaluationHoweverSlow) {
  const std::string text = shown([&](Progress& progress) {
    progress.log_step({.samples = 8, .max_duration = kTwoEpochs}, during(19));
    clock_.time += std::chrono::minutes(1);
    progress.log_step({.samples = 8, .max_duration = kTwoEpochs, .progress = 1}, during(20));
    progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(20));
  });
  EXPECT_LT(text.find("step 20/10  a 0.5"), text.find("step 20/10  100%")) << text;
}

TEST_F(ProgressTest, AnEvaluationIsALineOfItsOwn) {
  const std::string text = shown([](Progress& progress) {
    steps(progress, 1, 3);
    progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(3));
  });
  EXPECT_THAT(text, HasSubstr("\nepoch 1/2  step 3/10  a 0.5\n"));
}

TEST_F(ProgressTest, ATableIsShownUnlessALoggerPrintsIt) {
  const LoggedTable table{
      "generations\x1b[2J", {"pro\nmpt", "\xc2\x9bgeneration"}, {{"ab", "c\nd\x1b"}, {"1 2", "3"}}};
  const auto log = [&](Progress& progress) {
    steps(progress, 1, 3);
    progress.log_table(table, during(3));
  };
  EXPECT_THAT(shown(log),
              HasSubstr("\nepoch 1/2  step 3/10  generations\\x1b[2J\n  pro\\nmpt: ab\n"
                        "  \\x9bgeneration: c\n    d\\x1b\n  pro\\nmpt: 1 2\n  \\x9bgeneration: 3\n"));
  EXPECT_THAT(opened({.tables = false}, {.run_dir = "r"}, log), Not(HasSubstr("generations")));
  EXPECT_THAT(opened({.json = true}, {.run_dir = "r"}, log), Not(HasSubstr("generations")));
}

TEST_F(ProgressTest, TheLossOfAnEvaluationHasItsLabelBesideThatOfTheTraining) {
  const std::string text = shown([](Progress& progress) {
    steps(progress, 1, 3);
    progress.log_evaluation({{"metrics/eval/a", 0.5}, {"metrics/eval/loss", 0.25}}, during(3));
  });
  EXPECT_THAT(text, HasSubstr("\nepoch 1/2  step 3/10  a 0.5  eval/loss 0.25\n"));
  EXPECT_THAT(text, HasSubstr("\n  eval/loss              0.2500"));
}

// A terminal with a number of columns, and its output.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{.ws_row = 24, .ws_col = columns};
    int program = -1;
    EXPECT_EQ(::openpty(&reader_, &program, nullptr, nullptr, &size), 0);
    out = ::fdopen(program, "w");
  }
  ~Terminal() {
    std::fclose(out);
    ::close(reader_);
  }
  Terminal(const Terminal&) = delete;

  std::string read() const {
    std::string text;
    char some[4096];
    for (pollfd one{reader_, POLLIN, 0}; ::poll(&one, 1, /*ms=*/200) > 0;) {
      const ssize_t count = ::read(reader_, some, sizeof some);
      if (count <= 0) break;
      text.append(some, static_cast<std::size_t>(count));
    }
    return text;
  }
  std::FILE* out = nullptr;

 private:
  int reader_ = -1;
};

TEST_F(ProgressTest, ATerminalHasOneLineThatFitsAndEvaluationsThatStay) {
  const Terminal terminal(40);
  std::string text;
  show(
      [&](Progress& progress) {
        for (int64_t step = 1; step <= 5; ++step) {
          clock_.time += std::chrono::seconds(1);
          steps(progress, step, step);
        }
        progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(5));
        text = terminal.read();
      },
      terminal.out);
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    ASSERT_EQ(text.substr(from, 4), "\r\033[K") << text;
    const std::size_t end = std::min(text.find("\r\033", from + 1), text.size());
    lines.push_back(text.substr(from + 4, end - from - 4));
    from = end;
  }
  ASSERT_EQ(lines.size(), 7U) << text;
  EXPECT_THAT(lines[0], HasSubstr("starts afresh"));
  EXPECT_EQ(lines[5], "epoch 1/2  step 5/10  0%  loss 0  lr 0") << "without the fields that do not fit";
  EXPECT_THAT(lines[6], HasSubstr("epoch 1/2  step 5/10  a 0.5"));
  EXPECT_TRUE(lines[6].ends_with("\r\n"));
  EXPECT_THAT(terminal.read(), HasSubstr("lr 0\r\n")) << "the last line stays, and is whole";
}

TEST_F(ProgressTest, EvaluationsAreBrokenBetweenFields) {
  const Terminal terminal(40);
  std::string text;
  show(
      [&](Progress& progress) {
        steps(progress, 5, 5);
        terminal.read();
        progress.log_evaluation({{"metrics/eval/first", 0.5}, {"metrics/eval/second", 0.25}}, during(5));
        text = terminal.read();
      },
      terminal.out);
  EXPECT_THAT(text, HasSubstr("epoch 1/2  step 5/10  first 0.5\r\n    second 0.25"));
}

// Half of the run is done, and one of its twenty steps took this process a second.
TEST_F(ProgressTest, TheTimeLeftOfAResumedRunIsByTheSpeedOfThisProcess) {
  const Terminal terminal(80);
  std::string text;
  show(
      [&](Progress& progress) {
        for (int64_t step = 10; step <= 11; ++step) {
          progress.log_step(
              {.samples = 8, .max_duration = kTwoEpochs, .progress = 0.05 * static_cast<double>(step)},
              during(step));
          clock_.time += std::chrono::seconds(1);
        }
        progress.log_step({.samples = 8, .max_duration = kTwoEpochs, .progress = 0.6}, during(12));
        text = terminal.read();
      },
      terminal.out);
  EXPECT_THAT(text, HasSubstr("  0:08 left"));
}

TEST_F(ProgressTest, ATerminalShowsNoPartOfANumber) {
  const std::string most = "epoch 1/2  step 5/10  50%  loss 2.30564  0:05 left  8 samples/s";
  const std::string whole = most + "  lr 7.70667e-05";
  ASSERT_EQ(whole.size(), 79u);
  for (const auto& [columns, line] : {std::pair<unsigned short, std::string>{80, whole}, {79, most}}) {
    const Terminal terminal(columns);
    std::string text;
    show(
        [&](Progress& progress) {
          for (int64_t step = 1; step <= 5; ++step) {
            clock_.time += std::chrono::seconds(1);
            progress.log_step({.loss = 2.30564,
                               .lr = 7.70667e-05,
                               .samples = 8,
                               .max_duration = kTwoEpochs,
                               .progress = 0.1 * static_cast<double>(step)},
                              during(step));
          }
          text = terminal.read();
        },
        terminal.out);
    EXPECT_EQ(text.substr(text.rfind('\r')), "\r\033[K" + line);
  }
}

TEST_F(ProgressTest, ASlowRunHasARate) {
  const std::string text = shown([this](Progress& progress) {
    steps(progress, 1, 1);
    clock_.time += std::chrono::seconds(64);
    steps(progress, 2, 2);
  });
  EXPECT_THAT(text, HasSubstr("  0.125 samples/s  ")) << "8 of them in 64 s";
  EXPECT_THAT(text, HasSubstr("  samples/s              0.125\n"));
}

TEST_F(ProgressTest, UnreportedStepsCountInTheRate) {
  const std::string text = shown([this](Progress& progress) {
    steps(progress, 1, 1);
    clock_.time += std::chrono::seconds(4);
    steps(progress, 101, 101);
  });
  EXPECT_THAT(text, HasSubstr("  samples/s              200\n")) << "800 of them in 4 s";
}

TEST_F(ProgressTest, TheOpeningSaysWhatRunsWhereAndFromWhere) {
  const auto opening = [&](const LogStart& start) {
    return opened({.facts = {.model = "mlp", .device = "cpu", .threads = 2, .seed = 17}}, start);
  };
  EXPECT_THAT(opening({.run_dir = "runs/trial", .world = 4, .parameters = 1234567}),
              StartsWith("mlp: 1,234,567 parameters, 4 ranks x 2 threads on 1 host, cpu, seed 17\n"
                         "starts afresh, in runs/trial\n"));
  EXPECT_THAT(
      opening({.run_dir = "r", .step = 30, .checkpoint = "c/ep2", .recipe_changes = {"a = 1 (was 2)"}}),
      HasSubstr("\nresumes after step 30, from c/ep2, in r\n"
                "note: the recipe has changed since:\n  a = 1 (was 2)\n"));
  EXPECT_THAT(opening({.run_dir = "r", .checkpoint = "other/ep2"}),
              HasSubstr("\nstarts with the weights of other/ep2, in r\n"));
}

TEST_F(ProgressTest, AWaitForDataIsShownIfItIsFelt) {
  const auto lines = [&](double wait_ms) {
    return shown([&](Progress& progress) {
      progress.log_step({.step_ms = 100, .data_wait_ms = wait_ms, .samples = 8}, during(1));
    });
  };
  EXPECT_THAT(lines(25), HasSubstr("  lr 0  25% waiting for data\n"));
  EXPECT_THAT(lines(5), testing::Not(HasSubstr("waiting")));
}

TEST_F(ProgressTest, TheEndSaysWhyAndTheBestOfEachMetric) {
  const std::string text = shown([&](Progress& progress) {
    steps(progress, 1, 2);
    progress.log_evaluation({{"metrics/eval/Accuracy", 0.75}, {"metrics/eval/CrossEntropy", 0.5}}, after(2));
    steps(progress, 3, 4);
    progress.log_evaluation({{"metrics/eval/Accuracy", 0.5}, {"metrics/eval/CrossEntropy", 0.25}}, after(4));
    clock_.time += std::chrono::minutes(2);
    progress.log_training_end(
        {.why = TrainingEnd::kStopTraining, .stop_reason = "enough", .skipped_steps = 1}, after(4));
  });
  EXPECT_THAT(text, HasSubstr("\n  ended                  enough\n"
                              "  steps                  4 (0.4 epochs), 1 of them skipped\n"
                              "  time                   2:00\n"));
  EXPECT_THAT(text, HasSubstr("  Accuracy               0.5000  (best 0.7500, step 2)\n"
                              "  CrossEntropy           0.2500  (the best)\n"));
  EXPECT_THAT(text, HasSubstr("\n  checkpoint             none\n"));
}

TEST_F(ProgressTest, AMaxDurationThatChangesIsFollowed) {
  const std::string text = shown([](Progress& progress) {
    const Time shorter(1, TimeUnit::kEpoch);
    progress.log_step({.max_duration = shorter}, during(10));
    progress.log_evaluation({{"metrics/eval/a", 0.5}}, during(10));
    progress.log_training_end({.max_duration = shorter}, after(10));
  });
  EXPECT_THAT(text, HasSubstr("\nepoch 1/1  step 10/10  a 0.5\n"));
  EXPECT_THAT(text,
              HasSubstr("  ended                  max_duration of 1ep is reached (20ba at the start)\n"));
}

TEST_F(ProgressTest, TheEndSaysThatMostStepsWereSkipped) {
  const auto ending = [&](int64_t skipped, int64_t first, int64_t last) {
    const TrainingEnded ended{.skipped_steps = skipped, .max_duration = kTwoEpochs};
    return opened({}, {.run_dir = "r", .max_duration = kTwoEpochs, .step = first - 1},
                  [&](Progress& progress) { progress.log_training_end(ended, after(last)); });
  };
  const std::string reached = "  ended                  max_duration of 20ba is reached";
  EXPECT_THAT(ending(11, 1, 20),
              HasSubstr(reached + "; 11 of 20 steps were skipped: nothing finite to train on\n"));
  EXPECT_THAT(ending(10, 1, 20), HasSubstr(reached + "\n"));
  EXPECT_THAT(ending(4, 14, 20), HasSubstr(reached + "; 4 of 7 steps were skipped")) << "of this attempt";
}

TEST_F(ProgressTest, TheBestOfEarlierAttemptsCounts) {
  write_text(scratch_.path("metrics.jsonl"),
             R"({"step": 2, "epoch": 1, "metrics/eval/a": 0.9})"
             "\n"
             R"({"step": 3, "epoch": 1, "loss": 1.0, "lr": 0.1, "metrics/train/a": 1.0})"
             "\n"
             R"({"step": 9, "epoch": 1, "metrics/eval/a": 1.0})"
             "\n");
  LogStart start{.run_dir = scratch_.path(""), .step = 4, .resumes = true};
  const std::string text = opened({}, start, [&](Progress& progress) {
    progress.log_evaluation({{"metrics/eval/a", 0.25}}, after(6));
  });
  EXPECT_THAT(text, HasSubstr("0.2500  (best 0.9000, step 2)")) << "that of step 9 will come again";
}

TEST_F(ProgressTest, JsonIsOneObjectAndNothingElse) {
  PosixDisk disk;
  Progress::Options options{.json = true, .disk = &disk, .warn = {}};
  const std::string result = scratch_.path("result.json");
  write_text(result, "of an earlier attempt");
  options.newest_checkpoint = [] { return "c/ep1"; };
  const std::string text = opened(options, {.run_dir = scratch_.path()}, [&](Progress& progress) {
    EXPECT_FALSE(disk.exists(result));
    steps(progress, 1, 3);
    progress.log_evaluation({{"metrics/eval/a", 0.5}}, after(3));
    progress.log_training_end({.why = TrainingEnd::kRequest}, after(3));
  });
  EXPECT_EQ(text, read_text(result));
  EXPECT_THAT(text, StartsWith(R"({"ended": "request", "reason": ")"));
  EXPECT_THAT(text, HasSubstr(R"("steps": 3, "epochs": 0, "skipped_steps": 0)"));
  EXPECT_THAT(text, HasSubstr(R"("metrics": {"eval/a": {"last": 0.5, "best": 0.5, "best_step": 3}})"));
  EXPECT_THAT(text, HasSubstr(R"("checkpoint": "c/ep1")"));
}

// Samples of the last step may go beyond the max_duration.
TEST_F(ProgressTest, NoMoreThanAllIsDone) {
  const std::string text = shown(
      [](Progress& progress) { progress.log_step({.loss = -std::nan(""), .progress = 1.44}, during(1)); });
  EXPECT_THAT(text, HasSubstr("  100%  loss nan"));
}

TEST_F(ProgressTest, NoNumberHasNoBestAndNoSign) {
  const std::string text = shown([](Progress& progress) {
    progress.log_step({.loss = -std::nan("")}, during(1));
    progress.log_evaluation({{"metrics/eval/a", -std::nan("")}}, after(1));
  });
  EXPECT_THAT(text, HasSubstr("  a nan\n"));
  EXPECT_THAT(text, HasSubstr("  loss                   nan\n  a                      nan\n"));
}

TEST_F(ProgressTest, TheClosingTextFollowsTheTable) {
  const std::string text = shown([](Progress& progress) { progress.log_closing_text("Romeo"); });
  EXPECT_THAT(text, HasSubstr("  metrics                runs/trial/metrics.jsonl\n"));
  EXPECT_TRUE(text.ends_with("\n\nRomeo\n")) << text;
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ProgressTest, NamesAndTextsOfOthersReachNoTerminalRaw) {
  const std::string text =
      opened({.facts = {.model = "m\x1b]0;x\x07"}}, {.run_dir = "r"}, [](Progress& progress) {
        progress.log_step({}, during(1));
        progress.log_evaluation({{"metrics/eval/a\x1b[2J", 0.5}}, after(1));
        progress.log_closing_text("To be\n\tor\x1b[2J \xe2\x82 \xf0\x9f\x98");
      });
  EXPECT_THAT(text, StartsWith("m\\x1b]0;x\\x07: "));
  EXPECT_THAT(text, HasSubstr("  a\\x1b[2J 0.5\n"));
  EXPECT_THAT(text, HasSubstr("\n  a\\x1b[2J               0.5"));
  EXPECT_TRUE(text.ends_with("\n\nTo be\n\tor\\x1b[2J \xef\xbf\xbd \xef\xbf\xbd\n")) << text;
}

}  // namespace
}  // namespace tutti
