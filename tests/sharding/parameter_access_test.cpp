#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/losses.h"
#include "models/model.h"
#include "models/step_rows.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"
#include "training/state.h"

namespace tutti {
namespace {

const std::string kRecipe = R"(seed = 5
[model]
kind = 'mlp'
hidden = [33, 17]
[data.train]
kind = 'synthetic'
samples = 40
batch_size = 20
shape = [12]
[optimizer]
kind = 'adamw'
lr = 0.01
[train]
max_duration = '2ba'
)";

// Reads a whole parameter of the second layer, or writes it.
class ReadsParameter final : public Callback {
 public:
  ReadsParameter(Event at, bool writes) : at_(at), writes_(writes) {}
  std::string name() const override { return "ReadsParameter"; }
  void run_event(Event event, State& state, Logger&) override {
    if (event != at_) return;
    const at::NoGradGuard no_grad;
    const at::Tensor& tensor = state.parameters.at(2).parameter->tensor;
    EXPECT_EQ(tensor.numel(), 17 * 33);
    if (writes_)
      tensor.data_ptr<float>()[0] = 1;
    else
      EXPECT_GT(tensor.narrow(0, 0, 1).abs().sum().item<float>(), 0);
  }

 private:
  Event at_;
  bool writes_;
};

void run_reading(const Sharded& sharded, Event at, bool writes) {
  const Scratch folder;
  ShardedJob job{kRecipe, folder.path()};
  job.prepare = [&](Job& of) {
    of.listeners = [&](int) {
      return Engine::Options{.callbacks = {std::make_shared<ReadsParameter>(at, writes)}};
    };
  };
  job.run(sharded);
}

TEST(ParameterAccess, SaysWhatToReadInPlaceOfAParameterThatIsNotWhole) {
  const auto expect_error = [](const Sharded& sharded, Event at, bool writes) {
    const std::string why = message_of<std::exception>([&] { run_reading(sharded, at, writes); });
    for (const char* word : {"2.weight'", "state.views", "state.visit_parameters", "state.with_model"})
      EXPECT_NE(why.find(word), std::string::npos) << sharded.text() << ", " << name(at) << ": " << why;
  };
  for (const Sharded& sharded : {Sharded{"optimizer"}, Sharded{"gradients"}, Sharded{"full"}})
    for (const Event at : {Event::kFitStart, Event::kAfterTrainBatch, Event::kBatchEnd, Event::kFitEnd})
      expect_error(sharded, at, at == Event::kAfterTrainBatch);
  expect_error({"full"}, Event::kBeforeForward, false);
  expect_error({"optimizer"}, Event::kBatchStart, false);  // its gather is under way
}

TEST(ParameterAccess, IsAllowedWhereParametersAreWhole) {
  run_reading({"none"}, Event::kBatchEnd, false);
  for (const char* strategy : {"optimizer", "gradients"})
    for (const Event at : {Event::kAfterForward, Event::kAfterBackward}) run_reading({strategy}, at, false);
}

std::shared_ptr<Layer> linear_layers() {
  std::vector<std::shared_ptr<Layer>> layers;
  for (int i = 0; i < 3; ++i) layers.push_back(std::make_shared<Linear>(12, 12));
  return std::make_shared<Sequential>(layers);
}

// Finds samples among themselves or among those of the step; its frozen scale is of the root unit.
class Scaled final : public Model {
 public:
  explicit Scaled(bool compares)
      : compares_(compares),
        layers_(add_slot("layers", linear_layers())),
        scale_(add_parameter("scale", {1}, constant_init(3.0))) {
    scale_.trained = false;
  }
  TensorTree forward(const Batch& batch) override { return layers_(batch["input"]); }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override {
    const at::Tensor all = rows_of_step(batch, rows(outputs));
    return index_cross_entropy(scores_of(all, all), places_in_step({}, all));
  }
  bool compares_step() const override { return compares_; }
  at::Tensor rows(const Outputs& outputs) override { return outputs.tensor(); }
  std::vector<std::string> get_metrics(bool) const override { return {"MulticlassAccuracy"}; }
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override {
    const at::Tensor mine = rows(outputs);
    metric.update(scores_of(mine, rows_of_step(batch, mine)), places_in_step(batch, mine));
  }
  const char* kind() const override { return "Scaled"; }

 private:
  at::Tensor scores_of(const at::Tensor& mine, const at::Tensor& all) const {
    return mine.matmul(all.t()) * scale_.tensor;
  }

  bool compares_;
  Slot& layers_;
  Parameter& scale_;
};

class ReadsScale final : public Callback {
 public:
  std::string name() const override { return "ReadsScale"; }
  void eval_batch_end(State& state, Logger&) override {
    EXPECT_EQ(state.parameters.front().parameter->tensor.item<float>(), 3);
  }
};

TEST(ParameterAccess, OfTheRootUnitIsAllowedToTheEndOfAnEvaluatedBatch) {
  const auto metrics_of = [](bool compares, const char* strategy) {
    const Scratch folder;
    ShardedJob job{kSyntheticMlp + "max_duration = '1ba'\n", folder.path()};
    job.prepare = [compares](Job& of) {
      of.make_model = [compares](const Setting&, const SampleSpec&) {
        return std::make_shared<Scaled>(compares);
      };
      of.listeners = [](int) { return Engine::Options{.callbacks = {std::make_shared<ReadsScale>()}}; };
    };
    return job.run({strategy}).metrics;
  };
  for (const bool compares : {false, true})
    EXPECT_EQ(metrics_of(compares, "full"), metrics_of(compares, "none"));
}

}  // namespace
}  // namespace tutti
