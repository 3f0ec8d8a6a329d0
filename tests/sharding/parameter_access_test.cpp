#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tutti
