#include "actors/sync.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "collectives/agreement.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {

Sync::Sync(Transport& transport, ActorId supervisor, Recorder& recorder, const Device& device)
    : device_(device),
      supervisor_(supervisor),
      recorder_(recorder),
      control_(transport, supervisor, recorder) {}

void Sync::receive(Context& context, Envelope& envelope) {
  device_.use();
  guard_memory("what ranks send each other", [&] { handle(context, envelope); });
}

std::optional<TimePoint> Sync::idle(Context& context) {
  if (!work_.joined()) return std::nullopt;
  std::optional<TimePoint> next;
  guard_memory("what ranks send each other", [&] { next = poll(context); });
  return next;
}

void Sync::handle(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* join_message = message.get_if<Join>()) {
    join(context, *join_message);
  } else if (message.get_if<SendControl>()) {
    control_.send(context, envelope, step_);
  } else if (message.get_if<Stop>()) {
    return context.stop();
  } else if (!connected_) {
    TUTTI_PROBE("sync: a request waits until the groups are ready");
    early_.push_back(std::move(envelope));
  } else {
    handle_request(context, envelope);
  }
  connect(context);
  drive(context);
}

void Sync::join(Context& context, Join& message) {
  control_.join(message.topology);
  work_.join(std::move(message.groups), context.now());
}

// Begins with the requests that came before all groups were ready.
void Sync::connect(Context& context) {
  if (connected_ || !work_.joined()) return;
  if (!control_.holds(context, [this] { return work_.ready(); })) return;
  connected_ = true;
  work_.note_progress(context.now());
  for (; !early_.empty(); early_.pop_front()) handle_request(context, early_.front());
}

void Sync::handle_request(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* run = message.get_if<RunEntry>()) {
    run_entry(context, *run);
  } else if (auto* wanted_entry = message.get_if<AwaitEntry>()) {
    await_entry(context, envelope, *wanted_entry);
  } else if (auto* finish = message.get_if<FinishStep>()) {
    finish_step(context, envelope, *finish);
  } else if (auto* plan = message.get_if<SetPlan>()) {
    set_plan(*plan);
  } else if (auto* numbers = message.get_if<SumDoubles>()) {
    ++awaited_;
    const SumDoubles sum = *numbers;  // which moves with the envelope
    const char* label = sum.group == GroupRole::kWorld ? "sum over ranks" : "sum over shards";
    work_.post(context.now(), sum.group, work_.group(sum.group).all_reduce(sum.values, label),
               [this, sum, envelope = std::make_shared<Envelope>(std::move(envelope))](Context& c) {
                 --awaited_;
                 c.reply(*envelope, Summed{sum.values});
               });
  } else if (auto* mine = message.get_if<Agree>()) {
    agree(context, *mine);
  } else if (auto* request = message.get_if<AllocateMemory>()) {
    ++awaited_;
    const AllocateMemory memory = *request;  // which moves with the envelope
    allocate(context, std::make_shared<MemoryRequest>(std::move(envelope), memory));
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

TimePoint Sync::poll(Context& context) {
  work_.check();
  connect(context);
  control_.poll(context, step_, /*waits=*/awaited_ > 0 || !early_.empty());
  const int64_t before = work_.moves();
  const bool finished = drive(context);
  if (finished || work_.moves() != before) work_.note_progress(context.now());
  return work_.next_poll(context.now(), /*busy=*/!connected_, /*waits=*/awaited_ > 0);
}

bool Sync::drive(Context& context) {
  return work_.drive(context,
                     [&](Work& work) { return control_.holds(context, [&] { return work.done(); }); });
}

void Sync::set_plan(SetPlan& plan) {
  TUTTI_ASSERT(running_ == 0, "a new plan within a pass");
  entries_.clear();
  queues_.fill({});
  for (PlanEntry& planned_entry : plan.entries) {
    Group& summing = work_.group(planned_entry.group);
    const std::size_t queue =
        summing.runs_on_stream() ? kOnDevice : static_cast<std::size_t>(planned_entry.group);
    queues_[queue].entries.push_back(entries_.size());
    Entry& entry = entries_.emplace_back(Entry{.plan = std::move(planned_entry), .queue = queue});
    const PlanEntry& planned = entry.plan;
    entry.whole = planned.whole;
    if (planned.cut) summing.reserve(*planned.cut, planned.part.element_size());
    if (planned.parts.empty() || !recorder_.digests()) continue;
    const auto chunk = [&] {
      const auto bytes = static_cast<int64_t>(planned.whole.nbytes());
      return parts_of_chunk(planned.parts, bytes, summing.size(), summing.rank());
    };
    const bool scatters = planned.kind == CollectiveKind::kReduceScatter;
    entry.digest.emplace("sync/" + planned.label, scatters ? planned.parts : chunk(), recorder_);
  }
  int64_t offloaded = 0;  // bytes of the largest part
  for (const Entry& entry : entries_)
    if (is_offloaded(entry.plan))
      offloaded = std::max(offloaded, static_cast<int64_t>(entry.plan.part.nbytes()));
  if (offloaded > 0 && !(offloaded_.defined() && offloaded_.numel() >= offloaded))
    offloaded_ = at::empty({offloaded}, device_.options(at::kByte));
  std::ranges::stable_sort(queues_[kOnDevice].entries, {},
                           [this](std::size_t entry) { return entries_[entry].plan.place; });
}

void Sync::run_entry(Context& context, const RunEntry& run) {
  step_ = run.step;
  Entry& entry = entries_.at(static_cast<std::size_t>(run.index));
  TUTTI_ASSERT(!entry.ready, entry.plan.label + " twice in a pass");
  entry.ready = true;
  entry.order = run.ready;
  if (run.whole.defined()) entry.whole = run.whole;
  post_ready(context);
  if (!entry.posted && !entry.done) TUTTI_PROBE("sync: a ready collective waits for earlier collectives");
}

void Sync::await_entry(Context& context, Envelope& envelope, const AwaitEntry& request) {
  Entry& entry = entries_.at(static_cast<std::size_t>(request.index));
  TUTTI_ASSERT(entry.ready && !entry.awaited, entry.plan.label + " cannot be waited for");
  if (entry.done) {
    TUTTI_PROBE("sync: a collective is done before Compute waits for it");
    return context.reply(envelope, EntryDone{entry.finite, entry.order});
  }
  ++awaited_;
  entry.awaited = std::move(envelope);
}

void Sync::finish_step(Context& context, Envelope& envelope, const FinishStep& finish) {
  step_ = finish.step;
  ++awaited_;
  const StreamOrder ready = finish.ready;  // which moves with the envelope
  finishing_ = std::move(envelope);
  for (Entry& entry : entries_) {
    if (!entry.ready) entry.order = ready;
    entry.ready = true;
  }
  post_ready(context);
  end_pass_if_done(context);
}

// Entries become ready in the order of backward, but are posted in the plan's order, the same on all ranks.
void Sync::post_ready(Context& context) {
  for (Queue& queue : queues_)
    for (; queue.next < queue.entries.size() && queue.posted < kMostPosted; ++queue.next) {
      Entry& entry = entries_[queue.entries[queue.next]];
      if (!may_begin(entry)) break;
      const PlanEntry& plan = entry.plan;
      if (plan.if_any && entries_[static_cast<std::size_t>(plan.after)].plan.whole.item<double>() == 0) {
        TUTTI_PROBE("sharding: frozen rows are not gathered again");
        mark_done(context, entry, /*finite=*/true);
      } else {
        if (plan.if_any) TUTTI_PROBE("sharding: frozen rows are gathered");
        begin(context, entry);
      }
    }
}

// On a device later work of one stream begins after earlier work.
bool Sync::may_begin(const Entry& entry) const {
  if (!entry.ready || entry.plan.after < 0) return entry.ready;
  const Entry& before = entries_[static_cast<std::size_t>(entry.plan.after)];
  const bool in_order = before.on_device() && entry.on_device() && !entry.plan.if_any;
  if (!before.done) TUTTI_PROBE("sync: a collective waits for the memory of an earlier one");
  return before.done || (in_order && before.posted);
}

void Sync::begin(Context& context, Entry& entry) {
  if (entry.plan.begins) recorder_.record({context.now(), *entry.plan.begins, step_, entry.plan.number});
  entry.order.wait();
  WorkPtr work = work_of(entry);
  const Work& running = *work;
  if (entry.on_device()) take_results(entry, running);  // before later work of the stream changes the sums
  entry.posted = true;
  ++running_;
  ++queues_[entry.queue].posted;
  if (queues_[entry.queue].posted == kMostPosted)
    TUTTI_PROBE("sync: as many collectives as may be under way");
  work_.post(context.now(), entry.plan.group, std::move(work),
             [this, &entry, &running](Context& c) { end(c, entry, running); });
}

// Rows that the host keeps. Copies and collectives of all entries share a stream, so one memory is enough.
bool Sync::is_offloaded(const PlanEntry& plan) const {
  return !device_.is_cpu() && plan.group == GroupRole::kGathers && plan.part.defined() && plan.part.is_cpu();
}

at::Tensor Sync::part_on_device(const PlanEntry& plan) const {
  if (!is_offloaded(plan)) return plan.part;
  const at::Tensor there = offloaded_.narrow(0, 0, static_cast<int64_t>(plan.part.nbytes()));
  return there.view(plan.part.scalar_type()).copy_(plan.part, /*non_blocking=*/true);
}

WorkPtr Sync::work_of(const Entry& entry) {
  const PlanEntry& plan = entry.plan;
  Group& ranks = work_.group(plan.group);
  if (plan.kind == CollectiveKind::kAllReduce) return ranks.all_reduce(entry.whole, plan.label);
  if (plan.kind == CollectiveKind::kAllGather) {
    const at::Tensor part = part_on_device(plan);
    return plan.cut ? ranks.all_gather(part, entry.whole, plan.cut, plan.label)
                    : ranks.all_gather(part, entry.whole, plan.label);
  }
  TUTTI_ASSERT(plan.kind == CollectiveKind::kReduceScatter, plan.label + " cannot be in a plan");
  return plan.cut ? ranks.reduce_scatter(entry.whole, plan.part, plan.cut, plan.label)
                  : ranks.reduce_scatter(entry.whole, plan.part, plan.label);
}

void Sync::end(Context& context, Entry& entry, const Work& work) {
  const bool finite = work.finite();
  if (!entry.on_device()) take_results(entry, work);
  --running_;
  --queues_[entry.queue].posted;
  if (!finite) TUTTI_PROBE("sync: a sum over ranks is not finite");
  finite_ = finite_ && finite;
  if (entry.plan.ends) recorder_.record({context.now(), *entry.plan.ends, step_, entry.plan.number});
  mark_done(context, entry, finite);
  post_ready(context);
  end_pass_if_done(context);
}

void Sync::take_results(Entry& entry, const Work& work) {
  entry.order = work.results();
  if (!entry.digest) return;
  entry.order.wait();
  const bool scatters = entry.plan.kind == CollectiveKind::kReduceScatter;
  entry.digest->record(step_, scatters ? entry.plan.part : entry.whole);
  entry.order = StreamOrder::record(device_);  // Compute may write what the digest has read
}

void Sync::mark_done(Context& context, Entry& entry, bool finite) {
  entry.done = true;
  entry.finite = finite;
  entry.whole = entry.plan.whole;  // the memory of this pass is its owner's from now on
  if (!entry.awaited) return;
  --awaited_;
  context.reply(*entry.awaited, EntryDone{finite, entry.order});
  entry.awaited.reset();
}

void Sync::end_pass_if_done(Context& context) {
  if (!finishing_ || running_ > 0) return;
  --awaited_;
  for (Entry& entry : entries_) {
    entry.ready = entry.posted = entry.done = false;
    if (entry.digest) entry.digest->finish();
  }
  for (Queue& queue : queues_) queue.next = 0;
  context.reply(*finishing_, PassDone{std::exchange(finite_, true), StreamOrder::record(device_)});
  finishing_.reset();
}

void Sync::agree(Context& context, const Agree& mine) {
  ++awaited_;
  auto round = std::make_unique<AgreementRound>(work_.group(GroupRole::kWorld), mine.statement);
  const AgreementRound& agreement = *round;
  work_.post(context.now(), GroupRole::kWorld, std::move(round), [this, &agreement](Context& c) {
    --awaited_;
    c.send(supervisor_, Agreed{agreement.statements()});
  });
}

struct Sync::MemoryRequest {
  Envelope envelope;
  AllocateMemory order;
  MemoryAllocated given = {};
};

// One allocation after the other, in the same order on all ranks.
void Sync::allocate(Context& context, const std::shared_ptr<MemoryRequest>& request) {
  const AllocateMemory& order = request->order;
  std::vector<at::Tensor>& given = request->given.memory;
  if (given.size() == order.bytes.size()) {
    --awaited_;
    return context.reply(request->envelope, std::move(request->given));
  }
  AllocationPtr allocation = work_.group(order.group).allocate(order.bytes[given.size()]);
  const Allocation& running = *allocation;
  work_.post(context.now(), order.group, std::move(allocation), [this, request, &running](Context& c) {
    request->given.memory.push_back(running.memory());
    allocate(c, request);
  });
}

}  // namespace tutti
