// Times the functions of algorithms. Reads requests from the standard input, one a line, in four parts
// divided by tabs: a function, an option of the function, the shape of its input, and a model for functions
// that need one, which is a known name or layers divided by ">". Answers with nanoseconds a call, of
// processor time, and the sum of the absolute results of the first call. bench/algorithms.py asks this
// program and Composer the same.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <time.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/augmentation/colout.h"
#include "algorithms/augmentation/cutmix.h"
#include "algorithms/augmentation/cutout.h"
#include "algorithms/augmentation/mixup.h"
#include "algorithms/augmentation/progressive_resizing.h"
#include "algorithms/loop/ema.h"
#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/loop/label_smoothing.h"
#include "algorithms/loop/selective_backprop.h"
#include "algorithms/loop/seq_length_warmup.h"
#include "algorithms/surgery/alibi.h"
#include "algorithms/surgery/blurpool.h"
#include "algorithms/surgery/channels_last.h"
#include "algorithms/surgery/factorize.h"
#include "algorithms/surgery/gated_linear_units.h"
#include "algorithms/surgery/ghost_batchnorm.h"
#include "algorithms/surgery/gyro_dropout.h"
#include "algorithms/surgery/low_precision_norms.h"
#include "algorithms/surgery/squeeze_excite.h"
#include "algorithms/surgery/stochastic_depth.h"
#include "algorithms/surgery/weight_standardization.h"
#include "data/transforms/augmentations/augmix.h"
#include "data/transforms/augmentations/randaugment.h"
#include "models/layers/blocks.h"
#include "models/layers/statistics_rows.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_text.h"
#include "models/zoo/resnet.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

constexpr int64_t kLeastNs = 20'000'000;
constexpr int64_t kTokens = 256, kClasses = 10;

struct Request {
  std::string function, option;
  Shape shape;
  std::string model;
};

// Does the work once; the results are those of Composer's function.
using Work = std::function<std::vector<at::Tensor>()>;

// Whole numbers below `limit`; peer_algorithms.py makes the same.
at::Tensor whole_numbers(const Shape& shape, int64_t limit) {
  return at::arange(c10::multiply_integers(shape), at::kLong).mul_(7919).remainder_(limit).view(shape);
}

// Numbers from 0 to 1, not included.
at::Tensor numbers(const Shape& shape) { return whole_numbers(shape, 1009).to(at::kFloat).div_(1009); }

at::Tensor labels(const Shape& shape) { return whole_numbers({shape[0]}, kClasses); }

std::shared_ptr<Layer> model_of(const std::string& text) {
  if (text == "gpt")
    return std::make_shared<Gpt>(
        GptOptions{.vocab_size = kTokens, .n_positions = 128, .n_embd = 64, .n_layer = 2});
  if (text == "bert")
    return std::make_shared<BertForMaskedLm>(BertOptions{.vocab_size = kTokens,
                                                         .hidden_size = 64,
                                                         .num_hidden_layers = 2,
                                                         .num_attention_heads = 4,
                                                         .intermediate_size = 256,
                                                         .hidden_dropout_prob = 0,
                                                         .attention_probs_dropout_prob = 0,
                                                         .max_position_embeddings = 128});
  if (text == "resnet50")
    return std::make_shared<ResNet>(ResNetOptions{.depth = 50, .num_classes = kClasses});
  std::vector<std::shared_ptr<Layer>> layers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '>');) layers.push_back(make_layer(part));
  return std::make_shared<Sequential>(layers);
}

TensorTree input_of(const Request& request) {
  if (request.model == "gpt" || request.model == "bert")
    return TensorTree::Children{{"input", whole_numbers(request.shape, kTokens)}};
  if (request.model == "resnet50") return TensorTree::Children{{"input", numbers(request.shape)}};
  return numbers(request.shape);
}

// The trained weights, with values that depend on their shapes alone.
std::vector<at::Tensor> filled_weights(Layer& model) {
  const at::NoGradGuard no_grad;
  materialise(model, 1);
  std::vector<at::Tensor> weights;
  for (const auto& [name, parameter] : parameters(model)) {
    if (!parameter->trained) continue;
    const double fan_in = static_cast<double>(parameter->tensor.numel() / parameter->tensor.size(0));
    const at::Tensor values = numbers(parameter->tensor.sizes().vec());
    parameter->tensor.copy_(parameter->tensor.dim() > 1 ? (values - 0.5) / std::sqrt(fan_in) : values);
    weights.push_back(parameter->tensor);
  }
  return weights;
}

using Surgery = std::function<void(Layer& model, const std::string& option)>;

// The functions that change a model, by Composer's names.
const std::map<std::string, Surgery>& surgery() {
  const static Precision mixed{.name = "amp_bf16", .autocast = at::kBFloat16};
  static const std::map<std::string, Surgery> functions = {
      {"no surgery", [](Layer&, auto&) {}},
      {"apply_alibi", [](Layer& model, auto&) { apply_alibi(model, 128); }},
      {"apply_blurpool", [](Layer& model, auto&) { apply_blurpool(model); }},
      {"apply_channels_last", [](Layer& model, auto&) { apply_channels_last(model); }},
      {"apply_factorization", [](Layer& model, auto&) { apply_factorization(model, {.min_channels = 128}); }},
      {"apply_gated_linear_units", [](Layer& model, auto&) { apply_gated_linear_units(model); }},
      {"apply_ghost_batchnorm", [](Layer& model, auto&) { apply_ghost_batchnorm(model, 8); }},
      {"apply_gyro_dropout", [](Layer& model, auto&) { apply_gyro_dropout(model, 1000, 1); }},
      {"apply_low_precision_groupnorm",
       [](Layer& model, auto&) { apply_low_precision_groupnorm(model, mixed); }},
      {"apply_low_precision_layernorm",
       [](Layer& model, auto&) { apply_low_precision_layernorm(model, mixed); }},
      {"apply_squeeze_excite", [](Layer& model, auto&) { apply_squeeze_excite(model); }},
      {"apply_stochastic_depth",
       [](Layer& model, const std::string& option) {
         const auto method = option == "sample" ? StochasticMethod::kSample : StochasticMethod::kBlock;
         apply_stochastic_depth(model, {.stochastic_method = method});
       }},
      {"apply_weight_standardization", [](Layer& model, auto&) { apply_weight_standardization(model); }},
  };
  return functions;
}

// Forward, backward and running statistics of a model after surgery.
Work pass_of(const Request& request) {
  const auto model = model_of(request.model);
  surgery().at(request.function)(*model, request.option);
  const auto weights = filled_weights(*model);
  const auto found = std::make_shared<std::vector<RunningStatistics>>();
  const auto context = std::make_shared<ForwardContext>(ForwardContext{.statistics = found.get()});
  set_context(*model, context.get());
  const bool is_mixed = request.option == "amp_bf16";
  const auto forward = [=, input = input_of(request)] {
    const AutocastScope autocast(is_mixed ? std::optional(at::kBFloat16) : std::nullopt);
    return model->forward(input).tensor();
  };
  const at::Tensor first = forward();
  return [=, grad = numbers(first.sizes().vec()).sub_(0.5).to(first.scalar_type()), keep = context] {
    found->clear();
    const at::Tensor outputs = forward();
    auto results =
        torch::autograd::grad({outputs}, weights, {grad}, std::nullopt, false, /*allow_unused=*/true);
    for (const RunningStatistics& one : *found) apply(one);
    results.push_back(outputs);
    return results;
  };
}

Work clipping(const Request& request) {
  const std::map<std::string, std::pair<ClippingType, double>> types = {
      {"norm", {ClippingType::kNorm, 1.0}},
      {"value", {ClippingType::kValue, 0.1}},
      {"adaptive", {ClippingType::kAdaptive, 0.01}}};
  const auto [type, threshold] = types.at(request.option);
  const auto model = model_of(request.model);
  std::vector<ParamView> views;
  for (const at::Tensor& weight : filled_weights(*model)) {
    views.push_back(whole_view("", weight));
    views.back().grad = numbers(weight.sizes().vec()) - 0.5;
  }
  return [=] {
    apply_gradient_clipping(views, type, threshold);
    std::vector<at::Tensor> gradients;
    for (const ParamView& view : views) gradients.push_back(view.grad);
    return gradients;
  };
}

Work averaging(const Request& request) {
  const auto model = model_of(request.model);
  auto weights = filled_weights(*model);
  for (const auto& [name, buffer] : buffers(*model)) weights.push_back(buffer->tensor);
  std::vector<at::Tensor> averages;
  for (const at::Tensor& weight : weights) averages.push_back(at::zeros_like(weight.detach()));
  return [=] {
    compute_ema(weights, averages);
    return averages;
  };
}

Work selection(const Request& request) {
  const at::Tensor input = numbers(request.shape), target = labels(request.shape);
  const auto model = [](const at::Tensor& x) { return x.flatten(1).narrow(1, 0, kClasses); };
  const auto losses = [](const at::Tensor& y, const at::Tensor& t) {
    return at::cross_entropy_loss(y, t, {}, at::Reduction::None);
  };
  return [=] {
    const auto [hard, kept] = select_using_loss(input, target, model, losses, *random_draws());
    return std::vector<at::Tensor>{hard, kept};
  };
}

// A function of images, or of images and labels, that gives one or two tensors.
Work of_images(const Request& request, auto function) {
  return [=, x = numbers(request.shape), y = labels(request.shape)] {
    return std::vector<at::Tensor>{function(x, y)};
  };
}

Work resizing(const Request& request) {
  const auto mode = request.option == "crop" ? ResizeMode::kCrop : ResizeMode::kResize;
  return of_images(request, [mode](const at::Tensor& x, const at::Tensor& y) {
    return resize_batch(x, y, 0.5, mode, false, *random_draws()).first;
  });
}

Work smoothing(const Request& request) {
  return [logits = numbers(request.shape), target = labels(request.shape)] {
    return std::vector<at::Tensor>{smooth_labels(logits, target)};
  };
}

Work shortening(const Request& request) {
  const at::Tensor tokens = whole_numbers(request.shape, kTokens);
  const Batch batch = TensorTree::Children{{"input_ids", tokens}, {"attention_mask", at::ones_like(tokens)}};
  const SequenceLengthOptions how{.truncate = request.option != "reshape",
                                  .preserve_end_of_sequence = request.option == "preserve"};
  return [=] {
    const Batch shorter = set_batch_sequence_length(batch, batch["input_ids"].size(1) / 2, how);
    return std::vector<at::Tensor>{shorter["input_ids"], shorter["attention_mask"]};
  };
}

const std::map<std::string, Work (*)(const Request&)>& functions() {
  static const std::map<std::string, Work (*)(const Request&)> all = {
      {"colout_batch",
       [](const Request& request) {
         return of_images(request, [](auto& x, auto&) { return colout_batch(x, *random_draws()); });
       }},
      {"cutmix_batch",
       [](const Request& request) {
         return of_images(request,
                          [](auto& x, auto& y) { return cutmix_batch(x, y, *random_draws()).input; });
       }},
      {"cutout_batch",
       [](const Request& request) {
         return of_images(request, [](auto& x, auto&) { return cutout_batch(x, *random_draws()); });
       }},
      {"mixup_batch",
       [](const Request& request) {
         return of_images(request, [](auto& x, auto& y) { return mixup_batch(x, y, *random_draws()).input; });
       }},
      {"randaugment_image",
       [](const Request& request) -> Work {
         return [image = whole_numbers(request.shape, 256).to(at::kByte)] {
           return std::vector<at::Tensor>{randaugment_image(image, {}, *random_draws())};
         };
       }},
      {"augmix_image",
       [](const Request& request) -> Work {
         return [image = whole_numbers(request.shape, 256).to(at::kByte)] {
           return std::vector<at::Tensor>{augmix_image(image, {}, *random_draws())};
         };
       }},
      {"resize_batch", resizing},
      {"smooth_labels", smoothing},
      {"set_batch_sequence_length", shortening},
      {"select_using_loss", selection},
      {"apply_gradient_clipping", clipping},
      {"compute_ema", averaging},
  };
  return all;
}

int64_t thread_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// A work with the number of repeats that take long enough.
struct Case {
  Work work;
  double sum = 0;  // of the first call
  int64_t repeats = 1;

  explicit Case(Work made) : work(std::move(made)) {
    for (const at::Tensor& result : work())
      if (result.defined()) sum += result.detach().to(at::kDouble).abs().sum().item<double>();
  }

  double nanoseconds() {
    for (;; repeats *= 2) {
      const int64_t begin = thread_ns();
      for (int64_t i = 0; i < repeats; ++i) work();
      const int64_t taken = thread_ns() - begin;
      if (taken >= kLeastNs) return static_cast<double>(taken) / static_cast<double>(repeats);
    }
  }
};

Request read_request(const std::string& line) {
  std::istringstream parts(line);
  Request request;
  std::string shape;
  std::getline(parts, request.function, '\t');
  std::getline(parts, request.option, '\t');
  std::getline(parts, shape, '\t');
  std::getline(parts, request.model, '\t');
  std::istringstream sizes(shape);
  for (std::string size; std::getline(sizes, size, 'x');) request.shape.push_back(std::stoll(size));
  return request;
}

Case make_case(const Request& request) {
  const auto found = functions().find(request.function);
  return Case(found == functions().end() ? pass_of(request) : found->second(request));
}

void answer_requests() {
  std::map<std::string, Case> cases;
  for (std::string line; std::getline(std::cin, line);) {
    auto found = cases.find(line);
    if (found == cases.end()) found = cases.emplace(line, make_case(read_request(line))).first;
    std::cout << found->second.nanoseconds() << ' ' << found->second.sum << std::endl;
  }
}

}  // namespace
}  // namespace tutti

int main() {
  at::set_num_threads(1);
  std::cout.precision(12);
  tutti::answer_requests();
}
