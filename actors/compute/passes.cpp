#include "actors/compute/passes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "data/aligned.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/random.h"
#include "tensors/memory/memory_attempt.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "tensors/process_state.h"

namespace tutti {

namespace {

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

void probe_portion(const Portion& portion, const PortionPlan& plan, const Batch& batch) {
  if (portion.samples == 0 && batch.samples() > 0)
    TUTTI_PROBE("step: a rank has fewer microbatches than others");
  if (portion.samples == 1 && plan.count > 1) TUTTI_PROBE("step: a microbatch of one sample");
  if (portion.samples > 0 && portion.samples < plan.portion_size(batch.samples()) && portion.index > 0)
    TUTTI_PROBE("step: the last microbatch is smaller");
}

void probe_grain(const Portion& grain, const RankTopology& place) {
  if (grain.samples > 0) return;
  if (place.data_rank < place.data_world)
    TUTTI_PROBE("grains: a short batch leaves a grain empty");
  else
    TUTTI_PROBE("grains: a rank computes none");
}

// An exception within a portion leaves its tensors in the state.
void clear(State& state) {
  state.outputs = {};
  state.loss = at::Tensor();
  state.loss_weight = 0;
  state.batch = {};
}

// All passes draw the same random numbers in their portions, but not in events before them.
void seed_events(const State& state, const Engine& engine, uint64_t pass) {
  if (!engine.listens()) return;  // saves microseconds
  RandomKey draw = RandomKey(state.seed, "batch").fold_in(state.timestamp.batch);
  if (state.topology.has_grains) draw = draw.fold_in(state.first_sample);
  seed_default_generators(pass == 0 ? draw.bits() : draw.fold_in(pass).bits(), state.device.where);
}

// Of a pass: the state's current part of the batch, and what listeners log there.
class PartScope {
 public:
  PartScope(State& state, Engine& engine)
      : state_(state), engine_(engine), place_(state.topology.data_rank) {}
  ~PartScope() {
    state_.topology.data_rank = place_;
    engine_.set_logging(true);
  }
  PartScope(const PartScope&) = delete;

 private:
  State& state_;
  Engine& engine_;
  const int place_;
};

// The rows of the verdict for this rank's grains.
void set_grains(Pass& pass, const RankTopology& place, const TrainMetrics& metrics) {
  const int64_t row_size = Verdict::numbers_of_grain(std::ssize(pass.verdict.sums));
  for (std::size_t i = 0; i < pass.grains.size(); ++i) {
    const int64_t grain = place.data_rank + static_cast<int64_t>(i) * place.data_stride;
    if (grain >= place.data_world) return;
    const auto& [loss_sum, loss_weight, flops, listeners] = pass.grains[i];
    const std::array numbers{loss_sum, loss_weight, flops};
    auto row = std::ranges::copy(numbers, pass.verdict.grains.begin() + grain * row_size).out;
    row = std::ranges::copy(listeners, row).out;
    std::ranges::copy(metrics.sums(i), row);
  }
}

// Backward would add to old gradients.
void drop_gradients(State& state) {
  for (auto& named : state.parameters) named.parameter->tensor.mutable_grad() = at::Tensor();
}

}  // namespace

Passes::Passes(State& state, Engine& engine, Exchange& exchange, const PortionPlan& plan, Mark mark)
    : state_(state),
      engine_(engine),
      exchange_(exchange),
      mark_(std::move(mark)),
      cut_{state.topology, state.global_batch},
      rows_(*state.model),
      metrics_(state, cut_.place.has_grains ? cut_.place.data_parts : 1),
      runner_(std::make_unique<PortionRunner>(parts())) {
  if (state.model->compares_step()) rows_of_step_.emplace(state);
  context_.statistics = &found_;
  context_.source = [&state](std::string_view name, int64_t place) { return state.draws(name, place); };
  set_plan(plan);
}

PortionRunner::Parts Passes::parts() {
  return {state_, engine_, mark_, metrics_, host_, sweep_, context_, found_};
}

void Passes::set_plan(const PortionPlan& plan) {
  cut_.plan = plan;
  state_.grad_accum = cut_.place.has_grains ? 1 : static_cast<int>(plan.count);
  runner_->drop();  // others come now, which need the memory
  statistics_ = statistics_size() > 0 ? at::zeros({statistics_size()}) : at::Tensor();
}

void Passes::begin_attempt(const Batch& batch, const std::vector<Portion>& parts, const Batch& on_host) {
  attempt_ = {};
  int64_t begin = 0;
  for (const Portion& part : parts) {
    const bool is_whole = part.samples == batch.samples();
    attempt_.parts.push_back({is_whole ? batch : batch.narrow(begin, part.samples), part.first});
    begin += part.samples;
  }
  if (!state_.device.is_cpu()) host_ = HostCopies(batch, on_host);
}

Pass& Passes::run(const Closure::Move& move) {
  begin_pass();
  const RanksScope ranks(*state_.model, state_.services.get());
  const int64_t held = Meter::held_by_scopes(state_.device.memory_slot);
  const bool first_pass = attempt_.passes++ == 0;
  {
    const MemoryScope scope(state_.device.memory_slot);
    const PartScope part(state_, engine_);
    try {
      MemoryScope::pass_place();
      train_batch(move, first_pass);
    } catch (const std::exception& error) {
      if (!is_lack_of_memory(error)) throw;
      // Smaller portions would compare fewer samples, and other ranks wait in sums of the model.
      if (state_.model->uses_all_ranks())
        throw OperatingError(kNoSecondTry + one_line(error), EndKind::kOutOfMemoryElsewhere);
      pass_->failed_allocation = failure_of(error, scope);
      if (pass_->in_backward)
        TUTTI_PROBE("memory: ran out in a backward");
      else
        TUTTI_PROBE("memory: ran out in a forward, or in events before");
    }
  }
  found_.clear();
  clear(state_);
  if (!pass_->failed_allocation) return *pass_;
  abandon();
  Meter::give_back();  // for whoever else needs memory: libraries, other ranks
  pass_->leftover_bytes = Meter::held_by_scopes(state_.device.memory_slot) - held;
  return *pass_;
}

void Passes::begin_pass() {
  pass_.emplace();
  Verdict& verdict = pass_->verdict;
  for (const Part& part : attempt_.parts) {
    const double flops = state_.model->flops_per_batch(part.batch);
    verdict.samples += static_cast<double>(part.batch.samples());
    verdict.tokens += static_cast<double>(state_.model->tokens(part.batch));
    verdict.flops += flops;
    if (cut_.place.has_grains)
      pass_->grains.push_back(
          {.flops = flops, .listeners = std::vector<double>(static_cast<std::size_t>(engine_.reductions()))});
  }
  if (statistics_.defined()) pass_->statistics = statistics_.zero_();
  metrics_.reset();
  if (rows_of_step_) rows_of_step_->begin_pass();
  verdict.sums.assign(static_cast<std::size_t>(sums()), 0.0);
  if (cut_.place.has_grains)
    verdict.grains.assign(static_cast<std::size_t>(cut_.place.data_world * Verdict::numbers_of_grain(sums())),
                          0.0);
}

void Passes::train_batch(const Closure::Move& move, bool first_pass) {
  exchange_.begin_pass();
  drop_gradients(state_);
  begin_at(attempt_.parts.front().first);
  set_context(*state_.model, &context_);
  found_.clear();  // of passes outside of a step
  if (!first_pass) {
    const at::NoGradGuard no_grad;
    move();
  }
  exchange_.unshard();
  if (!first_pass)
    for (auto& view : state_.views) view.grad = at::Tensor();
  std::vector<Part> parts;
  for (std::size_t i = 0; i < attempt_.parts.size(); ++i) parts.push_back(run_events(i, first_pass));
  const bool trains = !rows_of_step_ || find_rows(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part part = std::exchange(parts[i], {});
    set_part(i, part);
    for (const Portion& portion : cut_.portions(i, part)) {
      exchange_.begin_portion(portion);
      if (trains) train(part, portion);
      exchange_.end_portion();
    }
    if (cut_.place.has_grains && first_pass) engine_.contribute(pass_->grains[i].listeners);
  }
  exchange_.end_pass();
  metrics_.add_to(pass_->numbers);
  const auto listener_sums = static_cast<std::size_t>(engine_.reductions());
  if (!cut_.place.has_grains && first_pass)
    engine_.contribute(std::span(pass_->verdict.sums).first(listener_sums));
}

std::vector<Portion> Passes::Cut::portions(std::size_t index, const Part& part) const {
  const auto i = static_cast<int64_t>(index);
  const Portion whole{i, part.first, part.batch.samples(), i + 1 == place.data_parts};
  return place.has_grains ? std::vector{whole} : portions_of(whole, plan);
}

int64_t Passes::Cut::portion_size(const Part& part) const {
  return place.has_grains ? largest_part(global_batch, place.data_world)
                          : plan.portion_size(part.batch.samples());
}

void Passes::set_part(std::size_t index, const Part& part) {
  begin_at(part.first);
  state_.batch = part.batch;
  state_.kept_samples = part.kept_samples;
  state_.topology.data_rank = cut_.place.data_rank + static_cast<int>(index) * cut_.place.data_stride;
  engine_.set_logging(index == 0);  // rank 0's first part is the first of all, on any number of ranks
  state_.device_train_microbatch_size = cut_.portion_size(part);
}

// The events before the portions. Returns the part as it is trained on in this pass.
Passes::Part Passes::run_events(std::size_t index, bool first_pass) {
  Part& part = attempt_.parts[index];
  if (cut_.place.has_grains) part.batch = aligned(part.batch);
  set_part(index, part);
  seed_events(state_, engine_, first_pass ? 0 : 1);
  if (first_pass) {
    engine_.run_event(Event::kAfterDataloader);
    engine_.run_event(Event::kBatchStart);
    if (state_.batch.samples() < part.batch.samples()) TUTTI_PROBE("step: events left samples out");
    if (state_.batch.samples() > part.batch.samples()) TUTTI_PROBE("step: events added samples");
    // Its first place moves where events change the number of samples.
    part = {state_.batch, state_.first_sample, state_.kept_samples};
  }
  engine_.run_event(Event::kBeforeTrainBatch);
  store_statistics(cut_.place.has_grains ? static_cast<int64_t>(index) : 0);  // of listeners' own passes
  return {state_.batch, part.first, state_.kept_samples};
}

void Passes::begin_at(int64_t first_sample) {
  state_.first_sample = first_sample;
  context_.begin_pass(first_sample);
}

void Passes::abandon() {
  runner_->drop();
  pass_->numbers.drop();
  pass_->losses.clear();
  metrics_.reset();
  sweep_.run();  // gradients that an interrupted backward left in autograd's queue
  pass_->held[HeldFor::kGathered] = exchange_.gathered_bytes();
  pass_->held[HeldFor::kGradients] += exchange_.gradients().bytes_of_grains();
  if (exchange_.gradients().owns_gradients())
    for (const auto& named : state_.parameters)
      if (const at::Tensor& grad = named.parameter->tensor.grad(); grad.defined())
        pass_->held[HeldFor::kGradients] += static_cast<double>(grad.nbytes());
  if (rows_of_step_ && !rows_of_step_->gathered()) {  // other ranks wait
    exchange_.end_forwards();
    rows_of_step_->gather(/*out_of_memory=*/true);
  }
  if (attempt_.passes > 1) TUTTI_PROBE("memory: an extra pass is abandoned");
  exchange_.abandon_pass();
  free_step();
}

void Passes::free_step() {
  attempt_.parts.clear();
  if (rows_of_step_) rows_of_step_->drop();
  host_ = {};
  if (!exchange_.gradients().owns_gradients()) return;
  drop_gradients(state_);
  for (auto& view : state_.views) view.grad = at::Tensor();
}

// False if memory has run out on another rank.
bool Passes::find_rows(const std::vector<Part>& parts) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    set_part(i, parts[i]);
    for (const Portion& portion : cut_.portions(i, parts[i])) {
      if (portion.samples == 0) break;
      begin_forward(parts[i], portion);
      rows_of_step_->add(state_.model->rows(state_.forward(state_.batch)), runner_->loss_weight(), i);
      found_.clear();
    }
  }
  exchange_.end_forwards();
  const bool fits = rows_of_step_->gather(/*out_of_memory=*/false);
  pass_->step_weight = rows_of_step_->loss_weight();
  return fits;
}

void Passes::begin_forward(const Part& part, const Portion& portion) {
  pass_->in_backward = false;
  mark_(TraceKind::kMicrobatch, portion.index);
  MemoryScope::pass_place();
  begin_at(portion.first);
  state_.batch = samples_of(part.batch, part.first, portion);
  const RandomKey key = RandomKey(state_.seed, "microbatch").fold_in(state_.timestamp.batch);
  seed_default_generators(key.fold_in(portion.first).bits(), state_.device.where);
}

void Passes::train(const Part& part, const Portion& portion) {
  if (cut_.place.has_grains)
    probe_grain(portion, cut_.place);
  else
    probe_portion(portion, cut_.plan, part.batch);
  if (portion.samples == 0) return;
  begin_forward(part, portion);
  const auto index = static_cast<std::size_t>(cut_.place.has_grains ? portion.index : 0);
  if (rows_of_step_) state_.batch = rows_of_step_->add_to(state_.batch, portion.first - part.first, index);
  metrics_.begin_part(index);
  runner_->run(portion, *pass_);
  store_statistics(portion.index);
}

void Passes::store_statistics(int64_t portion) {
  rows_.add(found_, pass_->statistics, portion, pass_->numbers);
  found_.clear();
}

void Passes::read_numbers() {
  pass_->numbers.read();
  if (cut_.place.has_grains) return set_grains(*pass_, cut_.place, metrics_);
  std::ranges::copy(metrics_.sums(), pass_->verdict.sums.begin() + engine_.reductions());
}

void Passes::use_sums(std::span<const double> sums, bool with_listeners) {
  const auto listener_sums = static_cast<std::size_t>(engine_.reductions());
  metrics_.store_values(sums.subspan(listener_sums), state_);
  if (with_listeners) engine_.reduced(sums.first(listener_sums));
}

void Passes::apply_statistics(const at::Tensor& by_rank) {
  at::Tensor gathered = by_rank;
  if (cut_.place.data_stride > 1)
    gathered = by_rank.view({by_rank.size(0), cut_.place.data_parts, -1}).transpose(0, 1).contiguous();
  if (state_.device.is_cpu()) return rows_.apply(gathered);
  const at::Tensor staged = staging_memory(gathered.sizes(), gathered.scalar_type(), state_.device);
  rows_.apply(staged.copy_(gathered), state_.device);
}

}  // namespace tutti
