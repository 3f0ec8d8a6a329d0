#include "actors/compute/sync_client.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "actors/messages/messages.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

class ActorSyncClient final : public SyncClient {
 public:
  ActorSyncClient(Context& context, const State& state, const RankActors& actors, Recorder& recorder)
      : context_(context), state_(state), sync_(actors.sync), recorder_(recorder) {}
  ~ActorSyncClient() override;

  std::vector<at::Tensor> allocate(GroupRole group, std::vector<int64_t> bytes) override;
  void set_plan(std::vector<PlanEntry> entries) override;
  void run(int entry, const at::Tensor& whole) override;
  bool wait(int entry) override;
  bool finish_pass() override;
  at::Tensor sum(const at::Tensor& values, GroupRole group) override;
  void record(TraceKind kind, int64_t number) override;

 private:
  std::vector<at::Tensor> on_device(const std::vector<int64_t>& bytes) const;

  Context& context_;
  const State& state_;
  ActorId sync_;
  Recorder& recorder_;
  int64_t charged_bytes_ = 0;  // for memory outside of the meter's allocator
};

ActorSyncClient::~ActorSyncClient() { Meter::charge(state_.device.memory_slot, -charged_bytes_); }

std::vector<at::Tensor> ActorSyncClient::allocate(GroupRole group, std::vector<int64_t> bytes) {
  if (state_.device.runs_ahead() && group != GroupRole::kWorld) return on_device(bytes);
  auto memory = context_.ask<MemoryAllocated>(sync_, AllocateMemory{group, std::move(bytes)}).memory;
  int64_t charged = 0;
  for (const at::Tensor& tensor : memory)
    if (!Meter::counts(tensor)) charged += static_cast<int64_t>(tensor.nbytes());
  charged_bytes_ += charged;
  Meter::charge(state_.device.memory_slot, charged);
  return memory;
}

// By this thread and on its stream, whose later work may use it.
std::vector<at::Tensor> ActorSyncClient::on_device(const std::vector<int64_t>& bytes) const {
  std::vector<at::Tensor> memory;
  for (const int64_t size : bytes) memory.push_back(at::zeros({size}, state_.device.options(at::kByte)));
  return memory;
}

void ActorSyncClient::set_plan(std::vector<PlanEntry> entries) {
  context_.send(sync_, SetPlan{std::move(entries)});
  if (!state_.device.runs_ahead()) return;
  // Sync has the plan when it answers: the memory that groups on a device need for it is taken.
  context_.ask<MemoryAllocated>(sync_, AllocateMemory{});
}

void ActorSyncClient::run(int entry, const at::Tensor& whole) {
  context_.send(sync_, RunEntry{entry, state_.timestamp.batch, whole, StreamOrder::record(state_.device)});
  MemoryScope::pass_place();
}

bool ActorSyncClient::wait(int entry) {
  const EntryDone done = context_.ask<EntryDone>(sync_, AwaitEntry{entry});
  done.done.wait();
  MemoryScope::pass_place();
  return done.finite;
}

bool ActorSyncClient::finish_pass() {
  const FinishStep finish{state_.timestamp.batch, StreamOrder::record(state_.device)};
  const PassDone done = context_.ask<PassDone>(sync_, finish);
  done.done.wait();
  return done.finite;
}

at::Tensor ActorSyncClient::sum(const at::Tensor& values, GroupRole group) {
  return context_.ask<Summed>(sync_, SumDoubles{values, group}).values;
}

void ActorSyncClient::record(TraceKind kind, int64_t number) {
  recorder_.record({context_.now(), kind, state_.timestamp.batch, number});
}

}  // namespace

std::unique_ptr<SyncClient> make_sync_client(Context& context, const State& state, const RankActors& actors,
                                             Recorder& recorder) {
  return std::make_unique<ActorSyncClient>(context, state, actors, recorder);
}

}  // namespace tutti
