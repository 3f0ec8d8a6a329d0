#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/swa.h"
#include "tests/golden/golden_file.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kSwaFile = "swa.h5";

SWA::Options options_of(const GoldenCase& c) {
  SWA::Options options{.swa_start = Time::parse(c.text("swa_start")),
                       .swa_end = Time::parse(c.text("swa_end")),
                       .update_interval = Time::parse(c.text("update_interval"))};
  if (c.has("schedule_swa_lr")) options.schedule_swa_lr = c.number("schedule_swa_lr") != 0;
  if (c.has("anneal_steps")) options.anneal_steps = static_cast<int64_t>(c.number("anneal_steps"));
  if (c.has("anneal_strategy") && c.text("anneal_strategy") == "cos")
    options.anneal_strategy = AnnealStrategy::kCosine;
  if (c.has("swa_lr")) options.swa_lr = c.number("swa_lr");
  return options;
}

// A training whose weights and scheduled rates are given.
class GivenTraining {
 public:
  explicit GivenTraining(const GoldenCase& c)
      : case_(c), swa_(options_of(c)), rates_(c.tensor("in/sched_lr")) {
    state_.composer = true;
    state_.max_duration = Time(c.number("epochs"), TimeUnit::kEpoch);
    for (const auto& [name, shape] : {std::pair<const char*, Shape>{"weight", {2, 3}}, {"bias", {2}}})
      state_.views.push_back(whole_view(name, at::zeros(shape)));
    state_.services->scheduled_lr = [this] { return rates_[batch_].item<double>(); };
    run(Event::kBeforeLoad);
  }

  void train_batch() {
    put(case_.tensor("in/w_" + std::to_string(batch_)));
    state_.next_lr.reset();
    state_.to_next_batch(1, 0, 1);
    run(Event::kBatchEnd);
    if (state_.timestamp.batch_in_epoch == static_cast<int64_t>(case_.number("dataloader_len"))) {
      state_.timestamp.to_next_epoch();
      run(Event::kEpochEnd);
    }
    case_.expect_close(at::cat({state_.views[0].tensor.flatten(), state_.views[1].tensor}),
                       "out/model_w_" + std::to_string(batch_));
    rates.push_back(state_.next_lr.value_or(state_.services->scheduled_lr()));
    averaged.push_back(swa_.averaged());
    ++batch_;
  }

  std::vector<double> rates;
  std::vector<int64_t> averaged;

 private:
  void run(Event event) {
    if (swa_.match(event, state_)) swa_.apply(event, state_, logger_);
  }
  void put(const at::Tensor& w) {
    state_.views[0].tensor.copy_(w.narrow(0, 0, 6).view({2, 3}));
    state_.views[1].tensor.copy_(w.narrow(0, 6, 2));
  }

  const GoldenCase& case_;
  SWA swa_;
  at::Tensor rates_;
  State state_;
  Logger logger_;
  int64_t batch_ = 0;
};

class GoldenSwa : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSwa, AveragesAsComposerDoes) {
  const GoldenCase c(golden_path(kSwaFile), GetParam());
  // The optimizer's rate around INIT, where tutti's SWA does nothing, is Composer's affair.
  const std::set<std::string> parameters = {
      "dataloader_len", "epochs",          "lr_before",       "lr_right_after_init", "optimizer_lr",
      "swa_start",      "swa_end",         "update_interval", "weight_layout",       "schedule_swa_lr",
      "anneal_steps",   "anneal_strategy", "swa_lr"};
  const int64_t batches = c.tensor("in/sched_lr").numel();
  std::set<std::string> inputs = {"sched_lr"}, outputs = {"lr", "n_averaged"};
  GivenTraining training(c);
  for (int64_t b = 0; b < batches; ++b) {
    training.train_batch();
    inputs.insert("w_" + std::to_string(b));
    outputs.insert("model_w_" + std::to_string(b));
  }
  c.expect_only(parameters, inputs);
  c.expect_only_outputs(outputs);
  c.expect_close(at::tensor(training.rates, at::kDouble), "out/lr");
  c.expect_close(at::tensor(training.averaged, at::kLong), "out/n_averaged");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSwa, testing::ValuesIn(golden_cases(golden_path(kSwaFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSwa);

}  // namespace
}  // namespace tutti
