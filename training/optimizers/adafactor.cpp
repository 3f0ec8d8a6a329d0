#include "training/optimizers/adafactor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

bool is_factored(const ParamView& view) { return view.shape.size() > 1; }
// Its columns go through all ranks.
bool is_matrix(const ParamView& view) { return view.shape.size() == 2; }

at::Tensor shaped(const at::Tensor& scratch, at::IntArrayRef sizes) {
  return scratch.narrow(0, 0, c10::multiply_integers(sizes)).view(sizes);
}

// As the other in memory too.
at::Tensor like(const at::Tensor& scratch, const at::Tensor& other) {
  return scratch.as_strided(other.sizes(), other.strides());
}

double machine_epsilon(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kBFloat16:
      return 0.0078125;
    case at::kHalf:
      return 0.0009765625;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace

Adafactor::Adafactor(const std::vector<ParamView>& views, Common common, const AdafactorOptions& options)
    : Optimizer(views, std::move(common)),
      options_(options),
      row_var_(add_state("row_var", 0.0, without_dimension(1))),
      col_var_(add_state("col_var", 0.0, without_dimension(2))),
      variance_(add_state("variance", 0.0, vector_sizes())) {
  Adafactor::views_changed();
}

Optimizer::SizesOf Adafactor::without_dimension(int64_t from_end) {
  return [from_end](const ParamView& view) -> std::optional<StateSizes> {
    if (!is_factored(view)) return std::nullopt;
    return StateSizes{std::ssize(view.shape) - from_end};
  };
}

Optimizer::SizesOf Adafactor::vector_sizes() {
  return [](const ParamView& view) -> std::optional<StateSizes> {
    if (is_factored(view)) return std::nullopt;
    return StateSizes();
  };
}

void Adafactor::views_changed() {
  at::TensorOptions options;
  int64_t largest = 0, largest_state = 1, sums = 0;
  bool narrow = false;
  for (size_t i = 0; i < view_count(); ++i) {
    const ParamView& matrix = view(i);
    options = matrix.tensor.options().requires_grad(false);
    if (matrix.offloaded_from) options = options.device(*matrix.offloaded_from);
    if (matrix.tensor.scalar_type() == at::kDouble) dtype_ = at::kDouble;
    narrow = narrow || matrix.tensor.element_size() < 4;
    largest = std::max(largest, matrix.tensor.numel());
    for (const StateTensors* state : {&row_var_, &col_var_, &variance_})
      if ((*state)[i].defined()) largest_state = std::max(largest_state, (*state)[i].numel());
    if (is_matrix(matrix)) sums += matrix.shape[1] + 1;
  }
  const auto room = [&](int64_t numbers, at::ScalarType dtype) {
    return at::empty({numbers}, options.dtype(dtype));
  };
  update_ = room(largest, dtype_);
  grad_ = room(narrow ? largest : 0, dtype_);
  weight_ = room(narrow ? largest : 0, dtype_);
  squares_ = room(largest, at::kDouble);
  blend_ = room(largest_state, at::kDouble);
  sums_of_one_ = room(largest_state, at::kDouble);
  for (at::Tensor& few : few_) few = room(largest_state, dtype_);
  sums_ = at::empty({sums}, at::kDouble);
  weights_ = std::make_unique<SquareSums>(view_count());
  updates_ = std::make_unique<SquareSums>(view_count());
}

at::Tensor Adafactor::wide(const at::Tensor& tensor, const at::Tensor& scratch) const {
  return tensor.element_size() < 4 ? like(scratch, tensor).copy_(tensor) : tensor;
}

// running = (1 - share) * running + share * newest, in float64; `newest` is overwritten.
void Adafactor::blend(at::Tensor& running, const at::Tensor& newest, double share) {
  at::Tensor now = like(blend_, running).copy_(running);
  running.copy_(now.mul_(1.0 - share).add_(at::Tensor(newest).mul_(share)));
}

// Calls `work` for each member with its place; returns the size of all Member::summed.
template <class Work>
int64_t Adafactor::for_members(const Call& call, const Work& work) {
  int64_t first_sum = 0;
  for (size_t place = 0; place < call.members.size(); ++place) {
    const size_t index = call.members[place];
    const int64_t sums = is_matrix(view(index)) ? view(index).shape[1] + 1 : 0;
    work(place, Member{index, wide(call.tensors[place], weight_), wide(call.grads[place], grad_),
                       std::pow(static_cast<double>(steps(index)), options_.beta2_decay),
                       sums_.narrow(0, first_sum, sums)});
    first_sum += sums;
  }
  return first_sum;
}

void Adafactor::follow_gradient(const Member& member) {
  const at::Tensor& grad = member.grad;
  at::Tensor squares = like(squares_, grad).copy_(grad);
  squares.mul_(squares);
  if (!is_factored(view(member.index))) return blend(variance_[member.index], squares, member.newest);
  at::Tensor &row_var = row_var_[member.index], &col_var = col_var_[member.index];
  at::Tensor rows = shaped(sums_of_one_, row_var.sizes());
  if (grad.numel() > 0) {
    at::sum_out(rows, squares, {-1}, /*keepdim=*/true).div_(grad.size(-1));
    blend(row_var, rows, member.newest);
  }
  if (is_matrix(view(member.index))) {
    at::Tensor sum = shaped(sums_of_one_, {});
    rows = like(blend_, row_var).copy_(row_var);
    at::Tensor(member.summed)
        .narrow(0, grad.size(1), 1)
        .copy_(at::sum_out(sum, rows, at::IntArrayRef({0, 1})));
  }
  at::Tensor columns = shaped(sums_of_one_, col_var.sizes());
  at::sum_out(columns, squares, {-2}, /*keepdim=*/true);
  if (is_matrix(view(member.index)))
    member.summed.narrow(0, 0, grad.size(1)).copy_(columns.view({-1}));
  else if (grad.numel() > 0)
    blend(col_var, columns.div_(grad.size(-2)), member.newest);
}

// Of a matrix, whose columns are summed.
void Adafactor::follow_columns(const Member& member) {
  const ParamView& matrix = view(member.index);
  at::Tensor& col_var = col_var_[member.index];
  at::Tensor columns = shaped(sums_of_one_, col_var.sizes());
  columns.view({-1}).copy_(member.summed.narrow(0, 0, matrix.shape[1]));
  blend(col_var, columns.div_(matrix.shape[0]), member.newest);
}

at::Tensor Adafactor::update_of(const Member& member) {
  const ParamView& matrix = view(member.index);
  const double eps = options_.eps1.value_or(machine_epsilon(matrix.tensor.scalar_type()));
  at::Tensor update = like(update_, member.weight);
  if (!is_factored(matrix)) {
    update.copy_(variance_[member.index]);
  } else if (update.numel() > 0) {
    const at::Tensor rows = wide(row_var_[member.index], few_[0]);
    at::mul_out(update, rows, wide(col_var_[member.index], few_[1]));
    if (is_matrix(matrix)) {
      const double sum = member.summed[matrix.shape[1]].item<double>();
      update.div_(std::max(eps, sum / static_cast<double>(matrix.shape[0])));
    } else {
      Shape sizes = rows.sizes().vec();
      sizes[sizes.size() - 2] = 1;
      at::Tensor means = shaped(few_[2], sizes);
      update.div_(at::mean_out(means, rows, {-2}, /*keepdim=*/true).clamp_min_(eps));
    }
  }
  return update.clamp_min_(eps * eps).rsqrt_().mul_(member.grad);
}

void Adafactor::apply(const Call& call, size_t place, const Member& member, at::Tensor update) {
  const double root = std::sqrt(static_cast<double>(c10::multiply_integers(view(member.index).shape)));
  const double lr = lr_of(call);
  const double rate = std::min(lr, 1.0 / std::sqrt(static_cast<double>(steps(member.index))));
  const double scale = rate * std::max(options_.eps2, std::sqrt(weights_->value(place)) / root);
  const double clip = std::max(1.0, std::sqrt(updates_->value(place)) / (root * options_.d));
  if (clip > 1.0) TUTTI_PROBE("adafactor: an update is clipped");
  at::Tensor weight = member.weight;
  if (call.weight_decay != 0.0) weight.mul_(1.0 - lr * call.weight_decay);
  weight.sub_(update.mul_((options_.maximize ? -scale : scale) / clip));
  if (!weight.is_same(call.tensors[place])) at::Tensor(call.tensors[place]).copy_(weight);
}

void Adafactor::update(Call call, const at::Tensor& grad_scale) {
  const SumOverRanks& ranks = sum_over_shards();
  if (grad_scale.defined())
    for (at::Tensor& grad : call.grads) grad.div_(grad_scale);
  weights_->clear(call.members.size());
  updates_->clear(call.members.size());
  const int64_t sums = for_members(call, [&](size_t place, const Member& member) {
    weights_->add(place, square_sum(view(member.index).part_of_sum(member.weight)));
    follow_gradient(member);
  });
  if (ranks && sums > 0) ranks(sums_.narrow(0, 0, sums));
  weights_->sum_over(ranks);
  for_members(call, [&](size_t place, const Member& member) {
    if (is_matrix(view(member.index))) follow_columns(member);
    const at::Tensor update = update_of(member);
    updates_->add(place, square_sum(view(member.index).part_of_sum(update)));
    if (!ranks) apply(call, place, member, update);
  });
  if (!ranks) return;
  updates_->sum_over(ranks);
  for_members(call,
              [&](size_t place, const Member& member) { apply(call, place, member, update_of(member)); });
}

OptimizerPtr AdafactorOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return std::make_unique<Adafactor>(views, common_of(section), *this);
}

}  // namespace tutti
