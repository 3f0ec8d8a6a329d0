#include "job/job.h"

#include <algorithm>

#include "recipe/plugin_maker.h"
#include "runtime/launcher.h"
#include "sharding/rank_share.h"
#include "tensors/memory/meter.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

Sampler sampler(const DataSettings& data, const Dataset& dataset, const PerRankData& own, int64_t batch,
                const Job& job, const RankTopology& place) {
  Sampler::Plan plan;
  plan.per_rank_data = !own.empty();
  plan.samples = plan.per_rank_data ? own.samples : dataset.size();
  plan.global_batch = batch;
  plan.place = place;
  plan.seed = job.seed;
  plan.loading = data;
  return Sampler(plan);
}

}  // namespace

Sampler Job::train_sampler(const RankTopology& place) const {
  return sampler(settings.train_data, *train_of(place.rank), per_rank_train, global_batch, *this, place);
}

Sampler Job::eval_sampler(const Evaluator& evaluator, const RankTopology& place) const {
  return sampler(evaluator.loading, *evaluator.data_of(place.rank), evaluator.own, evaluator.global_batch,
                 *this, place);
}

Mesh Job::mesh() const { return mesh_of(settings.sharding, world); }

RankTopology Job::topology(int rank) const {
  return topology_of(settings.sharding, rank, world, settings.reproducibility.grains);
}

Device Job::device(int memory_slot) const {
  const Device device = devices ? devices->device(launched_local_rank() + memory_slot, memory_slot)
                                : Device{.memory_slot = memory_slot, .stands_in = cpu_stands_in};
  Meter::count_device(memory_slot, device.where);
  return device;
}

void Job::describe_to(State& state, const RankTopology& place) const {
  state.run_name = settings.run_name;
  state.run_dir = run_dir;
  state.seed = seed;
  state.max_duration = settings.train.planned_duration();
  state.dataloader_len = train_sampler(place).batches();
  state.global_batch = global_batch;
  state.train_samples = train_samples();
  state.dataset = train_of(place.rank).get();
  state.composer = settings.train.composer;
  state.precision = settings.precision;
  state.topology = place;
  state.offloads_optimizer = settings.sharding.offloads_optimizer;
  state.offloads_parameters = settings.sharding.offloads_parameters && state.topology.share.pieces > 1;
  for (const auto& [step, parts] : settings.train.accumulation.steps) {
    Timestamp reached;
    reached.batch = step;
    reached.epoch = step / std::max<int64_t>(state.dataloader_len, 1);
    if (elapsed(reached, state.max_duration) < 1) state.grad_accum = std::max(state.grad_accum, parts);
  }
  state.device_train_microbatch_size = settings.train.accumulation.microbatch_size;
}

std::string Job::model_name() const {
  const Setting& model = recipe.at("model");
  const bool plugin_made = model.has("name") && is_of_plugin(model);
  return model.at(plugin_made ? "name" : "kind").text();
}

void begin_process(const RunSettings& settings) {
  Meter::install();
  set_compute_threads(settings.device.threads);
  set_deterministic_mode(settings.train.deterministic_mode);
  set_tf32(settings.device.tf32);
}

std::string batch_identity(const Job& job) {
  const Setting& grad_accum = job.settings.train.accumulation.key;
  const int64_t parts = grad_accum.is_integer() ? grad_accum.integer() : 1;
  const int64_t device = largest_part(job.global_batch, job.data_world());
  const bool uneven = job.global_batch % job.data_world() != 0;
  if (job.settings.reproducibility.is_elastic())
    return "global batch " + std::to_string(job.global_batch) + " = " + std::to_string(job.data_world()) +
           " grains x " + std::to_string(device) + (uneven ? " or one fewer" : "") + ", at most " +
           std::to_string(job.topology(0).data_parts) + " on each of " + std::to_string(job.world) +
           (job.world == 1 ? " rank" : " ranks");
  std::string text = "global batch " + std::to_string(job.global_batch) + " = " + std::to_string(job.world) +
                     (job.world == 1 ? " rank x " : " ranks x ") + std::to_string(device) +
                     (uneven ? " or one fewer" : "");
  if (parts > 1)
    text += " = " + std::to_string(job.world) + " x " + std::to_string(parts) + " microbatches of " +
            std::to_string((device + parts - 1) / parts) + (uneven || device % parts ? " or fewer" : "");
  if (!grad_accum.is_integer() && !grad_accum.is_none()) text += ", grad_accum = " + grad_accum.toml();
  return text;
}

}  // namespace tutti
