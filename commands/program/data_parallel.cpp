#include "commands/program/data_parallel.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "actors/compute/exchange.h"
#include "actors/compute/portion_runner.h"
#include "collectives/catalog.h"
#include "collectives/local/world.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/world.h"
#include "commands/program/direct_sync.h"
#include "io/formats/safetensors.h"
#include "job/job.h"
#include "models/layers/statistics_rows.h"
#include "runtime/disk.h"
#include "runtime/launcher.h"
#include "runtime/random.h"
#include "sharding/rank_share.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

// A program's own process, as that of a rank of a run.
void prepare_process(int threads) {
  RunSettings settings;
  settings.device.threads = threads;
  begin_process(settings);
}

Exchange exchange_of(Ranks& ranks, State& state, const ShardingSettings& sharding) {
  if (ranks.size() == 1) return Exchange(state, /*scaled=*/false);
  const auto make = [&ranks](const std::vector<int>& members) -> std::shared_ptr<Group> {
    return ranks.factory().make(members);
  };
  const Mesh mesh = mesh_of(sharding, ranks.size());
  return Exchange(state, {CollectiveSettings().bucket_bytes(), sharding},
                  make_direct_sync(make_groups(make(mesh.ranks()), mesh, ranks.rank(), make)));
}

// What algorithms, callbacks and models ask of other ranks.
class LoopServices final : public RankServices {
 public:
  LoopServices(const State& state, Exchange& exchange) : state_(state), exchange_(exchange) {}

  int rank() const override { return state_.topology.rank; }
  int world() const override { return state_.topology.world; }
  bool shards() const override { return state_.topology.share.pieces > 1; }
  bool evaluates_together() const override { return exchange_.evaluates_together(); }
  void sum_over_shards(const at::Tensor& values) override { exchange_.sum(values, GroupRole::kReductions); }
  void sum_over_ranks(const at::Tensor& values) override { exchange_.sum(values); }
  void hold_model(bool works, int64_t forwards) override { exchange_.unshard_model(works, forwards); }
  void free_model() override { exchange_.reshard_model(); }
  void end_forwards() override { exchange_.end_held_forwards(); }
  void visit_parameters(std::size_t parameters, bool works, const Visit& visit) override {
    if (!shards()) return RankServices::visit_parameters(parameters, works, visit);
    exchange_.visit_parameters(works ? visit : Visit());
  }

 private:
  const State& state_;
  Exchange& exchange_;
};

}  // namespace

struct Ranks::Mpi {
  SystemClock clock;
  MpiWorld world{nullptr, nullptr};
};

Ranks::Ranks(int threads) {
  prepare_process(threads);
  if (launched_rank()) {
    mpi_ = std::make_unique<Mpi>();
    factory_ = std::make_unique<MpiGroupFactory>(mpi_->world, mpi_->clock);
  } else {
    factory_ = LocalWorld::make(1)->factory(0);
  }
}

Ranks::Ranks(std::unique_ptr<GroupFactory> factory) : factory_(std::move(factory)) {}

// After an exception other ranks wait elsewhere.
Ranks::~Ranks() {
  if (mpi_ && std::uncaught_exceptions() > 0) mpi_->world.abandon();
}

struct DataParallel::Parts {
  Parts(Ranks& ranks, State& state, const ShardingSettings& sharding)
      : state(build(ranks, state, sharding)),
        exchange(exchange_of(ranks, state, sharding)),
        rows(*state.model) {
    context.statistics = &statistics;
    context.source = [&state](std::string_view name, int64_t place) { return state.draws(name, place); };
    set_context(*state.model, &context);
    state.services = std::make_shared<LoopServices>(state, exchange);
  }
  ~Parts() {
    set_context(*state.model, nullptr);
    state.services = std::make_shared<RankServices>();
  }

  // The parameters, and this rank's views, before the exchange moves them.
  static State& build(Ranks& ranks, State& state, const ShardingSettings& sharding) {
    if (!state.model) throw UserError("DataParallel: the state has no model");
    state.topology = topology_of(sharding, ranks.rank(), ranks.size());
    note_names(*state.model);
    follow_surgery(state, state.seed);
    return state;
  }

  State& state;
  Exchange exchange;
  StatisticsRows rows;
  ForwardContext context;
  std::vector<RunningStatistics> statistics;  // of the microbatch
  void begin_portion() {
    if (!std::exchange(in_portion, true)) exchange.begin_portion(portions[next]);
  }
  void end_portion() {
    exchange.end_portion();
    in_portion = false;
    ++next;
  }
  // After an exception of the loop's own: the other ranks skip the step.
  void abandon_step() {
    in_portion = false;
    exchange.abandon_pass();
    mine->verdict.non_finite = 1;
    exchange.facts(*mine);
    exchange.verdict(*mine);
    mine.reset();
  }

  std::optional<Pass> mine;  // of the current step
  std::vector<Portion> portions;
  std::size_t next = 0;     // of them
  bool in_portion = false;  // portions[next] has begun
};

DataParallel::DataParallel(Ranks& ranks, State& state, const ShardingSettings& sharding)
    : parts_(std::make_unique<Parts>(ranks, state, sharding)) {}
DataParallel::~DataParallel() = default;

void DataParallel::begin_step(int64_t microbatches) {
  Parts& parts = *parts_;
  if (parts.mine) parts.abandon_step();
  parts.portions = portions_of({}, {.count = std::max<int64_t>(microbatches, 1)});
  parts.next = 0;
  const int64_t portions = std::ssize(parts.portions), numbers = parts.rows.size() * portions;
  parts.mine.emplace();
  parts.mine->verdict.memory_peak = {0};
  if (numbers > 0) parts.mine->statistics = at::zeros({numbers});
  parts.exchange.plan({.portions = portions, .statistics = numbers});
  parts.exchange.begin_pass();
  for (auto& named : parts.state.parameters) named.parameter->tensor.mutable_grad() = at::Tensor();
  for (auto& view : parts.state.views) view.grad = at::Tensor();
  parts.exchange.unshard();
}

void DataParallel::begin_microbatch(int64_t first_sample) {
  Parts& parts = *parts_;
  TUTTI_ASSERT(parts.next < parts.portions.size(), "more microbatches than begin_step announced");
  parts.begin_portion();
  parts.statistics.clear();
  parts.state.first_sample = first_sample;
  parts.context.begin_pass(first_sample);
  const RandomKey key = RandomKey(parts.state.seed, "microbatch").fold_in(parts.state.timestamp.batch);
  seed_default_generators(key.fold_in(static_cast<uint64_t>(first_sample)).bits());
}

void DataParallel::backward(const at::Tensor& loss, double weight) {
  Parts& parts = *parts_;
  Verdict& mine = parts.mine->verdict;
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) mine.non_finite = 1;
  mine.loss_sum += value * weight;
  mine.loss_weight += weight;
  const at::Tensor root = wide(loss);
  root.backward(at::full_like(root, weight));
  if (parts.mine->statistics.defined())
    parts.rows.add(parts.statistics, parts.mine->statistics, static_cast<int64_t>(parts.next));
  parts.end_portion();
}

DataParallel::Sums DataParallel::end_step() {
  Parts& parts = *parts_;
  while (parts.next < parts.portions.size()) {
    parts.begin_portion();
    parts.end_portion();
  }
  parts.exchange.end_pass();
  parts.exchange.facts(*parts.mine);
  const PassResult all = parts.exchange.verdict(*parts.mine);
  parts.mine.reset();
  const double weight = all.verdict.loss_weight;
  const bool finite = weight > 0 && all.verdict.non_finite == 0 && all.verdict.overflow == 0;
  if (finite && all.statistics.defined()) parts.rows.apply(all.statistics);
  parts.state.grad_scale = weight > 0 ? weight : 1;
  parts.state.train_loss = all.verdict.loss_sum / parts.state.grad_scale;
  return {weight, parts.state.train_loss, finite};
}

void DataParallel::save_weights(const std::string& path) const {
  const State& state = parts_->state;
  PosixDisk disk;
  std::optional<SafetensorsFile> file;
  const bool writes = state.topology.rank == 0;
  if (writes) {
    Safetensors layout;
    for (const auto& view : state.views)
      layout.tensors[view.name] =
          at::empty(view.shape, at::TensorOptions(at::kMeta).dtype(view.tensor.scalar_type()));
    for (const auto& named : state.buffers) layout.tensors[named.name] = named.buffer->tensor;
    file.emplace(disk, path, layout);
    for (const auto& named : state.buffers) file->put(named.name, named.buffer->tensor);
  }
  state.visit_parameters(writes, [&](std::size_t p) {
    file->put(state.parameters[p].name, state.parameters[p].parameter->tensor.detach());
  });
  if (writes) file->finish();
}

}  // namespace tutti
