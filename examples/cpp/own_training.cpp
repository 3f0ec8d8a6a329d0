// A plugin with losses, a metric, a transform, an optimizer and a schedule; used by own_training.toml.
#include <ATen/ATen.h>
#include <tutti/job/plugin.h>
#include <tutti/models/losses.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace tutti;

// By how much each score [N, C] is above the best of the others.
at::Tensor margins(const at::Tensor& scores) {
  const at::Tensor best = std::get<0>(scores.topk(2, 1));
  const at::Tensor first = best.narrow(1, 0, 1), second = best.narrow(1, 1, 1);
  return scores - at::where(scores == first, second, first);
}

// Nothing where the target's score is `margin` above all others, else Huber's loss of what lacks: squared up
// to `delta`, then linear.
struct MarginLoss final : Loss {
  MarginLoss(double margin, double delta) : margin(margin), delta(delta) {}
  LossTargets targets() const override { return LossTargets::kClasses; }
  at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const override {
    return of_samples(outputs, target).mean();
  }
  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const override {
    const at::Tensor lacking = at::relu(margin - margins(outputs));
    const at::Tensor losses = at::huber_loss(lacking, at::zeros_like(lacking), at::Reduction::None, delta);
    return (losses * dense_target(outputs, target)).sum(1);
  }

  double margin, delta;
};

// Pulls outputs [N, C] of one class together, and those of other classes apart, among the samples of all
// ranks: Khosla et al. 2020, arXiv:2004.11362, equation 2.
struct ContrastiveLoss final : Loss {
  explicit ContrastiveLoss(double temperature) : temperature(temperature) {}
  LossTargets targets() const override { return LossTargets::kClasses; }
  bool uses_all_ranks() const override { return true; }
  at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const override {
    return of_samples(outputs, target).mean();
  }
  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const override {
    const at::Tensor mine = outputs / outputs.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-6);
    const at::Tensor classes = dense_target(outputs, target);
    const RowsOfAll all = rows_of_all(ranks(), mine), all_classes = rows_of_all(ranks(), classes);
    const at::Tensor places = at::arange(all.rows.size(0), target.options().dtype(at::kLong));
    const at::Tensor itself = places.narrow(0, all.first, mine.size(0)).unsqueeze(1) == places;
    const at::Tensor near = mine.matmul(all.rows.t()) / temperature;
    const at::Tensor others = near.masked_fill(itself, -INFINITY).logsumexp(1, /*keepdim=*/true);
    const at::Tensor alike = classes.matmul(all_classes.rows.t()).masked_fill(itself, 0);
    return ((others - near) * alike).sum(1) / alike.sum(1).clamp_min(1);
  }

  double temperature;
};

// The mean margin of the target's probability.
struct TopMargin final : Metric {
  std::string name() const override { return "TopMargin"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override {
    const at::Tensor of_targets = margins(outputs.softmax(1)) * dense_target(outputs, target);
    add(0, of_targets.sum(at::kDouble));
    sums_[1] += static_cast<double>(outputs.size(0));
  }
};

// Adds to each number of "input" one between -amount and amount.
struct Noise final : Transform {
  explicit Noise(double amount) : amount(amount) {}
  SampleSpec spec(const SampleSpec& before) const override {
    if (!at::isFloatingType(input_of(before, at::kFloat).second))
      throw TransformError("amount", "expected numbers; here 'input' is " + before.describe(kInputArray));
    return before;
  }
  void apply(Batch& batch, const RowDraws& draws) const override {
    const at::Tensor input = batch[kInputArray].clone();
    for (int64_t row = 0; row < input.size(0); ++row) {
      const at::Tensor drawn = draws(row)->uniforms(input[row].sizes().vec());
      input[row].add_(drawn.mul_(2).sub_(1), amount);
    }
    batch.set(kInputArray, input);
  }

  double amount;
};

// Chen et al. 2023, arXiv:2302.06675: steps by the sign of a mean of gradient and momentum.
class Lion final : public Optimizer {
 public:
  Lion(const std::vector<ParamView>& views, Common common, const std::vector<double>& betas)
      : Optimizer(views, std::move(common)), betas_(betas), momentum_(add_state("exp_avg")) {
    Lion::views_changed();
  }
  const char* name() const override { return "Lion"; }

 private:
  // An update takes no memory, since it cannot be undone. It scales before it adds: add_ with a factor may
  // round by the place in a tensor, and so by how [sharding] cuts.
  void views_changed() override {
    int64_t largest = 0;
    for (std::size_t i = 0; i < view_count(); ++i) largest = std::max(largest, view(i).tensor.numel());
    room_ = at::empty({largest}, view_count() ? in_update(view(0), view(0).tensor).options() : at::kFloat);
  }
  void update(Call call, const at::Tensor& grad_scale) override {
    for (std::size_t i = 0; i < call.members.size(); ++i) {
      const at::Tensor &weight = call.tensors[i], &grad = call.grads[i];
      at::Tensor& momentum = momentum_[call.members[i]];
      if (grad_scale.defined()) grad.div_(grad_scale);
      at::Tensor step = room_.narrow(0, 0, weight.numel()).as_strided(weight.sizes(), weight.strides());
      at::sub_out(step, momentum, grad).mul_(betas_[0]).add_(grad).sign_();
      weight.mul_(1 - lr() * call.weight_decay).sub_(step.mul_(lr()));
      momentum.mul_(betas_[1]).add_(grad.mul_(1 - betas_[1]));
    }
  }

  std::vector<double> betas_;
  StateTensors& momentum_;
  at::Tensor room_;
};

OptimizerPtr lion(const Setting& options, const std::vector<ParamView>& views,
                  const std::vector<std::string>& no_decay) {
  const std::vector<double> betas = options.at("betas").numbers();
  if (betas.size() != 2) options.at("betas").fail("expected two numbers");
  const Optimizer::Common common{options.at("lr").number(), options.at("weight_decay").number(), no_decay};
  return std::make_unique<Lion>(views, common, betas);
}

// A line up to 1 at t_warmup, then (1 - x)^power, where x is the part of what is left of the training.
Schedule polynomial(const Setting& options, const Horizon& horizon) {
  const ScheduleReader in(options, horizon);
  const double warmup = in.time("t_warmup").value(), whole = in.max_duration().value();
  if (in.time("t_warmup").unit() != in.max_duration().unit() || warmup >= whole)
    in.fail("t_warmup", "expected a time before the end, " + in.max_duration().text());
  return [=, power = in.number("power"), unit = in.max_duration().unit()](const Timestamp& now) {
    const double passed = now.get(unit).value();
    if (passed < warmup) return passed / warmup;
    return std::pow(std::max(0.0, 1 - (passed - warmup) / (whole - warmup)), power);
  };
}

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(Plugin& plugin) {
  using enum KeyType;
  plugin.keys.losses["margin"] = {
      Key{"margin", kNumber, "2", "of the target's score, from which on nothing is lost"}.more_than(0),
      Key{"delta", kNumber, "1", "where the loss becomes linear"}.more_than(0)};
  plugin.losses["margin"] = [](const Setting& options) {
    return std::make_shared<MarginLoss>(options.at("margin").number(), options.at("delta").number());
  };
  plugin.keys.losses["contrastive"] = {
      Key{"temperature", kNumber, "0.1", "of the likeness of two samples"}.more_than(0)};
  plugin.losses["contrastive"] = [](const Setting& options) {
    return std::make_shared<ContrastiveLoss>(options.at("temperature").number());
  };
  plugin.metrics["top_margin"] = [](const Setting&) { return std::make_unique<TopMargin>(); };
  plugin.keys.transforms["noise"] = {Key{"amount", kNumber, "", "the most that is added"}.at_least(0)};
  plugin.transforms["noise"] = [](const Setting& options, const SampleSpec&) {
    return std::make_shared<Noise>(options.at("amount").number());
  };
  plugin.keys.optimizers["lion"] = {
      Key{"lr", kNumber, "0.0001", "learning rate"}.at_least(0),
      Key{"betas", kNumbers, "[0.9, 0.99]", "of the mean that is stepped by, of the momentum"}
          .at_least(0)
          .at_most(1),
      Key{"weight_decay", kNumber, "0", "weights shrink by weight_decay * lr"}.at_least(0)};
  plugin.optimizers["lion"] = lion;
  plugin.keys.schedules["polynomial"] = {Key{"power", kNumber, "1", "1: a line"}.more_than(0),
                                         {"t_warmup", kTime, "0ba", "the end of the line upwards"}};
  plugin.schedules["polynomial"] = polynomial;
}
