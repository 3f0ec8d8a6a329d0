#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tensors/memory/meter.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"
#include "training/state.h"
#include "training/work_in_parts.h"

namespace tutti {
namespace {

const std::string kEvaluatedMlp = kSyntheticMlp + "eval_interval = '20ba'\n";

// Of more tokens than bytes, so that no text is written at the end: 400 passes of the model.
const std::string kGpt = R"(seed = 5
[model]
kind = 'gpt'
vocab_size = 300
n_positions = 8
n_embd = 12
n_layer = 3
n_head = 3
)" + kTextData + kClippedAdamW;

const std::string kResnet = R"(seed = 5
[model]
kind = 'resnet_cifar'
depth = 20
[data.train]
kind = 'synthetic'
samples = 48
batch_size = 8
shape = [3, 8, 8]
)" + kClippedAdamW;

const std::string kSam = "[[algorithms]]\nkind = 'sam'\ninterval = 2\n";

const std::vector<Sharded> kOnTwo{{"optimizer"}, {"gradients"}, {"full"}};

// All strategies for so many ranks; hybrid with shards of 2 where there is more than one copy then.
std::vector<Sharded> strategies(int ranks) {
  std::vector<Sharded> all{{"optimizer", ranks}, {"gradients", ranks}, {"full", ranks}};
  if (ranks % 2 == 0 && ranks > 2) all.push_back({"hybrid", ranks, "shard_size = 2\n"});
  return all;
}

ShardedRun run(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return ShardedJob{recipe, folder.path()}.run(sharded);
}

ShardedRun run_with(const std::string& recipe, const Sharded& sharded,
                    const std::shared_ptr<Algorithm>& algorithm) {
  const Scratch folder;
  ShardedJob job{recipe, folder.path()};
  job.prepare = [&](Job& of) {
    of.listeners = [&](int) { return Engine::Options{.algorithms = {algorithm}}; };
  };
  return job.run(sharded);
}

void expect_equal(const std::string& recipe, const std::vector<Sharded>& all) {
  const ShardedRun first = run(recipe, all.front());
  for (std::size_t i = 1; i < all.size(); ++i) {
    const ShardedRun other = run(recipe, all[i]);
    EXPECT_EQ(other.digest, first.digest) << all[i].text() << " and " << all.front().text();
    EXPECT_TRUE(other.metrics == first.metrics)
        << "the log of " << all[i].text() << " and " << all.front().text();
  }
}

void expect_bits_of_none(const std::string& recipe, std::vector<Sharded> all) {
  all.insert(all.begin(), {"none", all.front().ranks});
  expect_equal(recipe, all);
}

TEST(ShardedRuns, HaveTheBitsOfUnshardedOnes) {
  for (const int ranks : {2, 3, 4}) {
    expect_bits_of_none(kEvaluatedMlp + steps(50), strategies(ranks));
    expect_bits_of_none(kGpt + steps(50), strategies(ranks));
  }
}

TEST(ShardedRuns, OfConvolutionsHaveThemToo) {
  expect_bits_of_none(kResnet + steps(6), strategies(2));
  expect_bits_of_none(kResnet + steps(6), {{"full", 3}});
  if (!is_nightly()) return;
  for (const int ranks : {2, 3, 4}) expect_bits_of_none(kResnet + steps(50), strategies(ranks));
  expect_bits_of_none(kResnet + steps(50), {{"hybrid", 6, "shard_size = 2\n"}});
}

TEST(ShardedRuns, HaveThemInCopiesOfSeveralSizes) {
  expect_bits_of_none(kEvaluatedMlp + steps(20), {{"hybrid", 6, "shard_size = 2\n"}, {"full", 6}});
  expect_bits_of_none(kEvaluatedMlp + steps(20),
                      {{"hybrid", 8, "shard_size = 2\n"}, {"hybrid", 8, "shard_size = 4\n"}, {"full", 8}});
}

TEST(ShardedRuns, HaveThemUnderAutocast) {
  expect_bits_of_none(kGpt + steps(20) + "precision = 'amp_bf16'\n", kOnTwo);
  expect_bits_of_none(kGpt + steps(20) + "precision = 'amp_fp16'\n", {{"full", 3}});
  expect_bits_of_none(kResnet + steps(4) + "precision = 'amp_bf16'\n", {{"full", 2}});
  expect_bits_of_none(kEvaluatedMlp + steps(20) + "precision = 'amp_bf16'\n" + kSam, {{"full", 2}});
  if (!is_nightly()) return;
  for (const std::string& recipe : {kEvaluatedMlp, kGpt, kResnet})
    expect_bits_of_none(recipe + steps(50) + "precision = 'amp_bf16'\n", strategies(4));
}

TEST(ShardedRuns, HaveThemWithLowPrecisionSums) {
  expect_bits_of_none(kEvaluatedMlp + steps(20) + "[precision]\nreduce_dtype = 'bf16'\n", kOnTwo);
}

TEST(ShardedRuns, HaveThemWithExtraPassesAndForwards) {
  expect_bits_of_none(kEvaluatedMlp + steps(20) + kSam, strategies(3));
  expect_bits_of_none(kEvaluatedMlp + steps(20) +
                          "[[algorithms]]\nkind = 'selective_backprop'\nstart = 0.2\nend = 0.8\nkeep = 0.5\n",
                      strategies(3));
}

// Their averages, which evaluations use in their place, continue.
TEST(ShardedRuns, HaveThemWhileLayersAreFrozen) {
  const std::string frozen = "[[algorithms]]\nkind = 'layer_freezing'\nfreeze_start = 0.0\n";
  const std::string averaged = "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n";
  expect_bits_of_none(kEvaluatedMlp + steps(30) + frozen, strategies(3));
  expect_bits_of_none(kEvaluatedMlp + steps(30) + "grad_accum = 2\n" + frozen, {{"optimizer", 4}});
  std::string recipe = kEvaluatedMlp;
  recipe.replace(recipe.find("'20ba'"), 6, "'4ba'");
  expect_bits_of_none(recipe + steps(30) + averaged + frozen, strategies(4));
}

TEST(ShardedRuns, HaveThemWhileLayersAreUnfrozen) {
  const std::string later = "[[model.unfreeze]]\nmatch = ['0.*']\nat = '8ba'\n";
  expect_bits_of_none(kEvaluatedMlp + steps(20) + later, strategies(3));
  expect_bits_of_none(kEvaluatedMlp + steps(20) + "grad_accum = 2\n" + later, {{"optimizer", 4}});
}

TEST(ShardedRuns, HaveThemWithAverages) {
  expect_bits_of_none(kEvaluatedMlp + steps(30) + "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n",
                      strategies(3));
}

TEST(ShardedRuns, HaveThemHoweverUnitsAreGathered) {
  std::vector<Sharded> all;
  for (const char* more : {"prefetch = false\n", "reshard_after_forward = false\n",
                           "units = ['GptMlp', '*.ln_*']\n", "unit_mb = 1000\n"})
    all.push_back({"full", 2, more});
  expect_bits_of_none(kGpt + steps(10), all);
}

// Parameters that are frozen when they are made.
class FreezesTheMiddle final : public Algorithm {
 public:
  std::string name() const override { return "FreezesTheMiddle"; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event, State& state, Logger&) override {
    for (const auto& one : parameters(*state.model))
      if (one.name.find("h.1.") != std::string::npos) one.parameter->trained = false;
  }
};

TEST(ShardedRuns, HaveThemWithAFrozenUnitBetweenTrainedOnes) {
  const auto frozen = [](const Sharded& sharded) {
    return run_with(kGpt + steps(20), sharded, std::make_shared<FreezesTheMiddle>());
  };
  const ShardedRun none = frozen({"none", 3});
  EXPECT_NE(none.digest, run(kGpt + steps(20), {"none", 3}).digest) << "nothing is frozen";
  for (const Sharded& sharded : strategies(3))
    EXPECT_EQ(frozen(sharded).digest, none.digest) << sharded.text();
}

// Moves what is frozen, in some steps.
class MovesFrozen final : public Algorithm {
 public:
  std::string name() const override { return "MovesFrozen"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kInit || (event == Event::kBatchEnd && state.timestamp.batch % 4 == 0);
  }
  void apply(Event event, State& state, Logger&) override {
    if (event == Event::kInit) {
      for (const auto& one : parameters(*state.model)) one.parameter->trained = !is_frozen(one.name);
      return;
    }
    const at::NoGradGuard no_grad;
    for (const ParamView& view : state.views)
      if (is_frozen(view.name)) view.tensor.data().mul_(1.25F);
  }

 private:
  static bool is_frozen(const std::string& name) {
    return name.find("h.1.") != std::string::npos || name.find("wpe") != std::string::npos;
  }
};

TEST(ShardedRuns, SeeWhateverMovesFrozenParameters) {
  const auto moved = [](const Sharded& sharded) {
    return run_with(kGpt + steps(20), sharded, std::make_shared<MovesFrozen>());
  };
  for (const int ranks : {3, 4}) {
    const ShardedRun none = moved({"none", ranks});
    for (const Sharded& sharded : strategies(ranks)) {
      const ShardedRun other = moved(sharded);
      EXPECT_EQ(other.digest, none.digest) << sharded.text();
      EXPECT_EQ(other.metrics, none.metrics) << sharded.text();
    }
  }
}

// Freezes the first layer, and asks for gradients of the data: backward comes where nothing is trained.
class WantsGradientsOfInputs final : public Algorithm {
 public:
  std::string name() const override { return "WantsGradientsOfInputs"; }
  bool match(Event event, const State&) const override {
    return event == Event::kInit || event == Event::kBeforeForward;
  }
  void apply(Event event, State& state, Logger&) override {
    if (event == Event::kInit)
      for (const auto& one : state.model->slots().front()->layer().own_parameters()) one->trained = false;
    else
      state.batch["input"].requires_grad_(true);
  }
};

TEST(ShardedRuns, GoBackwardWhereNothingIsTrainedIfTheyMust) {
  const auto backward = [](const Sharded& sharded) {
    return run_with(kEvaluatedMlp + steps(10), sharded, std::make_shared<WantsGradientsOfInputs>());
  };
  const std::string none = backward({"none", 2}).digest;
  EXPECT_NE(none, run(kEvaluatedMlp + steps(10), {"none", 2}).digest) << "nothing is frozen";
  EXPECT_EQ(backward({"full", 2}).digest, none);
}

// The head reads the table of the embeddings, which then stays in the root unit.
TEST(ShardedRuns, LeaveTablesThatAreReadElsewhereToTheRoot) {
  std::string recipe = kGpt;
  const auto from = recipe.find("kind = 'gpt'"), to = recipe.find("[data.train]");
  recipe.replace(from, to - from,
                 "kind = 'bert_mlm'\nvocab_size = 256\nhidden_size = 12\nnum_hidden_layers = 2\n"
                 "num_attention_heads = 2\nintermediate_size = 16\nmax_position_embeddings = 8\n");
  recipe.replace(
      recipe.find("batch_size = 12\n"), 16,
      "batch_size = 12\ntransforms = [{kind = 'mask_tokens', mask_token_id = 0, vocab_size = 256}]\n");
  expect_bits_of_none(recipe + steps(5), {{"full", 2, "units = ['TokenEmbedding', 'BertLayer']\n"}});
}

TEST(ShardedRuns, NameUnitsThatTheModelHasNot) {
  const std::string why = message_of<std::exception>([] {
    run(kGpt + steps(1), {"full", 2, "units = ['GptBlock', 'GptBlok']\n"});
  });
  EXPECT_NE(why.find("'GptBlok'"), std::string::npos) << why;
  EXPECT_NE(why.find("sharding.units"), std::string::npos) << why;
}

// Every microbatch is reduced, and then added to the share.
TEST(ShardedRuns, InMicrobatchesHaveEachOthersBits) {
  const std::string parts = "grad_accum = 3\n";
  expect_equal(kGpt + steps(20) + parts, {{"gradients", 4}, {"full", 4}, {"hybrid", 4, "shard_size = 2\n"}});
  expect_bits_of_none(kGpt + steps(20) + parts, {{"optimizer", 4}});
}

// Parameters gathered in 16 bits for computing are exported with all their bits.
TEST(ShardedRuns, ExportEveryBit) {
  const std::string recipe = kGpt + steps(8) +
                             "precision = 'amp_bf16'\n[[algorithms]]\nkind = 'ema'\nhalf_life = '3ba'\n" +
                             "[[callbacks]]\nkind = 'export_for_inference'\nsave_path = '";
  const Scratch folder;
  const auto exported = [&](const Sharded& sharded) {
    const std::string path = folder.path(sharded.strategy + ".safetensors");
    run(recipe + path + "'\n", sharded);
    return read_text(path);
  };
  const std::string none = exported({"none"});
  EXPECT_GT(none.size(), 10'000U);
  for (const Sharded& sharded : kOnTwo) EXPECT_TRUE(exported(sharded) == none) << sharded.text();
}

// In the last microbatch two of the ranks have nothing to do but to serve.
TEST(ShardedRuns, NeedNoSamplesInEveryMicrobatch) {
  std::string recipe = kGpt;
  recipe.replace(recipe.find("batch_size = 12"), 15, "batch_size = 10");
  expect_equal(
      recipe + steps(10) + "grad_accum = 3\n",
      {{"gradients", 4}, {"full", 4}, {"full", 4, "prefetch = false\n"}, {"hybrid", 4, "shard_size = 2\n"}});
}

TEST(ShardedRuns, NeedNoSamplesOnEveryRank) {
  const std::string few = "[data.eval]\nkind = 'synthetic'\nsamples = 5\nbatch_size = 4\nshape = [12]\n";
  std::string recipe = kEvaluatedMlp;
  const auto from = recipe.find("[data.eval]"), to = recipe.find("[optimizer]");
  recipe.replace(from, to - from, few);
  expect_bits_of_none(recipe + steps(20), strategies(4));
}

// Rank 0 has samples of its own at the end, and memory for two of them at a time.
class SamplesOfRankZero final : public Callback {
 public:
  explicit SamplesOfRankZero(std::vector<int64_t>& parts) : parts_(parts) {}
  std::string name() const override { return "SamplesOfRankZero"; }
  void fit_end(State& state, Logger&) override {
    const EvaluationMode evaluating(*state.model);
    const auto run_model = [&](int64_t, int64_t count) {
      parts_.push_back(count);
      state.eval_forward(TensorTree::Children{{"input", at::ones({count, 12})}});
      TORCH_CHECK_WITH(OutOfMemoryError, count <= 2, "no room for so many");
    };
    work_in_parts(state, state.topology.rank == 0, {.items = 5, .part = 4, .work = run_model});
  }

 private:
  std::vector<int64_t>& parts_;
};

TEST(ShardedRuns, ServeARankThatHasNoMemoryForAllAtOnce) {
  for (const Sharded& sharded : strategies(4)) {
    std::vector<int64_t> parts;
    const Scratch folder;
    ShardedJob job{kEvaluatedMlp + steps(2), folder.path()};
    job.prepare = [&](Job& of) {
      of.listeners = [&](int) {
        return Engine::Options{.callbacks = {std::make_shared<SamplesOfRankZero>(parts)}};
      };
    };
    job.run(sharded);
    EXPECT_EQ(parts, (std::vector<int64_t>{4, 2, 2, 1})) << sharded.text();
  }
}

// Visits all parameters at the end on rank 0, and notes the bytes of them all and the most that were held.
class VisitsParameters final : public Callback {
 public:
  VisitsParameters(int64_t& whole, int64_t& most) : whole_(whole), most_(most) {}
  std::string name() const override { return "VisitsParameters"; }
  void fit_end(State& state, Logger&) override {
    const int64_t before = Meter::used_bytes(state.device.memory_slot);
    state.visit_parameters(state.topology.rank == 0, [&](std::size_t p) {
      const at::Tensor& parameter = state.parameters[p].parameter->tensor;
      EXPECT_EQ(parameter.scalar_type(), at::kFloat);
      whole_ += static_cast<int64_t>(parameter.nbytes());
      most_ = std::max(most_, Meter::used_bytes(state.device.memory_slot) - before);
    });
  }

 private:
  int64_t& whole_;
  int64_t& most_;
};

TEST(ShardedRuns, VisitParametersAUnitAtATime) {
  std::string recipe = kGpt + steps(1) + "precision = 'amp_bf16'\n";
  recipe.replace(recipe.find("n_layer = 3"), 11, "n_layer = 30");
  int64_t whole = 0, most = 0;
  const Scratch folder;
  ShardedJob job{recipe, folder.path()};
  job.prepare = [&](Job& of) {
    of.listeners = [&](int) {
      return Engine::Options{.callbacks = {std::make_shared<VisitsParameters>(whole, most)}};
    };
  };
  job.run({"full", 3});
  EXPECT_GT(whole, 30 * 12 * 12 * 12 * 4);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, whole / 10);
}

int first_step(const ShardedRun& run) {
  return std::stoi(run.metrics.substr(run.metrics.find("step\": ") + 7));
}

double first_loss(const ShardedRun& run) {
  return std::stod(run.metrics.substr(run.metrics.find("loss\": ") + 7));
}

TEST(ShardedRuns, ResumeUnderAnotherStrategyOnOtherRanks) {
  const std::string checkpoints = "[checkpoint]\ninterval = '10ba'\n";
  for (const Sharded& next : {Sharded{"none", 2}, Sharded{"gradients", 3}, Sharded{"none", 1},
                              Sharded{"hybrid", 4, "shard_size = 2\n"}}) {
    const Scratch folder;
    const std::string begun = folder.path("begun"), same = folder.path("same"), other = folder.path("other");
    ShardedJob{kEvaluatedMlp + steps(20) + checkpoints, begun}.run({"full", 4});
    const auto goes_on = [&](const std::string& to, const Sharded& as) {
      return ShardedJob{kEvaluatedMlp + steps(21) + checkpoints + "load_path = '" + begun + "'\n", to}.run(
          as);
    };
    const ShardedRun whole = goes_on(same, {"full", 4}), changed = goes_on(other, next);
    EXPECT_EQ(first_step(whole), 21) << next.text();
    EXPECT_EQ(first_step(changed), 21) << next.text();
    EXPECT_NEAR(first_loss(whole), first_loss(changed), 2e-6) << next.text();
  }
}

// Of the memory of the largest rank: without the copies that checkpoints reserve, and next to no activations.
double held_mb(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  double copies = 0;
  ShardedJob job{recipe, folder.path()};
  job.prepare = [&](Job& of) {
    of.before_step = [&](int rank, int64_t, const Trainee& trainee, const Batch&) {
      if (rank > 0) return;
      copies = 0;
      for (const auto& piece : checkpoint_pieces(trainee))
        copies += static_cast<double>(piece.tensor.nbytes()) / kBytesPerMb;
    };
  };
  const double peak = job.run(sharded).peak_mb;
  return peak - copies;
}

TEST(ShardedRuns, HoldAShareOfParametersGradientsAndOptimizer) {
  std::string recipe = kGpt;
  const auto replace = [&](const std::string& from, const std::string& to) {
    recipe.replace(recipe.find(from), from.size(), to);
  };
  replace("n_embd = 12\nn_layer = 3", "n_embd = 96\nn_layer = 24");
  replace("batch_size = 12", "batch_size = 4");
  replace("sequence_length = 8", "sequence_length = 2");
  recipe += steps(2);
  const double none = held_mb(recipe, {"none", 4});
  EXPECT_LE(held_mb(recipe, {"full", 4}), 0.32 * none);
  const double amp = held_mb(recipe + "precision = 'amp_bf16'\n", {"full", 4});
  EXPECT_LE(amp, 0.34 * none) << "16-bit copies of weights outlive their unit";
  EXPECT_LE(held_mb(recipe, {"gradients", 4}), 0.56 * none);
  EXPECT_LE(held_mb(recipe, {"optimizer", 4}), 0.8 * none);
}

}  // namespace
}  // namespace tutti
