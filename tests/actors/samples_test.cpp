#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "actors/messages/heartbeat.h"
#include "commands/check.h"
#include "commands/local_train.h"
#include "runtime/error.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "training/loggers/in_memory.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// 3 batches an epoch, 12 in all, evaluated at each epoch's end.
std::string recipe_of_samples(const std::string& model, const std::string& shape, const std::string& more) {
  const std::string data = "kind = 'synthetic'\nsamples = 24\nbatch_size = 8\n" + shape;
  return "seed = 1\n[model]\n" + model + "[data.train]\n" + data + "[data.eval]\n" + data +
         "[optimizer]\nkind = 'sgd'\nlr = 0.25\n[checkpoint]\ninterval = '4ba'\n[train]\n"
         "max_duration = '4ep'\n" +
         more;
}

std::string writing(const std::string& more) {
  return recipe_of_samples(
      "kind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 8\nn_positions = 8\ndropout = 0.2\n",
      "shape = [8]\ntargets = 'sequence'\n", more);
}

std::string showing(const std::string& more) {
  return recipe_of_samples("kind = 'mlp'\nhidden = [4]\n", "shape = [3, 4, 4]\n", more);
}

constexpr const char* kGenerate =
    "[[callbacks]]\nkind = 'generate'\nprompts = ['ab', [1, 2]]\ninterval = '5ba'\nmax_new_tokens = 4\n"
    "do_sample = true\n";
constexpr const char* kVisualizer = "[[callbacks]]\nkind = 'image_visualizer'\ninterval = '5ba'\n";

// The run's log on rank 0.
std::shared_ptr<InMemoryLogger> remembered(MemoryWorld& world) {
  const auto memory = std::make_shared<InMemoryLogger>();
  world.listeners = [memory](int rank) {
    Engine::Options options;
    if (rank == 0) options.destinations = {memory};
    return options;
  };
  return memory;
}

// The batches after which records of that kind were logged.
template <class Kind>
std::vector<int64_t> logged_at(const InMemoryLogger& memory, const std::string& name) {
  std::vector<int64_t> found;
  for (const auto& entry : memory.entries())
    if (const auto* one = std::get_if<Kind>(&entry.what); one && one->name == name)
      found.push_back(entry.time.at.batch);
  return found;
}

TEST(SamplesTest, GenerateLogsATableOfWhatTheModelWrites) {
  MemoryWorld world{.recipe = writing(kGenerate)};
  const auto memory = remembered(world);
  EXPECT_EQ(world.run("1").error, "");
  EXPECT_THAT(logged_at<LoggedTable>(*memory, "generations"), ElementsAre(5, 10, 12));
  for (const auto& table : memory->tables()) {
    EXPECT_THAT(table.columns, ElementsAre("prompt", "generation"));
    ASSERT_THAT(table.rows, SizeIs(2));
    EXPECT_EQ(table.rows[0][0], "ab");
    EXPECT_EQ(table.rows[1][0], "1 2");
    std::istringstream tokens(table.rows[1][1]);
    const std::vector<int> added{std::istream_iterator<int>(tokens), {}};
    EXPECT_THAT(added, AllOf(SizeIs(4), Each(testing::Lt(256))));
  }
}

TEST(SamplesTest, ImagesOfTrainingAndOfEvaluationsAreLogged) {
  MemoryWorld world{.recipe = showing(kVisualizer)};
  const auto memory = remembered(world);
  EXPECT_EQ(world.run("1").error, "");
  EXPECT_THAT(logged_at<LoggedImages>(*memory, "Images/Train"), ElementsAre(0, 5, 10));
  EXPECT_THAT(logged_at<LoggedImages>(*memory, "Images/Eval"), ElementsAre(3, 6, 9, 12));
  for (const auto& images : memory->images()) {
    EXPECT_EQ(images.count, 4) << "rank 0's half of the batch";
    EXPECT_THAT(images.pixels, SizeIs(4 * 4 * 4 * 3));
  }
}

TEST(SamplesTest, SamplesLeaveTheTrainingUnchanged) {
  const auto compare = [](const std::string& without, const std::string& with) {
    MemoryWorld plain{.recipe = without}, watched{.recipe = with};
    const auto unused = remembered(plain), memory = remembered(watched);
    for (const char* grad_accum : {"1", "2"}) {
      const auto expected = plain.run(grad_accum), found = watched.run(grad_accum);
      EXPECT_EQ(found.error, "");
      EXPECT_EQ(found.losses, expected.losses);
      EXPECT_EQ(found.evaluations, expected.evaluations);
      EXPECT_EQ(found.weights, expected.weights);
      EXPECT_EQ(found.left_in_scopes, expected.left_in_scopes) << "memory of the steps";
    }
    EXPECT_GT(memory->tables().size() + memory->images().size(), 0u);
  };
  compare(writing(""), writing(kGenerate));
  compare(showing(""), showing(kVisualizer));
}

TEST(SamplesTest, AnAttemptThatIsAbortedShowsItsImagesOnce) {
  MemoryWorld world{.recipe = showing("[[callbacks]]\nkind = 'image_visualizer'\ninterval = '1ba'\n")};
  world.failures[1] = {40};
  const auto memory = remembered(world);
  const auto outcome = world.run("\"auto\"");
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.has_warning("ran out of memory"));
  EXPECT_FALSE(outcome.has_warning("still held"));
  EXPECT_THAT(logged_at<LoggedImages>(*memory, "Images/Train"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

// Ends a run badly within a batch.
class EndsIn final : public Callback {
 public:
  explicit EndsIn(int64_t batch) : batch_(batch) {}
  std::string name() const override { return "EndsIn"; }
  void after_train_batch(State& state, Logger&) override {
    if (state.timestamp.batch == batch_) throw OperatingError("as the test wants it");
  }

 private:
  int64_t batch_;
};

// Trains on one rank, resuming what there is; gives what this attempt logged.
std::shared_ptr<InMemoryLogger> train_until(const std::string& recipe, const std::string& run_dir,
                                            int64_t ends_in = -1) {
  const auto memory = std::make_shared<InMemoryLogger>();
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = run_dir;
  options.resume = "auto";
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.listeners = [&](int) {
      return Engine::Options{.callbacks = {std::make_shared<EndsIn>(ends_in)}, .destinations = {memory}};
    };
  };
  try {
    train_in_one_process(recipe_of(recipe), options);
  } catch (const OperatingError&) {
    EXPECT_GE(ends_in, 0);
  }
  return memory;
}

// The lines about tables.
std::vector<std::string> tables_in(const std::string& path) {
  std::vector<std::string> found;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("[table]")) found.push_back(line);
  return found;
}

TEST(SamplesTest, ARunThatResumesHasTheSameTablesOnce) {
  const Scratch folder;
  const std::string recipe = writing(std::string(kGenerate) + "[[loggers]]\nkind = 'file'\n");
  train_until(recipe, folder.path("whole"));
  const auto whole = tables_in(folder.path("whole/logs-rank0.txt"));
  EXPECT_THAT(whole, SizeIs(3));
  train_until(recipe, folder.path("parts"), 10);  // after the table of batch 10, and the checkpoint of 8
  train_until(recipe, folder.path("parts"));
  EXPECT_EQ(tables_in(folder.path("parts/logs-rank0.txt")), whole);
  EXPECT_THAT(train_until(recipe, folder.path("parts"))->tables(), IsEmpty()) << "it was over";
}

TEST(SamplesTest, ARunThatResumesHasTheSameImages) {
  const Scratch folder;
  const std::string recipe = showing(kVisualizer);
  const auto whole = train_until(recipe, folder.path("whole"))->images();
  train_until(recipe, folder.path("parts"), 10);
  const auto rest = train_until(recipe, folder.path("parts"));
  EXPECT_THAT(logged_at<LoggedImages>(*rest, "Images/Train"), ElementsAre(10)) << "on from batch 8";
  ASSERT_FALSE(rest->images().empty());
  EXPECT_EQ(rest->images().back().pixels, whole.back().pixels);
}

TEST(SamplesTest, ImpossibleSamplesAreRefusedBeforeTraining) {
  const std::string mlp = showing(kGenerate);
  const auto named = AllOf(HasSubstr("callbacks.0.prompts"), HasSubstr("cannot generate text"));
  EXPECT_THAT(MemoryWorld{.recipe = mlp}.run("1").error, named);
  EXPECT_THAT(message_of<UserError>([&] { check_text(recipe_of(mlp)); }), named);
  const std::string flat = recipe_of_samples("kind = 'mlp'\nhidden = [4]\n", "shape = [48]\n", kVisualizer);
  EXPECT_THAT(MemoryWorld{.recipe = flat}.run("1").error,
              AllOf(HasSubstr("callbacks.0.input_key"), HasSubstr("expected images")));
}

// Counts listeners' reports of being at work.
class Listening final : public Recorder {
 public:
  explicit Listening(int& told) : told_(told) {}
  void record(const TraceEvent& event) override { told_ += event.kind == TraceKind::kListenerAtWork; }
  std::vector<TraceEvent> last(int) const override { return {}; }

 private:
  int& told_;
};

TEST(SamplesTest, ARankThatWritesIsNotTakenForOneThatHangs) {
  int told[2] = {};
  MemoryWorld world{.recipe = writing(kGenerate)};
  world.recorder = [&](int rank) { return std::make_unique<Listening>(told[rank]); };
  const auto memory = remembered(world);
  EXPECT_EQ(world.run("1").error, "");
  EXPECT_EQ(told[0], 4 * 3) << "each token of each table";
  EXPECT_EQ(told[1], 0);
}

}  // namespace
}  // namespace tutti
