#include "actors/sync.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "collectives/agreement.h"
#include "collectives/device/groups.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {

Sync::Sync(Transport& transport, ActorId supervisor, Recorder& recorder, const Device& device)
    : device_(device), transport_(transport), supervisor_(supervisor), recorder_(recorder) {}

void Sync::receive(Context& context, Envelope& envelope) {
  device_.use();
  guard_memory("what ranks send each other", [&] { handle(context, envelope); });
}

std::optional<TimePoint> Sync::idle(Context& context) {
  if (!groups_.front()) return std::nullopt;
  std::optional<TimePoint> next;
  guard_memory("what ranks send each other", [&] { next = poll(context); });
  return next;
}

void Sync::handle(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* join_message = message.get_if<Join>()) {
    join(context, *join_message);
  } else if (auto* control = message.get_if<SendControl>()) {
    recorder_.record({context.now(), TraceKind::kControlSent, step_, control->to});
    transport_.send(control->to, control->text);
    if (envelope.slot) context.reply(envelope, ControlSent{});
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
  TUTTI_ASSERT(!groups_.front(), "a second Join");
  progress_ = context.now();
  place_ = message.topology;
  groups_ = std::move(message.groups);
}

// Begins with the requests that came before all groups were ready.
void Sync::connect(Context& context) {
  if (connected_ || !groups_.front() || !holds(context, [this] { return ready(groups_); })) return;
  connected_ = true;
  progress_ = context.now();
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
    post(context, sum.group, group(sum.group).all_reduce(sum.values, label),
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
  for (const auto& group : groups_)
    if (group) group->check();
  connect(context);
  receive_control(context);
  send_heartbeat(context);
  const int64_t before = moves();
  const bool finished = drive(context);
  if (finished || moves() != before) progress_ = context.now();
  return next_poll(context.now());
}

int64_t Sync::moves() const {
  int64_t moves = 0;
  for (const auto& group : groups_)
    if (group) moves += group->moves();
  return moves;
}

TimePoint Sync::next_poll(TimePoint now) const {
  if (outstanding_.empty() && connected_) return now + kLongestPoll;
  const Nanoseconds waited = now - progress_;
  if (awaited_ > 0 && waited < kYieldFor) return now;
  return now + std::clamp<Nanoseconds>(waited / 16, kShortestPoll, kLongestPoll);
}

void Sync::set_plan(SetPlan& plan) {
  TUTTI_ASSERT(running_ == 0, "a new plan within a pass");
  entries_.clear();
  queues_.fill({});
  for (PlanEntry& planned_entry : plan.entries) {
    Group& summing = group(planned_entry.group);
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
      if (is_left_out(entry)) {
        TUTTI_PROBE("sharding: frozen rows are not gathered again");
        mark_done(context, entry, /*finite=*/true);
      } else {
        if (entry.plan.if_any) TUTTI_PROBE("sharding: frozen rows are gathered");
        begin(context, entry);
      }
    }
}

// On a device later work of one stream begins after earlier work.
bool Sync::may_begin(const Entry& entry) const {
  if (!entry.ready || entry.plan.after < 0) return entry.ready;
  const Entry& before = entries_[static_cast<std::size_t>(entry.plan.after)];
  const bool in_order = on_device(before) && on_device(entry) && !entry.plan.if_any;
  if (!before.done) TUTTI_PROBE("sync: a collective waits for the memory of an earlier one");
  return before.done || (in_order && before.posted);
}

bool Sync::is_left_out(const Entry& entry) const {
  return entry.plan.if_any &&
         entries_[static_cast<std::size_t>(entry.plan.after)].plan.whole.item<double>() == 0;
}

void Sync::begin(Context& context, Entry& entry) {
  if (entry.plan.begins) recorder_.record({context.now(), *entry.plan.begins, step_, entry.plan.number});
  entry.order.wait();
  WorkPtr work = work_of(entry);
  const Work& running = *work;
  if (on_device(entry)) take_results(entry, running);  // before later work of the stream changes the sums
  entry.posted = true;
  ++running_;
  ++queues_[entry.queue].posted;
  if (queues_[entry.queue].posted == kMostPosted)
    TUTTI_PROBE("sync: as many collectives as may be under way");
  post(context, entry.plan.group, std::move(work),
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
  Group& ranks = group(plan.group);
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
  if (!on_device(entry)) take_results(entry, work);
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
  auto round = std::make_unique<AgreementRound>(group(GroupRole::kWorld), mine.statement);
  const AgreementRound& agreement = *round;
  post(context, GroupRole::kWorld, std::move(round), [this, &agreement](Context& c) {
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
  AllocationPtr allocation = group(order.group).allocate(order.bytes[given.size()]);
  const Allocation& running = *allocation;
  post(context, order.group, std::move(allocation), [this, request, &running](Context& c) {
    request->given.memory.push_back(running.memory());
    allocate(c, request);
  });
}

void Sync::post(Context& context, GroupRole role, WorkPtr work, Then then) {
  outstanding_.push_back({role, std::move(work), std::move(then)});
  progress_ = context.now();
}

// Completions are reported in the order of posting within a group, each as it comes.
bool Sync::drive(Context& context) {
  std::array<bool, kGroupRoles> waits{};
  for (auto& collective : outstanding_) {
    bool& behind = waits[static_cast<std::size_t>(collective.group)];
    behind = !holds(context, [&] { return collective.work->done(); }) || behind;
    collective.over = !behind;
  }
  const auto first =
      std::ranges::stable_partition(outstanding_, std::logical_not(), &Outstanding::over).begin();
  if (first == outstanding_.end()) return false;
  const std::vector<Outstanding> over(std::make_move_iterator(first),
                                      std::make_move_iterator(outstanding_.end()));
  outstanding_.erase(first, outstanding_.end());
  for (const auto& collective : over)
    if (collective.then) collective.then(context);
  return true;
}

// The error of a lost rank names the last event in its newest heartbeat.
template <class Check>
bool Sync::holds(Context& context, const Check& check) const try {
  return check();
} catch (const LostRankError& lost) {
  const auto peer = newest_.peers.find(lost.rank());
  if (peer == newest_.peers.end()) {
    TUTTI_PROBE("end: a rank is lost of which nothing was heard");
    throw;
  }
  TUTTI_PROBE("end: a collective finds a lost rank");
  Heartbeat last = peer->second.last;
  last.age_s += seconds(context.now() - peer->second.received);
  throw OperatingError(std::string(lost.what()) + "; the last it did: " + last.text(), lost.kind());
}

void Sync::receive_control(Context& context) {
  while (auto packet = transport_.poll()) {
    if (const auto heartbeat = parse_heartbeat(packet->bytes)) {
      newest_.peers[packet->from] = unreported_.peers[packet->from] = {context.now(), *heartbeat};
    } else {
      recorder_.record({context.now(), TraceKind::kControlReceived, step_, packet->from});
      context.send(supervisor_, ControlReceived{packet->from, std::move(packet->bytes)});
    }
  }
  if (!unreported_.peers.empty() && reporting_ && !reporting_.ready())
    TUTTI_PROBE("sync: heartbeats wait until the Supervisor has read the last");
  if (unreported_.peers.empty() || (reporting_ && !reporting_.ready())) return;
  reporting_ = context.request<Noted>(supervisor_, std::exchange(unreported_, {}));
}

// Other ranks send to rank 0; rank 0 sends to all ranks and to itself.
void Sync::send_heartbeat(Context& context) {
  const TimePoint now = context.now();
  if (now < next_heartbeat_ || place_.world == 1) return;
  next_heartbeat_ = now + kHeartbeatEvery;
  const std::string text = heartbeat_text(recorder_, now, awaited_ > 0 || !early_.empty());
  if (place_.rank != 0) {
    transport_.send(0, text);
    return;
  }
  for (int r = 1; r < place_.world; ++r) transport_.send(r, text);
  unreported_.peers[0] = {now, parse_heartbeat(text).value()};
}

}  // namespace tutti
