#include "models/all_ranks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "job/make_job.h"
#include "models/model.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

void small_numbers(at::Tensor& tensor, at::Generator) {
  tensor.copy_(at::linspace(-0.5, 0.5, tensor.numel()).cos().view(tensor.sizes()));
}

void nearly_one(at::Tensor& tensor, at::Generator) {
  tensor.copy_(at::eye(tensor.size(0)) + 0.05 * at::linspace(-1, 1, tensor.numel()).view(tensor.sizes()));
}

constexpr int kLayers = 12;  // more than Sync posts at a time

// Centres its features on the mean over all ranks, below its layers, and picks each sample out among those of
// all ranks.
class Contrasting final : public Model {
 public:
  explicit Contrasting(std::vector<int64_t>& rows)
      : lower_(add_parameter("lower", {6, 5}, small_numbers)),
        upper_(add_parameter("upper", {5, 3}, small_numbers)),
        rows_(rows) {
    for (int i = 0; i < kLayers; ++i)
      layers_.push_back(&add_parameter("layer" + std::to_string(i), {5, 5}, nearly_one));
  }
  bool uses_all_ranks() const override { return true; }

  TensorTree forward(const Batch& batch) override {
    const at::Tensor features = batch["input"].matmul(lower_.tensor);
    const at::Tensor count = sum_of_all(ranks(), at::full({}, features.size(0), at::kLong));
    at::Tensor x = features - sum_of_all(ranks(), features.sum(0)) / count;
    for (const Parameter* layer : layers_) x = x.matmul(layer->tensor).tanh();
    return x.matmul(upper_.tensor);
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override {
    const at::Tensor mine = outputs.tensor();
    const RowsOfAll all = rows_of_all(ranks(), mine);
    if (context().training) rows_.push_back(all.rows.size(0));
    const at::Tensor itself = at::arange(mine.size(0)).add(all.first).unsqueeze(1);
    const at::Tensor near = mine.matmul(all.rows.t());
    return (near.logsumexp(1) - near.gather(1, itself).squeeze(1)).mean();
  }
  const char* kind() const override { return "Contrasting"; }

 private:
  Parameter& lower_;
  Parameter& upper_;
  std::vector<Parameter*> layers_;
  std::vector<int64_t>& rows_;  // of all ranks, in each loss
};

struct Run {
  int ranks = 1;
  int batch = 7;
  std::string grad_accum = "1";
  std::string more;
};

struct Trained {
  std::map<std::string, at::Tensor> tensors;
  std::vector<int64_t> rows;  // rank 0's
};

Trained trained(const Run& run) {
  const Scratch folder;
  std::vector<std::vector<int64_t>> rows(static_cast<std::size_t>(run.ranks) + 1);
  LocalRunOptions options;
  options.ranks = run.ranks;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.make_model = [&, next = 0](const Setting&, const SampleSpec&) mutable {
      return std::make_shared<Contrasting>(rows[static_cast<std::size_t>(next++)]);
    };
  };
  const std::string toml =
      "seed = 5\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 52\nshape = [6]\n"
      "batch_size = " +
      std::to_string(run.batch) +
      "\n[data.eval]\nkind = 'synthetic'\nsamples = 10\nshape = [6]\nbatch_size = 3\n[optimizer]\nkind = "
      "'sgd'\nlr = 0.1\n[train]\nmax_duration = '12ba'\neval_interval = '5ba'\ngrad_accum = " +
      run.grad_accum + "\n" + run.more;
  train_in_one_process(recipe_of(toml), options);
  return {newest_checkpoint(options.run_dir).tensors, rows[0]};
}

std::string why_refused(const Run& run) {
  try {
    trained(run);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it was taken";
}

void expect_same_weights(const Trained& got, const Trained& want) {
  for (const auto& [name, tensor] : want.tensors)
    EXPECT_TRUE(at::allclose(got.tensors.at(name), tensor, 1e-4, 1e-5))
        << name << ": " << (got.tensors.at(name) - tensor).abs().max();
}

// 7 samples over 2 ranks, and over 3; at the epoch's end 3. Evaluations come between.
TEST(AllRanks, ALossOverTheSamplesOfAllRanksIsThatOfOneRank) {
  const Trained alone = trained({});
  EXPECT_FALSE(alone.tensors.at("model/lower").equal(trained({.batch = 6}).tensors.at("model/lower")));
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const Trained together = trained({.ranks = ranks});
    expect_same_weights(together, alone);
    EXPECT_EQ(together.rows, alone.rows);
  }
}

TEST(AllRanks, ItsSumsPassThoseOfGradientsInBackward) {
  const Trained alone = trained({});
  for (const char* more : {"[collectives]\nbucket_mb = 0.00006\n", "[sharding]\nstrategy = 'full'\n",
                           "[sharding]\nstrategy = 'optimizer'\n", "[sharding]\nstrategy = 'gradients'\n"}) {
    SCOPED_TRACE(more);
    expect_same_weights(trained({.ranks = 2, .more = more}), alone);
  }
}

TEST(AllRanks, EachMicrobatchIsOneOfAllRanks) {
  const Trained found = trained({.ranks = 2, .batch = 8, .grad_accum = "2"});
  std::vector<int64_t> rows(24, 4);
  rows[12] = rows[13] = 2;  // the epoch ends with 4 samples
  EXPECT_EQ(found.rows, rows);
}

TEST(AllRanks, AStepThatCannotBeMadeByAllAlikeIsRefused) {
  EXPECT_THAT(why_refused({.ranks = 3, .batch = 5}),
              AllOf(HasSubstr("the model computes with the samples of all ranks, and a batch of 2"),
                    StartsWith("step 11, "), HasSubstr("data.train.drop_last = true")));
  EXPECT_EQ(why_refused({.ranks = 2, .batch = 5}), "it was taken");
}

std::string refused_accumulation(int world) {
  const Scratch folder;
  std::vector<int64_t> rows;
  JobOptions options{.world = world, .run_dir = folder.path("run"), .makes_folders = false};
  options.components.make_model = [&](const Setting&, const SampleSpec&) {
    return std::make_shared<Contrasting>(rows);
  };
  const Setting recipe = recipe_of(
      "seed = 5\n[model]\nkind = 'program'\n[data.train]\nkind = 'synthetic'\nshape = [6]\nbatch_size = "
      "8\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ep'\ngrad_accum = 'auto'\n");
  return message_of<UserError>([&] { make_job(recipe, options); });
}

// In smaller microbatches, which compare fewer samples; and no rank can do so alone.
TEST(AllRanks, StepsThatMayBeTriedAgainAreRefused) {
  for (const int world : {1, 2})
    EXPECT_THAT(refused_accumulation(world),
                AllOf(StartsWith("test.toml:12: train.grad_accum = \"auto\": the model computes with the "
                                 "samples of all ranks"),
                      HasSubstr("expected a number")));
}

TEST(AllRanks, AStepThatRunsOutOfMemoryEndsTheRun) {
  for (const int ranks : {1, 2}) try {
      trained({.ranks = ranks, .more = "[device]\nmemory_budget_mb = 0.0001\n"});
      ADD_FAILURE() << "it was taken";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("step 1, "), HasSubstr("so the step is not tried again")));
      EXPECT_EQ(end_by(error).kind, EndKind::kOutOfMemoryElsewhere) << "no mistake of the user's";
    }
}

TEST(AllRanks, SumsOfHalfPrecisionAreComputedInFloat) {
  struct Two final : AllRanks {
    int world() const override { return 2; }
    void sum_over_ranks(const at::Tensor& numbers) override {
      EXPECT_EQ(numbers.scalar_type(), at::kFloat);
      numbers.mul_(2);
    }
  } two;
  EXPECT_TRUE(sum_of_all(two, at::ones({3}, at::kBFloat16)).equal(at::full({3}, 2, at::kBFloat16)));
}

TEST(AllRanks, OfARunOfOneRankAreThatRank) {
  AllRanks alone;
  const at::Tensor mine = at::ones({2, 3});
  EXPECT_TRUE(sum_of_all(alone, mine).is_same(mine));
  EXPECT_TRUE(rows_of_all(alone, mine).rows.is_same(mine));
  EXPECT_EQ(rows_of_all(alone, mine).first, 0);
}

}  // namespace
}  // namespace tutti
