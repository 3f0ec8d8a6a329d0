// A loss over the pairs of a whole step is the same on any number of ranks, under any strategy and in any
// number of microbatches. So are the losses and metrics of evaluations.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <iterator>
#include <map>
#include <regex>

#include "io/hdf5/hdf5_writer.h"
#include "models/zoo/bert_contrastive.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

constexpr int64_t kPairs = 26, kTokens = 31, kWidth = 8;
constexpr double kRate = 0.2;
constexpr std::array<std::pair<int64_t, int64_t>, 3> kBatches = {{{0, 12}, {12, 12}, {24, 2}}};
const std::string kTrain = "[train]\n";

std::string in_parts(std::string recipe, int count) {
  return recipe.insert(recipe.find(kTrain) + kTrain.size(), "grad_accum = " + std::to_string(count) + "\n");
}

at::Tensor some_tokens(int64_t length, int64_t step) {
  return at::arange(kPairs * length, at::kLong).mul(step).remainder(kTokens - 1).add(1).view({-1, length});
}

// Texts of 2 to `length` tokens.
at::Tensor some_mask(int64_t length) {
  const at::Tensor lengths = at::arange(kPairs, at::kLong).remainder(length - 1).add(2);
  return at::arange(length, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1)).to(at::kLong);
}

Batch all_pairs() {
  return TensorTree::Children{{"input_ids", some_tokens(7, 11)},
                              {"attention_mask", some_mask(7)},
                              {"positive_ids", some_tokens(5, 13)},
                              {"positive_attention_mask", some_mask(5)}};
}

BertContrastiveOptions small_encoder(double dropout) {
  BertContrastiveOptions options;
  options.vocab_size = kTokens;
  options.hidden_size = kWidth;
  options.num_hidden_layers = 2;
  options.num_attention_heads = 2;
  options.intermediate_size = 12;
  options.max_position_embeddings = 8;
  options.hidden_dropout_prob = options.attention_probs_dropout_prob = dropout;
  options.initializer_range = 0.3;
  options.temperature = 0.2;
  return options;
}

// The last batch of an epoch, and of an evaluation, has 2 pairs, fewer than there are ranks.
class ContrastiveRuns : public testing::Test {
 protected:
  struct Trained {
    std::vector<double> losses, evaluations;
    std::map<std::string, at::Tensor> tensors;
  };

  ContrastiveRuns() {
    std::vector<Hdf5Array> arrays;
    for (const auto& [name, tensor] : all_pairs().leaves()) arrays.push_back(hdf5_array(name, tensor));
    PosixDisk disk;
    write_hdf5(disk, folder_.path("pairs.h5"), arrays);
  }

  std::string recipe(const std::string& dropout, const std::string& of_model = "") const {
    return "seed = 5\n[model]\nkind = 'bert_contrastive'\nvocab_size = 31\nhidden_size = 8\n"
           "num_hidden_layers = 2\nnum_attention_heads = 2\nintermediate_size = 12\n"
           "max_position_embeddings = 8\ninitializer_range = 0.3\ntemperature = 0.2\n"
           "hidden_dropout_prob = " +
           dropout + "\nattention_probs_dropout_prob = " + dropout + "\n" + of_model +
           "[data.train]\nkind = 'hdf5'\npath = '" + folder_.path("pairs.h5") +
           "'\nbatch_size = 12\n[data.eval]\nkind = 'hdf5'\npath = '" + folder_.path("pairs.h5") +
           "'\nbatch_size = 12\n[optimizer]\nkind = 'sgd'\nlr = 0.2\n[collectives]\nbucket_mb = 0.002\n"
           "[train]\nmax_duration = '5ba'\n";
  }

  Trained trained(const std::string& recipe, const Sharded& sharded) const {
    const std::string run = folder_.path("run" + std::to_string(runs_++));
    const std::string metrics = ShardedJob{recipe, run}.run(sharded).metrics;
    return {numbers("\"loss", metrics), numbers("metrics/eval/\\w+", metrics),
            newest_checkpoint(run).tensors};
  }

  static std::vector<double> numbers(const std::string& names, const std::string& metrics) {
    const std::regex number(names + "\": ([0-9.e+-]+)");
    std::vector<double> all;
    for (std::sregex_iterator found(metrics.begin(), metrics.end(), number), end; found != end; ++found)
      all.push_back(std::stod((*found)[1]));
    return all;
  }

  // `ties`: so many pairs of an evaluation may be found or not, by a rounding.
  static void expect_near(const Trained& found, const Trained& wanted, double tolerance = 3e-5,
                          int ties = 0) {
    const double of_evaluations = ties * 1.01 / kPairs;
    for (const auto numbers : {&Trained::losses, &Trained::evaluations}) {
      ASSERT_EQ((found.*numbers).size(), (wanted.*numbers).size());
      const double more = numbers == &Trained::evaluations ? of_evaluations : 0.0;
      for (std::size_t i = 0; i < (wanted.*numbers).size(); ++i)
        EXPECT_NEAR((found.*numbers)[i], (wanted.*numbers)[i], tolerance * (wanted.*numbers)[i] + more) << i;
    }
    for (const auto& [name, tensor] : wanted.tensors) {
      if (!name.starts_with("model/")) continue;
      EXPECT_LT((found.tensors.at(name) - tensor).abs().max().item<double>(), tolerance) << name;
    }
  }

  void expect_alike(const std::string& recipe, const std::vector<std::pair<Sharded, int>>& worlds) const {
    const Trained whole = trained(recipe, {"none", 1});
    for (const auto& [sharded, parts] : worlds) {
      SCOPED_TRACE(sharded.text() + " in parts: " + std::to_string(parts));
      expect_near(trained(in_parts(recipe, parts), sharded), whole);
    }
  }

  Scratch folder_;
  mutable int runs_ = 0;
};

// -log(exp(s_ii) / sum_j exp(s_ij)), the mean over i.
at::Tensor info_nce(const at::Tensor& scores) {
  const at::Tensor all = scores.exp();
  return (all.diagonal() / all.sum(1)).log().neg().mean();
}

at::Tensor both_ways(const at::Tensor& scores) { return (info_nce(scores) + info_nce(scores.t())) / 2; }

at::Tensor scores_of(BertForContrast& model, int64_t first, int64_t count) {
  const at::Tensor texts = model.forward(all_pairs().narrow(first, count)).tensor();
  return texts.select(1, 0).matmul(texts.select(1, 1).t()) / 0.2;
}

// Of the model as it is, the accuracy and the loss over all pairs, in batches as in training.
std::vector<double> evaluated(BertForContrast& model) {
  const at::NoGradGuard no_grad;
  double found = 0, loss = 0;
  for (const auto& [first, count] : kBatches) {
    const at::Tensor scores = scores_of(model, first, count);
    found += scores.argmax(1).eq(at::arange(count)).sum().item<double>();
    loss += both_ways(scores).item<double>() * static_cast<double>(count);
  }
  return {found / kPairs, loss / kPairs};
}

TEST_F(ContrastiveRuns, AreThoseOfThePlainFormula) {
  BertForContrast model(small_encoder(0.0));
  materialise(model, 5);
  std::vector<at::Tensor> weights;
  for (const auto& one : parameters(model)) weights.push_back(one.parameter->tensor);
  Trained wanted;
  for (int64_t step = 0; step < 5; ++step) {
    const auto& [first, count] = kBatches[step % 3];
    const at::Tensor loss = both_ways(scores_of(model, first, count));
    wanted.losses.push_back(loss.item<double>());
    const auto gradients = torch::autograd::grad({loss}, weights);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].sub_(gradients[i], kRate);
    if (step == 2 || step == 4) std::ranges::copy(evaluated(model), std::back_inserter(wanted.evaluations));
  }
  for (const auto& one : parameters(model)) wanted.tensors["model/" + one.name] = one.parameter->tensor;
  EXPECT_LT(wanted.losses.back(), wanted.losses.front());
  const std::string recipe = this->recipe("0.0", "symmetric = true\n");
  expect_near(trained(recipe, {"none", 1}), wanted);
  expect_near(trained(in_parts(recipe, 3), {"none", 2}), wanted);
}

TEST_F(ContrastiveRuns, AreTheSameOnAnyRanksInAnyMicrobatches) {
  expect_alike(recipe("0.1"), {{{"none", 1}, 4},
                               {{"none", 2}, 1},
                               {{"none", 4}, 2},
                               {{"optimizer", 2}, 4},
                               {{"gradients", 4}, 2},
                               {{"full", 2}, 2},
                               {{"full", 4}, 1},
                               {{"hybrid", 4, "shard_size = 2\n"}, 4}});
  if (!is_nightly()) return;
  for (const int ranks : {1, 2, 4})
    for (const int parts : {1, 2, 4})
      for (const char* strategy : {"none", "optimizer", "gradients", "full"})
        expect_alike(recipe("0.1"), {{{strategy, ranks}, parts}});
}

// In grains, to the last bit.
TEST_F(ContrastiveRuns, OfGrainsHaveOneResultOnAnyRanks) {
  const std::string grains = recipe("0.1") + "[reproducibility]\nmode = 'elastic'\ngrains = 4\n";
  const auto run = [&](const Sharded& sharded) {
    return ShardedJob{grains, folder_.path("grains" + std::to_string(runs_++))}.run(sharded);
  };
  const ShardedRun alone = run({"none", 1});
  for (const Sharded& sharded :
       std::vector<Sharded>{{"none", 2}, {"none", 3}, {"full", 2}, {"gradients", 4}}) {
    const ShardedRun other = run(sharded);
    EXPECT_EQ(other.digest, alone.digest) << sharded.text();
    EXPECT_EQ(other.metrics, alone.metrics) << sharded.text();
  }
}

TEST_F(ContrastiveRuns, AreTheSameHoweverUnitsAreGathered) {
  for (const char* more : {"prefetch = false\n", "reshard_after_forward = false\n",
                           "activation_checkpointing = ['BertLayer']\n"})
    expect_alike(recipe("0.1"), {{{"full", 2, more}, 3}});
}

TEST_F(ContrastiveRuns, AreTheSameWithExtraPasses) {
  expect_alike(recipe("0.1") + "[[algorithms]]\nkind = 'sam'\ninterval = 2\n", {{{"full", 2}, 3}});
}

TEST_F(ContrastiveRuns, AreEvaluatedAlikeInPartsOfAnySize) {
  const std::string part = "[data.eval]\ndevice_eval_microbatch_size = ";
  const auto in_parts_of = [&](const std::string& size) {
    return std::regex_replace(recipe("0.1"), std::regex("\\[data.eval\\]"), part + size);
  };
  const Trained whole = trained(recipe("0.1"), {"none", 1});
  for (const char* strategy : {"none", "full"})
    for (const char* size : {"1", "4"}) {
      SCOPED_TRACE(std::string(strategy) + " in parts of " + size);
      expect_near(trained(in_parts_of(size), {strategy, 2}), whole);
    }
}

// Float16 skips steps until it has found its scale.
TEST_F(ContrastiveRuns, AreTheSameInLowPrecision) {
  const double first = trained(recipe("0.1"), {"none", 1}).losses[0];
  for (const char* precision : {"amp_bf16", "amp_fp16"}) {
    const std::string low = recipe("0.1") + "precision = '" + precision + "'\n";
    const Trained whole = trained(low, {"none", 1});
    expect_near(trained(in_parts(low, 3), {"full", 2}), whole, 1e-3, /*ties=*/1);
    EXPECT_NEAR(whole.losses[0], first, 0.02 * first);
    EXPECT_NE(whole.losses[0], first);
  }
}

TEST_F(ContrastiveRuns, OfSimcseHaveOneTextAPair) {
  const std::string simcse =
      std::regex_replace(recipe("0.1", "simcse = true\n"), std::regex("pairs"), "texts");
  PosixDisk disk;
  write_hdf5(disk, folder_.path("texts.h5"), {hdf5_array("input_ids", some_tokens(7, 11))});
  expect_alike(simcse, {{{"none", 1}, 3}, {{"full", 2}, 2}});
  EXPECT_GT(trained(simcse, {"none", 1}).losses[0], 0.01) << "without dropout a text is its own copy";
}

// Allocations after those of the one step are those of the evaluation.
TEST_F(ContrastiveRuns, AreEvaluatedAlikeWhereverMemoryRunsOut) {
  MemoryWorld world;
  for (const char* strategy : {"none", "full"}) {
    world.recipe = std::regex_replace(recipe("0.1"), std::regex("5ba"), "1ba") + "[sharding]\nstrategy = '" +
                   strategy + "'\n";
    world.failures.clear();
    const auto clean = world.run("\"auto\"");
    const auto wanted = numbers("metrics/eval/\\w+", clean.metrics);
    ASSERT_EQ(wanted.size(), 2U);
    const int64_t stride = is_nightly() ? 3 : 43;
    int in_evaluations = 0;
    for (int64_t ordinal = 1; ordinal <= clean.allocations[1]; ordinal += stride) {
      SCOPED_TRACE(std::string(strategy) + ", allocation " + std::to_string(ordinal));
      world.failures = {{1, {ordinal}}};
      const auto found = world.run("\"auto\"");
      ASSERT_EQ(found.error, "");
      in_evaluations += found.counts.back() == 1;
      const auto values = numbers("metrics/eval/\\w+", found.metrics);
      ASSERT_EQ(values.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-5) << i;
    }
    EXPECT_GT(in_evaluations, 5);
  }
}

// Wherever memory runs out, before the rows are gathered or after that.
TEST_F(ContrastiveRuns, AreTheSameWhenMemoryRunsOut) {
  MemoryWorld world;
  const std::string whole_batches =
      std::regex_replace(recipe("0.1"), std::regex("batch_size = 12"), "batch_size = 12\ndrop_last = true");
  for (const char* strategy : {"none", "full"}) {
    world.recipe = whole_batches + "eval_interval = '0ba'\n[sharding]\nstrategy = '" + strategy + "'\n";
    world.failures.clear();
    const auto clean = world.run("\"auto\"");
    ASSERT_EQ(clean.schedule(), "[[0, 1]]");
    const int64_t stride = is_nightly() ? 7 : 401;
    for (int64_t ordinal = 1; ordinal <= clean.allocations[1]; ordinal += stride) {
      SCOPED_TRACE(std::string(strategy) + ", allocation " + std::to_string(ordinal));
      world.failures = {{1, {ordinal}}};
      const auto found = world.run("\"auto\"");
      ASSERT_EQ(found.error, "");
      EXPECT_EQ(found.counts.back(), 2);
      for (std::size_t i = 0; i < clean.losses.size(); ++i)
        EXPECT_NEAR(std::stod(found.losses[i]), std::stod(clean.losses[i]), 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace tutti
