#include "training/optimizers/muon.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sqrt.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

// Embeddings and heads, by the names that models give them.
const std::vector<std::string> kNoMatrices = {"*embed*", "*wte*",        "*wpe*",
                                              "*head*",  "*classifier*", "fc.weight"};

using IsMatrix = std::function<bool(const ParamView&)>;

IsMatrix matrices_of(const MuonOptions& options) {
  return [others = options.adamw_match.value_or(kNoMatrices)](const ParamView& view) {
    return view.shape.size() >= 2 && !matches_any(others, view.name);
  };
}

at::Tensor room_for(const at::Tensor& scratch, at::IntArrayRef sizes) {
  return scratch.narrow(0, 0, c10::multiply_integers(sizes)).view(sizes);
}

OptimizerCommon with_adamw(OptimizerCommon common, const MuonOptions& options) {
  common.own = [options,
                is_matrix = matrices_of(options)](const ParamView& view) -> std::optional<ParameterGroup> {
    if (is_matrix(view)) return std::nullopt;
    return ParameterGroup{{}, options.adamw_lr, options.adamw_weight_decay};
  };
  return common;
}

}  // namespace

Optimizer::SizesOf Muon::matrix_sizes(const MuonOptions& options, bool only_matrices) {
  return [is_matrix = matrices_of(options), only_matrices](const ParamView& view) {
    return is_matrix(view) == only_matrices ? std::optional(StateSizes()) : std::nullopt;
  };
}

Muon::Muon(const std::vector<ParamView>& views, Common common, const MuonOptions& options)
    : PartwiseOptimizer(views, with_adamw(std::move(common), options)),
      options_(options),
      momentum_(add_state("momentum_buffer", 0.0, matrix_sizes(options, true))),
      exp_avg_(add_state("exp_avg", 0.0, matrix_sizes(options, false))),
      exp_avg_sq_(add_state("exp_avg_sq", 0.0, matrix_sizes(options, false))) {
  Muon::views_changed();
}

void Muon::views_changed() {
  at::TensorOptions options;
  int64_t largest = 0, matrix = 0, shorter = 0;
  bool narrow = false;
  for (size_t i = 0; i < view_count(); ++i) {
    const ParamView& piece = view(i);
    options = piece.tensor.options().requires_grad(false);
    if (piece.offloaded_from) options = options.device(*piece.offloaded_from);
    if (!momentum_[i].defined()) continue;
    const int64_t numbers = c10::multiply_integers(piece.shape);
    narrow = narrow || piece.tensor.scalar_type() != at::kFloat;
    largest = std::max(largest, piece.tensor.numel());
    matrix = std::max(matrix, numbers);
    if (numbers > 0) shorter = std::max(shorter, std::min(piece.shape[0], numbers / piece.shape[0]));
  }
  const auto room = [&](int64_t numbers, at::ScalarType dtype) {
    return at::empty({numbers}, options.dtype(dtype));
  };
  own_ = room(largest, at::kFloat);
  weight_ = room(narrow ? largest : 0, at::kFloat);
  whole_ = at::empty({sum_over_shards() ? matrix : 0}, at::kDouble);
  matrix_ = room(matrix, at::kBFloat16);
  const at::ScalarType product = options.device().is_cpu() ? at::kFloat : at::kBFloat16;
  for (at::Tensor& iterate : iterate_) iterate = room(matrix, product);
  for (at::Tensor& gram : gram_) gram = room(shorter * shorter, product);
  norm_ = at::empty({}, options.dtype(product));
  add_scratch(1, /*by_rows=*/false, /*states=*/2);
}

// AdamW.
void Muon::update_part(const InParts::Part& part, const Call& call, size_t view) {
  at::Tensor weight = part.lists[0], exp_avg = part.lists[2], exp_avg_sq = part.lists[3];
  at::Tensor root = part.scratch[0];
  const at::Tensor& grad = part.lists[1];
  const double lr = lr_of(call), beta1 = options_.adamw_betas[0], beta2 = options_.adamw_betas[1];
  const auto done = static_cast<double>(steps(view));
  if (call.weight_decay != 0.0) weight.mul_(1.0 - lr * call.weight_decay);
  exp_avg.lerp_(grad, 1.0 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1.0 - beta2);
  at::sqrt_out(root, exp_avg_sq).div_(std::sqrt(1.0 - std::pow(beta2, done))).add_(options_.adamw_eps);
  weight.addcdiv_(exp_avg, root, -lr / (1.0 - std::pow(beta1, done)));
}

void Muon::update(Call call, const at::Tensor& grad_scale) {
  Call others{call.weight_decay, {}, {}, {}, {}, call.lr_scale};
  for (size_t i = 0; i < call.members.size(); ++i) {
    const bool is_matrix = momentum_[call.members[i]].defined();
    Call matrix_call{call.weight_decay, {}, {}, {}, {}, call.lr_scale};
    Call& part = is_matrix ? matrix_call : others;
    part.members.push_back(call.members[i]);
    part.tensors.push_back(call.tensors[i]);
    part.grads.push_back(call.grads[i]);
    if (is_matrix) update_matrix(matrix_call, grad_scale);
  }
  if (others.members.empty()) return;
  run(others, {&exp_avg_, &exp_avg_sq_}, [&](const InParts::Part& part) {
    divide(part.lists[1], grad_scale);
    update_part(part, others, others.members[part.place]);
  });
}

void Muon::update_matrix(const Call& call, const at::Tensor& grad_scale) {
  const ParamView& matrix = view(call.members[0]);
  const at::Tensor& tensor = call.tensors[0];
  run(call, {&momentum_}, [&](const InParts::Part& part) {
    divide(part.lists[1], grad_scale);
    at::Tensor momentum = part.lists[2], step = part.scratch[0];
    momentum.lerp_(part.lists[1], 1.0 - options_.momentum);
    if (options_.nesterov)
      at::lerp_out(step, part.lists[1], momentum, options_.momentum);
    else
      step.copy_(momentum);
    own_.narrow(0, part.begin, part.count).copy_(step);
  });
  const at::Tensor own = own_.as_strided(tensor.sizes(), tensor.strides());
  gather(matrix, own);
  const int64_t numbers = c10::multiply_integers(matrix.shape);
  if (numbers == 0) return;
  if (matrix.region.extent[0] == 0) TUTTI_PROBE("muon: a rank has no row of a matrix");
  const int64_t rows = matrix.shape[0], columns = numbers / rows;
  orthogonalise(rows, columns);
  own.copy_(narrowed(room_for(matrix_, matrix.shape), matrix.region));
  const auto ratio = static_cast<double>(rows) / static_cast<double>(columns);
  const double adjusted = options_.adjust_lr_fn == MuonOptions::AdjustLr::kOriginal
                              ? std::sqrt(std::max(1.0, ratio))
                              : 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
  const bool narrow = tensor.scalar_type() != at::kFloat;
  at::Tensor weight = narrow ? weight_.as_strided(tensor.sizes(), tensor.strides()).copy_(tensor) : tensor;
  weight.mul_(1.0 - lr_of(call) * call.weight_decay).sub_(at::Tensor(own).mul_(lr_of(call) * adjusted));
  if (narrow) at::Tensor(tensor).copy_(weight);
}

// All rows, in matrix_. A rank may have all of them where others have none.
void Muon::gather(const ParamView& view, const at::Tensor& own) {
  const at::Tensor to = room_for(matrix_, view.shape);
  if (!sum_over_shards()) {
    to.copy_(own);
    return;
  }
  const at::Tensor all = room_for(whole_, view.shape).zero_();
  narrowed(all, view.region).copy_(own);
  sum_over_shards()(all.view({-1}));
  to.copy_(all);
}

// As torch's _zeropower_via_newtonschulz, in matrix_, which is scratch between. ATen's products in bfloat16
// would take memory on CPUs.
void Muon::orthogonalise(int64_t rows, int64_t columns) {
  const at::Tensor given = room_for(matrix_, {rows, columns});
  const at::Tensor matrix = rows > columns ? given.t() : given;
  at::Tensor now = room_for(iterate_[0], matrix.sizes()), next = room_for(iterate_[1], matrix.sizes());
  const int64_t shorter = now.size(0);
  at::Tensor gram = room_for(gram_[0], {shorter, shorter}), square = room_for(gram_[1], {shorter, shorter});
  now.copy_(matrix);
  at::linalg_vector_norm_out(norm_, now, 2);
  round(norm_);
  round(now.div_(norm_.clamp_min_(options_.eps)));
  const std::vector<double>& c = options_.ns_coefficients;
  for (int64_t step = 0; step < options_.ns_steps; ++step) {
    round(at::mm_out(gram, now, now.t()));
    round(at::addmm_out(square, gram, gram, gram, c[1], c[2]));
    round(at::addmm_out(next, now, square, now, c[0], 1.0));
    std::swap(now, next);
  }
  at::Tensor(matrix).copy_(now);
}

// To bfloat16.
void Muon::round(const at::Tensor& product) {
  if (product.scalar_type() == at::kBFloat16) return;
  at::Tensor(product).copy_(room_for(matrix_, product.sizes()).copy_(product));
}

OptimizerPtr MuonOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  if (adamw_betas.size() != 2) section.at("adamw_betas").fail("expected two numbers");
  if (ns_coefficients.size() != 3) section.at("ns_coefficients").fail("expected three numbers");
  if (adamw_match) require_matches(section.at("adamw_match"), views);
  return std::make_unique<Muon>(views, common_of(section), *this);
}

}  // namespace tutti
