#include "actors/compute/microbatches.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/random.h"
#include "tensors/autograd.h"
#include "tensors/memory/memory_attempt.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "tensors/process_state.h"

namespace tutti {

namespace {

// 16 bits have too little range and precision for a loss times its weight.
at::Tensor wide(const at::Tensor& loss) {
  return at::isReducedFloatingType(loss.scalar_type()) ? loss.to(at::kFloat) : loss;
}

constexpr const char* kNoSecondTry =
    "memory ran out; the model computes with the samples of all ranks, so the step is not tried again: ";

// Gives the model all ranks for the lifetime of this object.
class RanksScope {
 public:
  RanksScope(Model& model, AllRanks* ranks) : model_(model) { model.set_ranks(ranks); }
  ~RanksScope() { model_.set_ranks(nullptr); }
  RanksScope(const RanksScope&) = delete;

 private:
  Model& model_;
};

}  // namespace

Microbatches::Microbatches(State& state, Engine& engine, Exchange& exchange, int count, Mark mark)
    : state_(state),
      engine_(engine),
      exchange_(exchange),
      mark_(std::move(mark)),
      rows_(*state.model),
      metrics_(state) {
  if (state.model->compares_step()) rows_of_step_.emplace(state);
  context_.statistics = &found_;
  context_.source = [&state](std::string_view name, int64_t place) { return state.draws(name, place); };
  set_count(count);
}

void Microbatches::set_count(int count) {
  count_ = state_.grad_accum = count;
  if (graph_) graph_->drop();  // others come now, which need the memory
  statistics_ = statistics_size() > 0 ? at::zeros({statistics_size()}) : at::Tensor();
}

void Microbatches::begin_attempt(const Batch& batch, int64_t first_sample, const Batch& on_host) {
  batch_ = batch;
  if (!state_.device.is_cpu()) host_ = HostCopies(batch, on_host);
  first_sample_ = first_sample;
  passes_ = 0;
}

MicrobatchResult& Microbatches::run(const Closure::Move& move) {
  begin_result();
  const RanksScope ranks(*state_.model, state_.services.get());
  const int64_t held = Meter::held_by_scopes(state_.device.memory_slot);
  const bool first_pass = passes_++ == 0;
  {
    const MemoryScope scope(state_.device.memory_slot);
    try {
      MemoryScope::pass_place();
      exchange_.begin_pass();
      drop_gradients();
      begin_part(first_sample_);
      set_context(*state_.model, &context_);
      found_.clear();  // of passes outside of a step
      first_pass ? begin_batch() : begin_again(move);
      engine_.run_event(Event::kBeforeTrainBatch);
      const Batch whole = state_.batch;
      const int64_t part = state_.device_train_microbatch_size = part_size(whole.samples());
      store_statistics(0);  // of listeners' own passes
      const bool trains = !rows_of_step_ || find_rows(whole, part);
      for (int m = 0; m < count_; ++m) {
        exchange_.begin_microbatch(m, m + 1 == count_);
        if (trains) train_part(whole, m * part, part, m);
        exchange_.end_microbatch();
      }
      exchange_.end_pass();
      metrics_.add_to(numbers_);
      const auto listener_sums = static_cast<std::size_t>(engine_.reductions());
      if (first_pass) engine_.contribute(std::span(result_.verdict.sums).first(listener_sums));
    } catch (const std::exception& error) {
      if (!is_lack_of_memory(error)) throw;
      // Smaller microbatches would compare fewer samples, and other ranks wait in sums of the model.
      if (state_.model->uses_all_ranks())
        throw OperatingError(kNoSecondTry + one_line(error), EndKind::kOutOfMemoryElsewhere);
      result_.failed_allocation = failure_of(error, scope);
      if (in_backward_)
        TUTTI_PROBE("memory: ran out in a backward");
      else
        TUTTI_PROBE("memory: ran out in a forward, or in events before");
    }
  }
  found_.clear();
  clear_state();
  if (!result_.failed_allocation) return result_;
  abandon();
  Meter::give_back();  // for whoever else needs memory: libraries, other ranks
  result_.leftover_bytes = Meter::held_by_scopes(state_.device.memory_slot) - held;
  return result_;
}

void Microbatches::begin_result() {
  result_ = {};
  in_backward_ = false;
  result_.verdict.samples = static_cast<double>(batch_.samples());
  result_.verdict.tokens = static_cast<double>(state_.model->tokens(batch_));
  result_.verdict.flops = state_.model->flops_per_batch(batch_);
  if (statistics_.defined()) result_.statistics = statistics_.zero_();
  numbers_.drop();
  losses_.clear();
  metrics_.reset();
  if (rows_of_step_) rows_of_step_->begin_pass();
  result_.verdict.sums.assign(static_cast<std::size_t>(sums()), 0.0);
}

void Microbatches::begin_batch() {
  state_.batch = batch_;
  state_.kept_samples = 1.0;
  seed_events(0);
  exchange_.unshard();
  engine_.run_event(Event::kAfterDataloader);
  engine_.run_event(Event::kBatchStart);
  if (state_.batch.samples() < batch_.samples()) TUTTI_PROBE("step: events left samples out");
  if (state_.batch.samples() > batch_.samples()) TUTTI_PROBE("step: events added samples");
  batch_ = state_.batch;
  first_sample_ = state_.first_sample;  // moves where events change the number of samples
}

void Microbatches::begin_again(const Closure::Move& move) {
  {
    const at::NoGradGuard no_grad;
    move();
  }
  exchange_.unshard();
  for (auto& view : state_.views) view.grad = at::Tensor();
  state_.batch = batch_;
  seed_events(1);
}

// An exception within a microbatch leaves its tensors in the state.
void Microbatches::clear_state() {
  state_.outputs = {};
  state_.loss = at::Tensor();
  state_.loss_weight = 0;
  state_.batch = {};
}

// All passes draw the same random numbers in their microbatches, but not in events before them.
void Microbatches::seed_events(uint64_t pass) const {
  if (!engine_.listens()) return;  // saves microseconds
  const RandomKey draw = RandomKey(state_.seed, "batch").fold_in(state_.timestamp.batch);
  seed_default_generators(pass == 0 ? draw.bits() : draw.fold_in(pass).bits(), state_.device.where);
}

void Microbatches::begin_part(int64_t first_sample) {
  state_.first_sample = first_sample;
  context_.begin_pass(first_sample);
}

int64_t Microbatches::parts_of(int64_t samples) const {
  const int64_t part = std::max<int64_t>(part_size(samples), 1);
  return std::min<int64_t>(count_, (samples + part - 1) / part);
}

// Events may have added samples.
int64_t Microbatches::part_size(int64_t samples) const {
  return std::max(size_, (samples + count_ - 1) / count_);
}

void Microbatches::seed_part() const {
  const RandomKey key = RandomKey(state_.seed, "microbatch").fold_in(state_.timestamp.batch);
  seed_default_generators(key.fold_in(state_.first_sample).bits(), state_.device.where);
}

void Microbatches::abandon() {
  if (graph_) graph_->drop();
  numbers_.drop();
  losses_.clear();
  metrics_.reset();
  sweep_.run();
  for (const auto& named : state_.parameters)
    if (const at::Tensor& grad = named.parameter->tensor.grad(); grad.defined())
      result_.gradient_bytes += static_cast<int64_t>(grad.nbytes());
  if (rows_of_step_ && !rows_of_step_->gathered()) {  // other ranks wait
    exchange_.end_forwards();
    rows_of_step_->gather(/*out_of_memory=*/true);
  }
  if (passes_ > 1) TUTTI_PROBE("memory: an extra pass is abandoned");
  exchange_.abandon_pass();
  end_step();
}

void Microbatches::end_step() {
  batch_ = {};
  if (rows_of_step_) rows_of_step_->drop();
  host_ = {};
  if (!exchange_.gradients().owns_gradients()) return;
  drop_gradients();
  for (auto& view : state_.views) view.grad = at::Tensor();
}

// Backward would add to old gradients.
void Microbatches::drop_gradients() {
  for (auto& named : state_.parameters) named.parameter->tensor.mutable_grad() = at::Tensor();
}

// False if memory has run out on another rank.
bool Microbatches::find_rows(const Batch& whole, int64_t part) {
  const at::NoGradGuard no_grad;
  for (int64_t first = 0; first < whole.samples(); first += part) {
    begin_forward(whole, first, std::min(part, whole.samples() - first), static_cast<int>(first / part));
    rows_of_step_->add(state_.model->rows(state_.forward(state_.batch)), loss_weight());
    found_.clear();
  }
  exchange_.end_forwards();
  return rows_of_step_->gather(/*out_of_memory=*/false);
}

void Microbatches::begin_forward(const Batch& whole, int64_t first, int64_t size, int microbatch) {
  in_backward_ = false;
  mark_(TraceKind::kMicrobatch, microbatch);
  MemoryScope::pass_place();
  begin_part(first_sample_ + first);
  state_.batch = count_ == 1 ? whole : whole.narrow(first, size);
  seed_part();
}

void Microbatches::train_part(const Batch& whole, int64_t first, int64_t part, int microbatch) {
  const int64_t size = std::min(part, whole.samples() - first);
  if (size <= 0) {
    if (whole.samples() > 0) TUTTI_PROBE("step: a rank has fewer microbatches than others");
    return;
  }
  if (size == 1 && count_ > 1) TUTTI_PROBE("step: a microbatch of one sample");
  if (size < part && microbatch > 0) TUTTI_PROBE("step: the last microbatch is smaller");
  begin_forward(whole, first, size, microbatch);
  if (rows_of_step_) state_.batch = rows_of_step_->add_to(state_.batch, first);
  if (!launch_part(microbatch)) compute_part(microbatch);
  store_statistics(microbatch);
}

void Microbatches::compute_part(int microbatch) {
  const double weight = forward();
  if (weight == 0) return;
  begin_backward(microbatch);
  engine_.run_event(Event::kBeforeBackward);
  note_loss(weight);
  if (!engine_.listens()) state_.outputs = {};  // no listener uses them any more
  const at::Tensor root = wide(state_.loss);
  root.backward(at::full_like(root, backward_weight(weight) * state_.loss_scale));
  engine_.run_event(Event::kAfterBackward);
}

// As compute_part, by a graph. False if that cannot be.
bool Microbatches::launch_part(int microbatch) {
  if (!graph_ || graph_->refuses()) return false;
  if (const std::string who = listener(); !who.empty()) {
    graph_->wait_for(who);
    return false;
  }
  const double weight = loss_weight();
  if (weight == 0) return false;
  const auto work = [this](const PartGraph::Factor& factor) {
    state_.outputs = state_.forward(state_.batch);
    state_.loss = state_.loss_of(state_.outputs, state_.batch);
    if (!metrics_.any()) state_.outputs = {};
    const at::Tensor root = wide(state_.loss);
    root.backward(factor(root));
  };
  if (!graph_->run(backward_weight(weight) * state_.loss_scale, count_ == 1, work)) return false;
  begin_backward(microbatch);
  if (metrics_.any()) metrics_.update(state_, state_.batch, state_.outputs);
  note_loss(weight);
  return true;
}

// Who acts at an event of a microbatch: "LabelSmoothing acts at before_loss"; "": nobody.
std::string Microbatches::listener() const {
  if (!engine_.listens()) return "";
  using enum Event;
  for (const Event event :
       {kBeforeForward, kAfterForward, kBeforeLoss, kAfterLoss, kBeforeBackward, kAfterBackward}) {
    if (!engine_.acts(event)) continue;
    std::string who = "a listener";
    for (const auto& callback : engine_.callbacks())
      if (callback->acts(event)) who = callback->name();
    for (const auto& algorithm : engine_.algorithms())
      if (algorithm->match(event, state_)) who = algorithm->name();
    return who + " acts at " + name(event);
  }
  return "";
}

void Microbatches::begin_backward(int microbatch) {
  in_backward_ = true;
  mark_(TraceKind::kBackward, microbatch);
  MemoryScope::pass_place();
}

void Microbatches::note_loss(double weight) {
  Verdict& mine = result_.verdict;
  mine.loss_weight += weight;
  numbers_.add(state_.loss, [&mine, weight](std::span<const double> loss) {  // listeners may have changed it
    if (!std::isfinite(loss[0])) mine.non_finite = 1;
    mine.loss_sum += loss[0] * weight;
  });
  if (state_.device.runs_ahead())
    losses_.push_back(state_.loss.detach().to(at::kFloat, false, /*copy=*/true));
}

// Returns the weight of the loss; 0: nothing counts, and the loss, a mean over nothing, is not a number.
double Microbatches::forward() {
  double& weight = state_.loss_weight;
  weight = loss_weight();
  if (weight == 0) return 0;
  const Batch given = metrics_.any() ? state_.batch : Batch();
  engine_.run_event(Event::kBeforeForward);
  state_.outputs = state_.forward(state_.batch);
  engine_.run_event(Event::kAfterForward);
  if (metrics_.any()) metrics_.update(state_, given, state_.outputs);
  engine_.run_event(Event::kBeforeLoss);
  if (engine_.listens()) weight = loss_weight();  // algorithms may have changed targets
  if (weight == 0) return 0;
  state_.loss = state_.loss_of(state_.outputs, state_.batch);
  engine_.run_event(Event::kAfterLoss);  // may change the loss and its weight
  return weight;
}

double Microbatches::loss_weight() const {
  return loss_weight_of(state_.device.is_cpu() ? state_.batch : host_.of(state_.batch));
}

double Microbatches::loss_weight_of(const Batch& on_host) const {
  const double weight = state_.model->loss_weight(on_host);
  return state_.composer && weight > 0 ? static_cast<double>(on_host.samples()) : weight;
}

void Microbatches::store_statistics(int microbatch) {
  rows_.add(found_, result_.statistics, microbatch, numbers_);
  found_.clear();
}

void Microbatches::read_numbers() {
  numbers_.read();
  std::ranges::copy(metrics_.sums(), result_.verdict.sums.begin() + engine_.reductions());
}

void Microbatches::use_sums(std::span<const double> sums, bool with_listeners) {
  const auto listener_sums = static_cast<std::size_t>(engine_.reductions());
  metrics_.store_values(sums.subspan(listener_sums), state_);
  if (with_listeners) engine_.reduced(sums.first(listener_sums));
}

void Microbatches::apply_statistics(const at::Tensor& gathered) {
  if (state_.device.is_cpu()) return rows_.apply(gathered);
  const at::Tensor staged = staging_memory(gathered.sizes(), gathered.scalar_type(), state_.device);
  rows_.apply(staged.copy_(gathered), state_.device);
}

}  // namespace tutti
