#include "sim/simulate/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "algorithms/loop/sam.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tensors/memory/meter.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "tests/sim/planted_bugs/broken_group.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

FaultPlan plan_of(const std::string& toml, int ranks) {
  return make_fault_plan(parse_recipe(toml, "plan.toml"), ranks);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// So many by night, and half of them in `make test`.
uint64_t seeds(uint64_t count) { return is_nightly() ? count : count / 2; }

TEST(SimulationTest, ARunWithoutFaultsKeepsEveryInvariant) {
  const Simulation simulation(small_job(), 3, {});
  std::set<uint64_t> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
    EXPECT_EQ(result.attempts, 1);
    orders.insert(result.deliveries);
  }
  EXPECT_EQ(orders.size(), 20u);
}

// All that they do is to write the initial checkpoint, which a rank may do before rank 0 has made the folder.
TEST(SimulationTest, RunsWithoutStepsKeepEveryInvariant) {
  Setting recipe = small_job();
  recipe.find("train")->find("max_duration")->value = std::string("0ba");
  for (const int ranks : {1, 2, 5}) {
    const Simulation simulation(recipe, ranks, {});
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const SeedResult result = simulation.run(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << ranks << " ranks, seed " << seed;
      EXPECT_NE(result.weights, 0u) << "the initial checkpoint";
    }
  }
}

// Rank 1's process is there, but has no part in the groups, nor in anything else.
TEST(SimulationTest, ARankThatDoesNotMakeItsGroupsIsNamed) {
  SimSeams seams;
  seams.actors = [](TokenScheduler& scheduler, const RankActors& actors, const Job&, int rank) {
    if (rank != 1) return;
    play(scheduler, actors.sync, {.receive = [](Context& context, Envelope& envelope) {
           if (envelope.slot) context.reply(envelope, ControlSent{});
         }});
  };
  SimDisk disk;
  SimWorld world(simulated_job(small_job(), 3), disk, nullptr, seams, {});
  const SimAttempt attempt = world.run();
  EXPECT_EQ(attempt.stuck, "");
  // Rank 0 may see first that rank 2 has ended.
  EXPECT_THAT(attempt.ends[2].reason, HasSubstr("rank 1 has not been heard"));
  EXPECT_LT(attempt.took, TimePoint(std::chrono::seconds(12))) << "hang_timeout is 10 s";
}

TEST(SimulationTest, TheWatcherHearsOfEveryAction) {
  int64_t events = 0;
  SimSeams seams;
  seams.on_event = [&events] { ++events; };
  const Simulation simulation(small_job(), 2, {}, seams, seams);
  const int64_t at_first = events;
  const SeedResult result = simulation.run(1);
  EXPECT_GT(at_first, result.rank_steps);
  EXPECT_GT(events - at_first, result.rank_steps);
}

// Files, and a program that is not started.
TEST(SimulationTest, LoggersBreakNothingWhateverHappens) {
  constexpr int kRanks = 2;
  const std::string loggers =
      "[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'file'\nrank_zero_only = false\n[[loggers]]\nkind = "
      "'tensorboard'\n[[loggers]]\nkind = 'command'\ncommand = 'touch /started'\n";
  std::string faults;
  for (const char* kind : {"death", "disk_full", "write_error", "torn_write"})
    faults += "[[fault]]\nkind = '" + std::string(kind) + "'\n";
  const Simulation simulation(small_job(loggers), kRanks, plan_of(faults, kRanks));
  for (uint64_t seed = 0; seed < seeds(40); ++seed) {
    const SeedResult result = simulation.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
  }
}

// A job whose activations use the most memory: 40 samples a rank and step on three ranks, six steps.
Setting hungry_job(const std::string& grad_accum, const std::string& budget) {
  const std::string toml =
      "seed = 5\n[model]\nkind = 'mlp'\nhidden = [64]\n[data.train]\nkind = 'synthetic'\nsamples = 240\n"
      "batch_size = 120\nshuffle = true\nshape = [6]\n[optimizer]\nkind = 'sgd'\n[train]\n"
      "max_duration = '3ep'\ngrad_accum = " +
      grad_accum + "\n[checkpoint]\ninterval = '4ba'\n" +
      (budget.empty() ? "" : "[device]\nmemory_budget_mb = " + budget + "\n");
  return resolve(parse_recipe(toml, "hungry.toml"), recipe_catalogs());
}

TEST(SimulationTest, ARankWithLessMemoryThanTheOthersHalvesItsMicrobatches) {
  constexpr int kRanks = 3;
  const SeedResult whole = Simulation(hungry_job("1", ""), kRanks, {}).run(1);
  const double peak_mb = static_cast<double>(Meter::peak_bytes(2)) / kBytesPerMb;
  const SeedResult by_hand = Simulation(hungry_job("2", ""), kRanks, {}).run(1);
  ASSERT_NE(whole.weights, by_hand.weights);
  const std::string budget = "[1, 1, " + std::to_string(0.8 * peak_mb) + "]";
  const Simulation scarce(hungry_job("'auto'", budget), kRanks, {});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const SeedResult result = scarce.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
    EXPECT_EQ(result.faults.at("memory_budget"), 1) << joined(result.summary);
    EXPECT_EQ(result.weights, by_hand.weights);
  }
}

// An algorithm whose added transform must not hide the samples that the invariants look for.
class Negative final : public Algorithm, public Transform {
 public:
  std::string name() const override { return "Negative"; }
  bool match(Event event, const State&) const override { return event == Event::kFitStart; }
  void apply(Event, State& state, Logger&) override {
    state.add_transform(name(), std::make_shared<const Negative>());
  }
  SampleSpec spec(const SampleSpec& before) const override { return before; }
  void apply(Batch& batch, const RowDraws&) const override { batch.set("input", batch["input"].neg()); }
};

TEST(SimulationTest, TransformsOfRecipesAndOfAlgorithmsKeepEveryInvariant) {
  constexpr int kRanks = 3;
  Setting recipe = small_job(
      "[[data.train.transforms]]\nkind = 'flip'\n[[data.train.transforms]]\nkind = 'random_crop'\n"
      "size = 4\n",
      "");
  recipe.find("data")->find("train")->find("shape")->value =
      Setting::Array{Setting(int64_t{1}, "", {}), Setting(int64_t{5}, "", {}), Setting(int64_t{6}, "", {})};
  SimSeams adding;
  adding.job = [](Job& job, int) {
    job.listeners = [](int) { return Engine::Options{.algorithms = {std::make_shared<Negative>()}}; };
  };
  const FaultPlan deaths = plan_of("[[fault]]\nkind = 'death'\n", kRanks);
  const Simulation plain(recipe, kRanks, deaths), added(recipe, kRanks, deaths, adding, adding);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const SeedResult one = plain.run_twice(seed), other = added.run_twice(seed);
    EXPECT_THAT(one.findings, IsEmpty()) << "seed " << seed << "\n" << joined(one.summary);
    EXPECT_THAT(other.findings, IsEmpty()) << "seed " << seed << "\n" << joined(other.summary);
    EXPECT_NE(one.weights, other.weights);
  }
}

// Twenty epochs are 100 steps.
TEST(SimulationTest, AnAttemptMayTakeLongAsLongAsItCommitsSteps) {
  Setting recipe = small_job();
  recipe.find("train")->find("max_duration")->value = std::string("20ep");
  Job job = simulated_job(recipe, 2);
  job.nonce = "test";
  const SimSeams seams;
  const auto run_attempt = [&](Nanoseconds timeout) {
    SimDisk disk;
    SimWorld::Options options;
    options.timeout = timeout;
    options.on_published = [](const SimDisk&) { return KnownCheckpoint(); };
    return SimWorld(job, disk, nullptr, seams, options).run();
  };
  const SimAttempt whole = run_attempt(std::chrono::minutes(20));
  EXPECT_TRUE(whole.well()) << whole.end_text();
  const SimAttempt impatient = run_attempt(whole.took.time_since_epoch() / 2);
  EXPECT_TRUE(impatient.well()) << impatient.end_text();
  EXPECT_THAT(run_attempt(std::chrono::milliseconds(5)).stuck, HasSubstr("time limit"));
}

// A step of more than twenty minutes, in ranks with a long timeout.
TEST(SimulationTest, AnAttemptMayTakeAsLongAsThePlanSays) {
  Setting recipe = small_job();
  recipe.find("train")->find("hang_timeout")->value = std::string("2000sec");
  const FaultPlan plan =
      plan_of("starts = 1\n[[fault]]\nkind = 'slow'\nseconds = 1900\nstep = 2\nphase = 'load'\n", 2);
  const SeedResult result = Simulation(recipe, 2, plan).run(1);
  EXPECT_THAT(result.findings, IsEmpty()) << joined(result.summary);
  EXPECT_EQ(result.faults.at("slow"), 1);
}

// The remains of the previous run decide which heartbeat is lost: harmless, but not decided by the seed.
TEST(SimulationTest, ASecondRunThatGoesOtherwiseIsFound) {
  struct LosesOneNowAndThen final : Transport {
    std::unique_ptr<Transport> below;
    std::shared_ptr<int> sent;
    int rank() const override { return below->rank(); }
    int size() const override { return below->size(); }
    std::optional<Packet> poll() override { return below->poll(); }
    void send(int to, std::string bytes) override {
      if (!parse_heartbeat(bytes) || ++*sent % 11 != 0) below->send(to, std::move(bytes));
    }
  };
  SimSeams seams;
  seams.transport = [sent = std::make_shared<int>(0)](std::unique_ptr<Transport> below, int) {
    auto loses = std::make_unique<LosesOneNowAndThen>();
    loses->below = std::move(below);
    loses->sent = sent;
    return loses;
  };
  const Simulation simulation(small_job(), 3, {}, seams, seams);
  EXPECT_THAT(simulation.run(1).findings, IsEmpty());
  EXPECT_THAT(simulation.run_twice(1).findings,
              testing::ElementsAre("a second run of the same seed differed"));
}

// It shows in the run without faults already, and so in every seed.
TEST(SimulationTest, TooLittleMemoryForOneSampleIsFound) {
  const Simulation simulation(hungry_job("'auto'", "[1, 1, 0.001]"), 3, {});
  EXPECT_THAT(simulation.run(0).findings,
              testing::Contains(testing::AllOf(HasSubstr("without faults: attempt 1 ended badly"),
                                               HasSubstr("rank 2 ran out of memory"),
                                               HasSubstr("one sample at a time"))));
}

// Nor is it a finding of every seed.
TEST(SimulationTest, AJobThatCannotStartIsRefused) {
  Setting job = small_job();
  job.find("checkpoint")->find("resume")->value = std::string("/no such folder");
  const std::string why = message_of<UserError>([&] { Simulation(job, 2, {}); });
  EXPECT_THAT(why, HasSubstr("checkpoint.resume = \"/no such folder\": "));
}

class EachFault : public testing::TestWithParam<std::string> {};

// No mistake of the user's, whose exit code it would have.
TEST(SimulationTest, AJobThatCannotStartForLackOfMemoryIsNoMistakeOfTheUsers) {
  SimSeams seams;
  seams.job = [](Job& job, int) {
    job.make_model = [](const Setting&, const SampleSpec&) -> std::shared_ptr<Model> {
      throw std::bad_alloc();
    };
  };
  try {
    Simulation(small_job(), 2, {}, seams, seams);
    ADD_FAILURE() << "it started";
  } catch (const RunError& error) {
    EXPECT_EQ(error.kind(), EndKind::kOutOfMemoryElsewhere);
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
  }
}

TEST_P(EachFault, HappensAndBreaksNothing) {
  constexpr int kRanks = 3;
  const FaultPlan plan = plan_of("[[fault]]\nkind = '" + GetParam() + "'\n", kRanks);
  const Simulation simulation(small_job(), kRanks, plan);
  int64_t fired = 0;
  for (uint64_t seed = 0; seed < seeds(40); ++seed) {
    const SeedResult result = simulation.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
    for (const auto& [name, count] : result.faults) fired += count;
  }
  EXPECT_GT(fired, 10);
}

TEST(SimulationTest, MetricsThatCannotBeWrittenEndNoTraining) {
  constexpr int kRanks = 2;
  for (const char* kind : {"disk_full", "write_error"}) {
    const std::string fault = "starts = 1\n[[fault]]\nkind = '" + std::string(kind) + "'\nrank = 0\n";
    const Simulation simulation(small_job(), kRanks, plan_of(fault + "file = 'metrics.jsonl'\n", kRanks));
    int64_t fired = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const SeedResult result = simulation.run(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << kind << " seed " << seed << "\n" << joined(result.summary);
      for (const auto& [name, count] : result.faults) fired += count;
    }
    EXPECT_GT(fired, 10) << kind;
  }
}

// Each step has a second pass, in which memory runs out as well.
TEST(SimulationTest, StepsOfTwoPassesKeepEveryInvariant) {
  constexpr int kRanks = 3;
  SimSeams seams;
  seams.job = [](Job& job, int) {
    job.listeners = [](int) {
      Engine::Options options;
      options.algorithms = {std::make_shared<SAM>(SAMOptions{.rho = 0.1})};
      return options;
    };
  };
  for (const char* kind : {"out_of_memory", "death", "sigterm"}) {
    int64_t fired = 0;
    const Simulation simulation(small_job(), kRanks,
                                plan_of("[[fault]]\nkind = '" + std::string(kind) + "'\n", kRanks), seams,
                                seams);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const SeedResult result = simulation.run_twice(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << kind << " seed " << seed << "\n" << joined(result.summary);
      fired += result.faults.contains(kind) ? result.faults.at(kind) : 0;
    }
    EXPECT_GT(fired, 10) << kind;
  }
}

// Seen by the events around backward: one that begins and does not end.
TEST(SimulationTest, MemoryRunsOutInThePhaseThatIsNamed) {
  struct Counts final : Algorithm {
    std::shared_ptr<int> thrown;
    explicit Counts(std::shared_ptr<int> thrown) : thrown(std::move(thrown)) {}
    std::string name() const override { return "Counts"; }
    bool match(Event event, const State& state) const override {
      return state.topology.rank == 1 && (event == Event::kBeforeBackward || event == Event::kAfterBackward);
    }
    void apply(Event event, State&, Logger&) override { *thrown += event == Event::kBeforeBackward ? 1 : -1; }
  };
  for (const char* phase : {"microbatch", "backward"}) {
    const auto thrown = std::make_shared<int>(0);
    SimSeams seams;
    seams.job = [thrown](Job& job, int) {
      job.listeners = [thrown](int) {
        Engine::Options options;
        options.algorithms = {std::make_shared<Counts>(thrown)};
        return options;
      };
    };
    const std::string rule = "[[fault]]\nkind = 'out_of_memory'\nrank = 1\nstep = 3\ncount = 1\nphase = '" +
                             std::string(phase) + "'\n";
    const SeedResult result = Simulation(small_job(), 2, plan_of(rule, 2), seams).run(1);
    EXPECT_THAT(result.findings, IsEmpty()) << joined(result.summary);
    EXPECT_EQ(result.faults.at("out_of_memory"), 1) << phase;
    EXPECT_EQ(*thrown, std::string(phase) == "backward" ? 1 : 0) << phase;
  }
}

// Finds a reduction that writes the memory of another one under way.
class WatchesWhatIsWritten final : public GroupBelow {
 public:
  WatchesWhatIsWritten(std::shared_ptr<Group> below, std::set<std::string>& found)
      : GroupBelow(std::move(below)), found_(found) {}

  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    const void* memory = out.const_data_ptr();
    if (!written_.insert(memory).second) found_.insert(label);
    return std::make_unique<Watched>(
        below_->reduce_scatter(std::move(input), std::move(out), std::move(cut), label), written_, memory);
  }

 private:
  struct Watched final : Work {
    Watched(WorkPtr below, std::set<const void*>& written, const void* memory)
        : below(std::move(below)), written(written), memory(memory) {}
    bool done() override {
      if (!over && (over = below->done())) written.erase(memory);
      return over;
    }
    bool finite() const override { return below->finite(); }
    const CollectiveHeader& header() const override { return below->header(); }
    WorkPtr below;
    std::set<const void*>& written;
    const void* memory;
    bool over = false;
  };

  std::set<const void*> written_;
  std::set<std::string>& found_;
};

// A rank out of memory serves all reductions that are left at once; the first and third unit share memory.
TEST(SimulationTest, ReductionsOfAnAbortedAttemptDoNotWriteEachOthersMemory) {
  std::set<std::string> found;
  SimSeams seams;
  seams.group = [&found](std::unique_ptr<Group> group, int) -> std::unique_ptr<Group> {
    return std::make_unique<WatchesWhatIsWritten>(std::move(group), found);
  };
  for (const auto& [strategy, ranks] :
       {std::pair{"strategy = 'full'\n", 2}, {"strategy = 'hybrid'\nshard_size = 2\n", 4}}) {
    Setting job = small_job(std::string("[sharding]\n") + strategy);
    auto& hidden = std::get<Setting::Array>(job.find("model")->find("hidden")->value);
    hidden.resize(4, hidden.front());
    std::string plan = "starts = 1\n";
    for (const char* phase : {"microbatch", "backward"})
      plan += "[[fault]]\nkind = 'out_of_memory'\nrank = 1\nstep = 3\ncount = 1\nphase = '" +
              std::string(phase) + "'\n";
    for (uint64_t seed = 0; seed < 2; ++seed) {
      const SeedResult result = Simulation(job, ranks, plan_of(plan, ranks), seams).run(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << strategy << " seed " << seed << joined(result.summary);
      EXPECT_EQ(result.faults.size(), 2u) << "not both faults came to be";
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

// The attempts of a run that runs out of memory three times in one step of rank 0, without findings.
int starts_of_a_run_short_of_memory(const Setting& job, int64_t step) {
  const std::string rule =
      "[[fault]]\nkind = 'out_of_memory'\nrank = 0\nphase = 'microbatch'\ncount = 1\nstep = ";
  std::string plan = "starts = 1\n";
  for (int i = 0; i < 3; ++i) plan += rule + std::to_string(step) + "\n";
  const SeedResult result = Simulation(job, 3, plan_of(plan, 3)).run(1);
  EXPECT_THAT(result.findings, IsEmpty()) << joined(result.summary);
  EXPECT_THAT(result.summary.front(), HasSubstr("ran out of memory")) << joined(result.summary);
  return result.attempts;
}

// Four samples a rank: 1, 2, 4 microbatches, and nothing smaller. Nothing was committed before.
TEST(SimulationTest, AnAttemptMayEndForWantOfMemoryInItsFirstStep) {
  EXPECT_EQ(starts_of_a_run_short_of_memory(small_job(), 1), 2);
}

// Sixty-one samples: the last batch of an epoch is one.
TEST(SimulationTest, AnAttemptMayEndForWantOfMemoryInAShortLastBatch) {
  Setting job = small_job();
  job.find("data")->find("train")->find("samples")->value = int64_t{61};
  job.find("data")->find("train")->find("drop_last")->value = false;
  EXPECT_EQ(starts_of_a_run_short_of_memory(job, 6), 2);
}

// Losses that are scaled too much: steps are skipped until they are not. A skipped step has seen its samples.
TEST(SimulationTest, SkippedStepsKeepEveryInvariant) {
  constexpr int kRanks = 3;
  const Setting job = small_job("[precision]\ninit_scale = 1e12\n", "precision = 'amp_fp16'\n");
  for (const char* kind : {"out_of_memory", "death", "sigterm"}) {
    const Simulation simulation(job, kRanks,
                                plan_of("[[fault]]\nkind = '" + std::string(kind) + "'\n", kRanks));
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const SeedResult result = simulation.run_twice(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << kind << " seed " << seed << "\n" << joined(result.summary);
    }
  }
}

// The learning rate hangs on what they find: one that is lost or done twice shows in the weights.
TEST(SimulationTest, EvaluationsThatAreCutAreMadeUpFor) {
  constexpr int kRanks = 3;
  const std::string data = "kind = 'synthetic'\nsamples = 40\nshape = [6]\n";
  const Setting job = small_job("[data.eval]\n" + data + "[[evaluators]]\nlabel = 'often'\n" + data +
                                    "[scheduler]\nkind = 'reduce_lr_on_plateau'\npatience = 0\n"
                                    "monitor = 'metrics/often/CrossEntropy'\nthreshold = 0.5\nfactor = 0.7\n",
                                "eval_interval = '2ba'\n");
  for (const char* kind : {"sigterm", "death", "reorder"}) {
    const Simulation simulation(job, kRanks,
                                plan_of("[[fault]]\nkind = '" + std::string(kind) + "'\n", kRanks));
    for (uint64_t seed = 0; seed < (is_nightly() ? 30U : 8U); ++seed) {
      const SeedResult result = simulation.run_twice(seed);
      EXPECT_THAT(result.findings, IsEmpty()) << kind << " seed " << seed << "\n" << joined(result.summary);
    }
  }
}

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& entry : fault_catalogs()[1].entries) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Simulation, EachFault, testing::ValuesIn(fault_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
