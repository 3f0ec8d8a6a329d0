#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "models/classifier.h"
#include "models/layers/activation.h"
#include "models/layers/batch_norm2d.h"
#include "models/layers/conv2d.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "sim/local_run.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_file.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kFile = "trainer.h5";
constexpr int64_t kClasses = 10;

class Flatten final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input.tensor().flatten(1); }
  const char* kind() const override { return "Flatten"; }
};

class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(int64_t size) : size_(size) {}
  TensorTree forward(const TensorTree& input) override {
    return at::max_pool2d(input.tensor(), {size_, size_});
  }
  const char* kind() const override { return "MaxPool2d"; }

 private:
  int64_t size_;
};

// The numbers in "Conv2d(1, 8, kernel_size=(3, 3), ...)", in their order, but those in layers' names.
std::vector<int64_t> numbers_in(const std::string& text) {
  static const std::regex number(R"([=( ](\d+)(?=[,)]))");
  std::vector<int64_t> found;
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it)
    found.push_back(std::stoll((*it)[1]));
  return found;
}

std::shared_ptr<Layer> layer_of(const std::string& text) {
  const std::string kind = text.substr(0, text.find('('));
  const auto numbers = numbers_in(text);
  const bool bias = text.find("bias=False") == std::string::npos;
  if (kind == "Flatten") return std::make_shared<Flatten>();
  if (kind == "ReLU") return std::make_shared<ReLU>();
  if (kind == "AdaptiveAvgPool2d") return std::make_shared<AdaptiveAvgPool2d>();
  if (kind == "Linear") return std::make_shared<Linear>(numbers.at(0), numbers.at(1), bias);
  if (kind == "BatchNorm2d") return std::make_shared<BatchNorm2d>(numbers.at(0));
  if (kind == "MaxPool2d") return std::make_shared<MaxPool2d>(numbers.at(0));
  if (kind == "Conv2d")
    return std::make_shared<Conv2d>(
        Conv2dOptions{numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(4), numbers.at(6), 1, bias});
  throw std::logic_error("no test knows the layer '" + text + "'");
}

// What torch prints of an nn.Sequential, with the case's weights.
class PrintedNet final : public Classifier {
 public:
  explicit PrintedNet(const GoldenCase& c) {
    std::istringstream lines(c.text("arch"));
    static const std::regex item(R"(\s*\((\d+)\): (.*))");
    std::smatch match;
    for (std::string line; std::getline(lines, line);)
      if (std::regex_match(line, match, item)) add_slot(match[1], layer_of(match[2]));
    const auto fill = [&c](const std::string& name) {
      return [value = c.tensor("in/weights/" + name)](at::Tensor& tensor, at::Generator) {
        tensor.copy_(value.reshape(tensor.sizes()));
      };
    };
    for (const auto& one : parameters(*this)) one.parameter->init = fill(one.name);
    for (const auto& one : buffers(*this)) one.buffer->init = fill(one.name);
  }
  TensorTree forward(const Batch& batch) override {
    TensorTree x = batch["input"];
    for (const auto& slot : slots()) x = (*slot)(x);
    return x;
  }
  const char* kind() const override { return "PrintedNet"; }
};

class Digits final : public Dataset {
 public:
  Digits(at::Tensor x, at::Tensor y) : x_(std::move(x)), y_(std::move(y)) {}
  int64_t size() const override { return x_.size(0); }
  SampleSpec spec() const override {
    return {{{"input", x_.sizes().slice(1).vec()}, {"target", {}}}, kClasses};
  }
  Batch get(std::span<const int64_t> indices) const override {
    const at::Tensor rows = at::tensor(std::vector<int64_t>(indices.begin(), indices.end()), at::kLong);
    return TensorTree::Children{{"input", x_.index_select(0, rows)}, {"target", y_.index_select(0, rows)}};
  }
  uint64_t digest() const override { return 0; }

 private:
  at::Tensor x_, y_;
};

std::string value_text(const GoldenCase& c, const std::string& attribute) {
  const std::string key = attribute.substr(attribute.find('.') + 1);
  if (key == "milestones") {
    std::string list;
    std::istringstream in(c.text(attribute));
    for (std::string one; std::getline(in, one, ',');) list += (list.empty() ? "'" : ", '") + one + "'";
    return "[" + list + "]";
  }
  if (key.starts_with("t_") && key != "t_mult") return "'" + c.text(attribute) + "'";
  if (key == "step_size" || key == "decay_period") return "'" + c.text(attribute) + "'";
  if (key == "scale_warmup" || key == "nesterov" || key == "amsgrad")
    return c.number(attribute) != 0.0 ? "true" : "false";
  std::ostringstream number;
  number.precision(17);
  const auto numbers = c.numbers(attribute);
  if (numbers.size() > 1)
    number << "[" << numbers[0] << ", " << numbers[1] << "]";
  else
    number << numbers[0];
  return number.str();
}

std::string section_of(const GoldenCase& c, const std::string& prefix, const std::string& kind) {
  std::string text = "kind = '" + kind + "'\n";
  for (const std::string& attribute : c.attributes())
    if (attribute.starts_with(prefix) && attribute != prefix + "name" && c.has(attribute))
      text += attribute.substr(prefix.size()) + " = " + value_text(c, attribute) + "\n";
  return text;
}

std::string recipe_for(const GoldenCase& c) {
  const auto data = [&](const std::string& which, const std::string& tensor, const char* batch) {
    return "[data." + which + "]\nkind = 'synthetic'\nsamples = " + std::to_string(c.tensor(tensor).size(0)) +
           "\nshape = [1, 8, 8]\nbatch_size = " + std::to_string(static_cast<int>(c.number(batch))) + "\n";
  };
  std::string text = "seed = 1\n[compat]\ncomposer = true\n[model]\nkind = 'mlp'\n" +
                     data("train", "in/x_train", "batch_size") +
                     data("eval", "in/x_eval", "eval_batch_size") +
                     "[checkpoint]\ninterval = '0ba'\n[optimizer]\n" +
                     section_of(c, "opt.", known(optimizer_kinds(), c.text("opt.name"), "optimizer"));
  if (c.has("sched.name"))
    text += "[scheduler]\n" +
            section_of(c, "sched.", known(scheduler_kinds(), c.text("sched.name"), "scheduler"));
  text += "[train]\nmax_duration = '" + c.text("max_duration") + "'\neval_interval = '" +
          c.text("eval_interval") + "'\nscale_schedule_ratio = " + value_text(c, "scale_schedule_ratio") +
          "\n";
  if (c.has("device_train_microbatch_size"))
    text += "device_train_microbatch_size = " +
            std::to_string(static_cast<int>(c.number("device_train_microbatch_size"))) + "\n";
  return text;
}

using Weights = std::map<std::string, at::Tensor>;

Weights weights_of(Layer& model) {
  Weights weights;
  for (const auto& one : parameters(model)) weights[one.name] = one.parameter->tensor.detach().clone();
  for (const auto& one : buffers(model)) weights[one.name] = one.buffer->tensor.clone();
  return weights;
}

class FirstWeights final : public Callback {
 public:
  explicit FirstWeights(Weights& into) : into_(into) {}
  std::string name() const override { return "FirstWeights"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch == 1) into_ = weights_of(*state.model);
  }

 private:
  Weights& into_;
};

// What a run came to, by the names of "out/".
struct Trained {
  std::map<std::string, std::vector<double>> series;
  Weights first, last;
};

Trained train(const GoldenCase& c) {
  const Scratch folder;
  Trained trained;
  std::shared_ptr<Model> model;
  LocalRunOptions options;
  options.ranks = 1;
  options.quiet = true;
  options.run_dir = folder.path("run");
  options.prepare = [&](Job& job) {
    job.train = std::make_shared<Digits>(c.tensor("in/x_train"), c.tensor("in/y_train"));
    job.evaluators.at(0).data = std::make_shared<Digits>(c.tensor("in/x_eval"), c.tensor("in/y_eval"));
    job.make_model = [&](const Setting&, const SampleSpec&) {
      return model = std::make_shared<PrintedNet>(c);
    };
    job.listeners = [&](int) {
      Engine::Options listeners;
      listeners.callbacks = {std::make_shared<FirstWeights>(trained.first)};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(recipe_for(c)), options);
  trained.last = weights_of(*model);
  std::istringstream lines(read_text(folder.path("run/metrics.jsonl")));
  const std::map<std::string, std::string> names = {{"loss", "loss"},
                                                    {"lr", "lr"},
                                                    {"metrics/train/MulticlassAccuracy", "train_accuracy"},
                                                    {"metrics/eval/MulticlassAccuracy", "eval_accuracy"},
                                                    {"metrics/eval/CrossEntropy", "eval_cross_entropy"}};
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    for (const auto& [own, golden] : names)
      if (fields.contains(own)) trained.series[golden].push_back(fields[own].get<double>());
    if (fields.contains("metrics/eval/CrossEntropy"))
      trained.series["eval_batch"].push_back(fields["step"].get<double>());
  }
  return trained;
}

class GoldenTrainer : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTrainer, TrainsAsComposerDoes) {
  const GoldenCase c(golden_path(kFile), GetParam());
  if (c.number("num_algorithms") > 0) GTEST_SKIP() << "no algorithms yet";
  const Trained trained = train(c);
  for (const auto& [name, values] : trained.series)
    c.expect_close(at::tensor(values, at::kDouble), "out/" + name);
  for (const std::string& name : c.names("out/weights")) {
    c.expect_close(trained.first.at(name), "out/weights_batch1/" + name);
    c.expect_close(trained.last.at(name), "out/weights/" + name);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrainer, testing::ValuesIn(golden_cases(golden_path(kFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTrainer);

}  // namespace
}  // namespace tutti
