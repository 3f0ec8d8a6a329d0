#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/selective_backprop.h"
#include "models/losses.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kSelectionFile = "selective_backprop.h5";

// Rows of duration, batch_idx, start, end, interrupt.
void expect_decisions(const GoldenCase& c) {
  c.expect_only({}, {"rows"});
  c.expect_only_outputs({"run"});
  const at::Tensor rows = c.tensor("in/rows");
  std::vector<int64_t> runs;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const double* row = rows[i].data_ptr<double>();
    runs.push_back(should_selective_backprop(row[0], static_cast<int64_t>(row[1]), row[2], row[3],
                                             static_cast<int64_t>(row[4])));
  }
  c.expect_close(at::tensor(runs), "out/run");
}

// The net of a case; keeps what it was given and gave.
struct SelectionNet {
  explicit SelectionNet(const GoldenCase& c)
      : means(known<bool>({{"Flatten -> Linear", false}, {"mean(H,W) -> Linear", true}}, c.text("arch"),
                          "arch")),
        weight(c.tensor("in/weights/1.weight")),
        bias(c.tensor("in/weights/1.bias")) {}

  at::Tensor forward(const at::Tensor& input) {
    seen = input;
    return at::linear(means ? input.mean({2, 3}) : input.flatten(1), weight, bias);
  }
  at::Tensor losses_of(const at::Tensor& outputs, const at::Tensor& target) {
    return losses = soft_cross_entropy(outputs, target, {.reduction = LossReduction::kNone});
  }

  bool means;
  at::Tensor weight, bias, seen, losses;
};

std::vector<int64_t> picks_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<int64_t>(), tensor.data_ptr<int64_t>() + tensor.numel()};
}

void expect_parts(const GoldenCase& c, const SelectionNet& net) {
  c.expect_close(net.seen, "out/scaled_input");
  c.expect_close(net.losses, "out/losses");
  c.expect_close(net.losses.argsort(), "out/sorted_idx");
  c.expect_close(at::tensor(selection_probabilities(net.losses.size(0), c.number("keep")), at::kDouble),
                 "out/probs");
  ScriptedDraws draws({.choose = {picks_of(c.tensor("in/picks"))}});
  c.expect_close(choose_by_loss(net.losses, c.number("keep"), draws), "out/selected");
}

void expect_selection(const GoldenCase& c) {
  c.expect_only({"arch", "keep", "scale_factor"}, {"input", "target", "picks", "weights"});
  c.expect_only_outputs({"input", "target", "scaled_input", "losses", "sorted_idx", "probs", "selected"});
  EXPECT_EQ(c.names("in/weights"), (std::vector<std::string>{"1.bias", "1.weight"})) << c.title();
  SelectionNet net(c);
  ScriptedDraws draws({.choose = {picks_of(c.tensor("in/picks"))}});
  const auto [input, target] = select_using_loss(
      c.tensor("in/input"), c.tensor("in/target"), [&](const at::Tensor& x) { return net.forward(x); },
      [&](const at::Tensor& outputs, const at::Tensor& y) { return net.losses_of(outputs, y); }, draws,
      c.number("keep"), c.number("scale_factor"));
  c.expect_close(input, "out/input");
  c.expect_close(target, "out/target");
  draws.expect_all_used();
  expect_parts(c, net);
}

class GoldenSelectiveBackprop : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSelectiveBackprop, SelectsAsComposerDoes) {
  const GoldenCase c(golden_path(kSelectionFile), GetParam());
  if (c.holds("in/rows"))
    expect_decisions(c);
  else
    expect_selection(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenSelectiveBackprop,
                         testing::ValuesIn(golden_cases(golden_path(kSelectionFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenSelectiveBackprop);

}  // namespace
}  // namespace tutti
