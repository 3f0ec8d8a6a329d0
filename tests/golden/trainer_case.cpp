#include "tests/golden/trainer_case.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/formats/safetensors.h"
#include "io/hdf5/hdf5_writer.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/not_built.h"
#include "tests/golden/trainer_draws.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

// Series of expected values, by what metrics.jsonl calls them.
const std::map<std::string, std::string> kTrainSeries = {
    {"loss", "loss"}, {"lr", "lr"}, {"metrics/train/MulticlassAccuracy", "train_accuracy"}};
const std::map<std::string, std::string> kEvalSeries = {{"metrics/eval/MulticlassAccuracy", "eval_accuracy"},
                                                        {"metrics/eval/CrossEntropy", "eval_cross_entropy"}};

// Exactly the weights that the case has.
void expect_weights(const GoldenCase& c, const std::string& checkpoint, const std::string& golden) {
  std::set<std::string> unseen;
  const auto tensors = read_checkpoint(PosixDisk(), checkpoint).tensors;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(kModelPrefix)) unseen.insert(name.substr(kModelPrefix.size()));
  for (const std::string& name : c.names(golden)) {
    c.expect_close(tensors.at(std::string(kModelPrefix) + name), golden + "/" + name);
    unseen.erase(name);
  }
  for (const std::string& name : unseen) ADD_FAILURE() << c.title() << ": " << golden << " has no " << name;
}

// That of the first batch, whatever it is called: "ep0-ba1", or "ep1-ba1" where it ends an epoch.
std::string first_checkpoint(const std::string& checkpoints) {
  const PosixDisk disk;
  for (const std::string& name : published_checkpoints(disk, checkpoints)) {
    const std::string folder = checkpoints + "/" + name;
    if (RunState::from_json(read_manifest(disk, folder).state).time.batch == 1) return folder;
  }
  throw std::runtime_error("the first batch left no checkpoint in " + checkpoints);
}

// The state of averaging algorithms in the last checkpoint.
void expect_averages(const GoldenCase& c, const std::string& checkpoint) {
  const WholeCheckpoint last = read_checkpoint(PosixDisk(), checkpoint);
  if (c.holds("out/ema")) {
    for (const std::string& name : c.names("out/ema"))
      c.expect_close(last.tensors.at("algorithms/EMA/" + name), "out/ema/" + name);
  }
  if (!c.has("swa.n_averaged")) return;
  const auto swa = nlohmann::json::parse(RunState::from_json(last.state).listeners.at("algorithms/SWA"));
  EXPECT_EQ(swa.at("averaged"), c.number("swa.n_averaged")) << c.title();
  EXPECT_EQ(swa.at("completed"), c.number("swa.completed")) << c.title();
}

// Compares, as training ends, which parameters are trained.
class TrainedInTheEnd final : public Callback {
 public:
  explicit TrainedInTheEnd(std::vector<double> expected) : expected_(std::move(expected)) {}
  std::string name() const override { return "TrainedInTheEnd"; }
  void fit_end(State& state, Logger&) override {
    std::vector<double> found;
    for (const ParamView& view : state.views) found.push_back(view.tensor.requires_grad() ? 1 : 0);
    EXPECT_EQ(found, expected_);
    compared_ = true;
  }
  ~TrainedInTheEnd() override { EXPECT_TRUE(compared_); }

 private:
  std::vector<double> expected_;
  bool compared_ = false;
};

void look_at_the_end(const GoldenCase& c, Job& job) {
  if (!c.has("final_requires_grad")) return;
  job.listeners = [before = job.listeners, expected = c.numbers("final_requires_grad")](int rank) {
    Engine::Options listeners = before ? before(rank) : Engine::Options();
    listeners.callbacks.push_back(std::make_shared<TrainedInTheEnd>(expected));
    return listeners;
  };
}

}  // namespace

CaseFiles::CaseFiles(const GoldenCase& c, Manner manner) {
  PosixDisk disk;
  const Hdf5Attributes classes = {{"num_classes", classes_of(c)}};
  std::vector<Hdf5Array> arrays;
  for (const std::string which : {"train", "eval"}) {
    if (!c.holds("in/x_" + which)) continue;
    arrays.push_back(hdf5_array(which + "/input", c.tensor("in/x_" + which).contiguous()));
    arrays.push_back(hdf5_array(which + "/target", c.tensor("in/y_" + which).contiguous(), classes));
  }
  write_hdf5(disk, data_, arrays);
  Safetensors weights;
  for (const std::string& name : c.names("in/weights")) {
    const at::Tensor value = c.tensor("in/weights/" + name);
    weights.tensors[name] = name.ends_with("num_batches_tracked") ? value.reshape({}) : value;
  }
  write_safetensors(disk, weights_, weights);
  write_text(recipe(), recipe_text(c, data_, weights_, manner));
}

std::map<std::string, std::vector<double>> series_of(const std::string& run) {
  std::map<std::string, std::vector<double>> series;
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    for (const auto* names : {&kTrainSeries, &kEvalSeries})
      for (const auto& [own, golden] : *names)
        if (fields.contains(own)) series[golden].push_back(fields[own].get<double>());
    if (fields.contains("metrics/eval/loss"))
      series["eval_batch"].push_back(fields["step"].get<double>());
  }
  return series;
}

void expect_golden(const GoldenCase& c, const std::string& run) {
  c.expect_only_outputs({"loss", "lr", "train_accuracy", "eval_accuracy", "eval_cross_entropy", "eval_batch",
                         "weights", "weights_batch1", "ema"});
  auto series = series_of(run);
  const auto expect_series = [&](const std::string& name) {
    c.expect_close(at::tensor(series[name], at::kDouble), "out/" + name);
  };
  for (const auto& [own, golden] : kTrainSeries) expect_series(golden);
  // A case without evaluations may leave out what is of them.
  for (const std::string name : {"eval_accuracy", "eval_cross_entropy", "eval_batch"}) {
    if (c.holds("out/" + name))
      expect_series(name);
    else
      EXPECT_TRUE(series[name].empty()) << c.title() << ": " << name;
  }
  const std::string checkpoints = run + "/checkpoints";
  if (c.holds("out/weights_batch1")) expect_weights(c, first_checkpoint(checkpoints), "out/weights_batch1");
  expect_weights(c, checkpoints + "/" + kLatest, "out/weights");
  expect_averages(c, checkpoints + "/" + kLatest);
}

bool waits_for_algorithms(const GoldenCase& c) {
  const int count = c.has("num_algorithms") ? static_cast<int>(c.number("num_algorithms")) : 0;
  bool waits = false;
  for (int i = 0; i < count; ++i)
    waits |= is_not_built("algorithm " + c.text("algo" + std::to_string(i) + ".name"));
  return waits;
}

void resume_here(const GoldenCase& c, Manner manner) {
  const CaseFiles files(c, manner);
  const auto train = [&](const std::string& name, const std::string& checkpoint) {
    LocalRunOptions options;
    options.ranks = 1;
    options.quiet = true;
    options.run_dir = files.run(name);
    options.resume = checkpoint;
    train_in_one_process(recipe_of(read_text(files.recipe())), options);
    return series_of(options.run_dir);
  };
  const auto whole = train("whole", "");
  const std::string checkpoints = files.run("whole") + "/checkpoints";
  const std::vector<std::string> published = published_checkpoints(PosixDisk(), checkpoints);
  const auto rest = train("resumed", checkpoints + "/" + published.at(published.size() / 2));
  ASSERT_FALSE(rest.at("loss").empty()) << c.title();
  for (const auto& [name, values] : rest) {
    const std::vector<double>& all = whole.at(name);
    ASSERT_GE(all.size(), values.size()) << c.title() << ": " << name;
    EXPECT_EQ(values, std::vector(all.end() - std::ssize(values), all.end())) << c.title() << ": " << name;
  }
}

void train_here(const GoldenCase& c, Manner manner, int ranks) {
  const CaseFiles files(c, manner);
  LocalRunOptions options;
  options.ranks = ranks;
  options.quiet = true;
  options.run_dir = files.run("run");
  options.prepare = [&](Job& job) {
    if (c.holds("in/draws")) give_draws(job, draws_of(c));
    look_at_the_end(c, job);
  };
  const auto train = [&] { train_in_one_process(recipe_of(read_text(files.recipe())), options); };
  if (c.has("error")) {
    EXPECT_THROW(train(), UserError) << c.title();
    return;
  }
  train();
  expect_golden(c, options.run_dir);
}

}  // namespace tutti
