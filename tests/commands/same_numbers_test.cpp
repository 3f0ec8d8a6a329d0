// The numbers of a language model in training, evaluation, prediction and generation: where bits are equal,
// and bounds where shapes of products differ (docs/evaluation.md, "The same numbers everywhere").

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "commands/loaded_model.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/json/json_line.h"
#include "models/losses.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

constexpr int64_t kRows = 4, kLength = 16, kPromptLength = 9;

struct Case {
  std::string model, precision;
  double bound;  // of log-probabilities
};
void PrintTo(const Case& tried, std::ostream* out) { *out << tried.model << " in " << tried.precision; }

// The log-probability of each next token, float32 [N, T].
at::Tensor log_probabilities(const at::Tensor& scores, const at::Tensor& target) {
  return index_cross_entropy(scores.reshape({-1, scores.size(-1)}), target.reshape(-1), LossReduction::kNone)
      .neg()
      .view_as(target);
}

double farthest(const at::Tensor& first, const at::Tensor& second) {
  return (first.to(at::kDouble) - second.to(at::kDouble)).abs().max().item<double>();
}

class SameNumbers : public testing::TestWithParam<Case> {
 protected:
  SameNumbers() {
    std::ofstream text(folder_.path("text.txt"));
    for (int i = 0; i < kRows * kLength + 1; ++i) text << static_cast<char>('a' + i * i % 23);
    text.close();
    LocalRunOptions options{.ranks = 1, .run_dir = run_, .quiet = true};
    EXPECT_EQ(train_in_one_process(recipe_, options).exit_code, 0);
    job_ = single_process_job(recipe_, 1);
  }

  std::string data() const {
    return "kind = 'bytes'\npath = '" + folder_.path("text.txt") +
           "'\nsequence_length = " + std::to_string(kLength) + "\nbatch_size = " + std::to_string(kRows) +
           "\n";
  }
  std::string text() const {
    const std::string sizes =
        GetParam().model == "gpt"
            ? "n_layer = 2\nn_head = 4\nn_embd = 64\nn_positions = 64\ndropout = 0.0\n"
            : "hidden_size = 64\nintermediate_size = 160\nnum_hidden_layers = 2\nnum_attention_heads = 4\n"
              "num_key_value_heads = 2\nmax_position_embeddings = 64\nvocab_size = 256\n";
    return "seed = 5\n[model]\nkind = '" + GetParam().model + "'\n" + sizes + "[data.train]\n" + data() +
           "[data.eval]\n" + data() + "[optimizer]\nkind = 'sgd'\nlr = 0\n[train]\nmax_duration = '1ba'\n" +
           "precision = '" + GetParam().precision + "'\neval_interval = '1ba'\n";
  }
  double logged(const std::string& name) const {
    std::istringstream lines(read_text(run_ + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      for (const auto& [member, value] : json_numbers_of(line).members)
        if (member == name) return value;
    ADD_FAILURE() << name;
    return 0;
  }

  Scratch folder_;
  std::string run_ = folder_.path("run");
  const Setting recipe_ = recipe_of(text());
  std::optional<Job> job_;
};

// Equal bits in a step, an evaluation and a prediction; parts of a batch and generated tokens are near.
TEST_P(SameNumbers, AreThoseOfAStepAnEvaluationAPredictionAndAGeneration) {
  EXPECT_EQ(static_cast<float>(logged("loss")), static_cast<float>(logged("metrics/eval/loss")));
  predict_text(recipe_, {.checkpoint = run_, .out = folder_.path("out.h5")});
  const at::Tensor scores = read_weights(folder_.path("out.h5")).at("output");
  const Batch batch = job_->train->get(std::vector<int64_t>{0, 1, 2, 3}, {});
  EXPECT_NEAR(-log_probabilities(scores, batch["target"]).mean().item<double>(), logged("metrics/eval/loss"),
              1e-6);
  LoadedModel model(*job_, run_);
  model.load();
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(model.state.eval_forward(batch).tensor(), scores));
  const at::Tensor whole = log_probabilities(model.state.eval_forward(batch).tensor(), batch["target"]);
  double of_parts = 0, of_texts = 0, of_batches = 0;
  for (const int64_t rows : {1, 2, 3}) {
    const Batch part = batch.narrow(0, rows);
    of_parts = std::max(of_parts,
                        farthest(log_probabilities(model.state.eval_forward(part).tensor(), part["target"]),
                                 whole.narrow(0, 0, rows)));
  }
  at::Tensor alone;
  for (const int64_t prompts : {1, 2, 5}) {
    std::vector<Prompt> texts;
    std::vector<std::vector<double>> generated;
    for (int64_t row = 0; row < prompts; ++row) {
      const auto* begin = batch["input"].const_data_ptr<int64_t>() + row % kRows * kLength;
      texts.push_back({{begin, begin + kPromptLength + row % 3}, RandomKey(1, "text")});
    }
    GenerationOptions options{.max_new_tokens = kLength};
    options.log_probabilities = &generated;
    const auto tokens = model.state.generate(texts, options);
    for (int64_t row = 0; row < prompts; ++row) {
      const auto r = static_cast<std::size_t>(row);
      Tokens all = texts[r].tokens;
      all.insert(all.end(), tokens[r].begin(), tokens[r].end());
      const at::Tensor text = at::tensor(all).unsqueeze(0);
      const int64_t inputs = text.size(1) - 1;
      const Batch input(TensorTree::Children{{"input", text.narrow(1, 0, inputs)}});
      const at::Tensor expected =
          log_probabilities(model.state.eval_forward(input).tensor(), text.narrow(1, 1, inputs))
              .narrow(1, inputs - kLength, kLength)[0];
      const at::Tensor got = at::tensor(generated[r]);
      of_texts = std::max(of_texts, farthest(got, expected));
      if (row > 0) continue;
      if (alone.defined()) of_batches = std::max(of_batches, farthest(got, alone));
      alone = got;
    }
  }
  for (const double difference : {of_parts, of_texts, of_batches}) EXPECT_LE(difference, GetParam().bound);
}

INSTANTIATE_TEST_SUITE_P(All, SameNumbers,
                         testing::Values(Case{"gpt", "fp32", 1e-5}, Case{"llama", "fp32", 1e-5},
                                         Case{"gpt", "amp_bf16", 0.05}, Case{"llama", "amp_bf16", 0.05}),
                         [](const auto& info) { return info.param.model + "_" + info.param.precision; });

}  // namespace
}  // namespace tutti
