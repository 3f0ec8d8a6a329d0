#include "actors/supervisor/supervisor.h"

#include <algorithm>
#include <utility>

#include "actors/messages/control_text.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {

Publisher::Publisher(const Job& job, CheckpointStore& store, ActorId checkpointer, Log& log,
                     Recorder& recorder)
    : job_(job), store_(store), checkpointer_(checkpointer), log_(log), recorder_(recorder) {}

std::optional<Publisher::Conclusion> Publisher::add(Context& context, int rank, Durable part) {
  const std::string name = part.name;
  if (!unpublished_.empty() && !unpublished_.contains(name))
    TUTTI_PROBE("checkpoint: the files of two wait to be published");
  unpublished_[name][rank] = std::move(part);
  if (static_cast<int>(unpublished_[name].size()) < world_) return std::nullopt;
  Parts parts = std::move(unpublished_.extract(name).mapped());
  const std::string unfinished = unfinished_folder(job_.checkpoints, name, job_.nonce);
  const std::string error = recorder_.input(RecordedInput::kPublishError, publish(name, unfinished, parts));
  if (error.empty()) {
    log_.info("checkpoint " + name + " is published");
  } else {
    if (failed_ > 0) TUTTI_PROBE("checkpoint: a second checkpoint fails in an attempt");
    log_.warning("checkpoint " + name + " failed (" + std::to_string(++failed_) +
                 " so far), the last good one stays: " + error);
    store_.discard(unfinished);
  }
  context.send(checkpointer_, Concluded{});
  recorder_.record({context.now(), error.empty() ? TraceKind::kPublished : TraceKind::kCheckpointFailed});
  ++concluded_;
  return Conclusion{error.empty(), parts.begin()->second.last};
}

// The error, or "". The state is from the lowest rank that saves one.
std::string Publisher::publish(const std::string& name, const std::string& unfinished, Parts& parts) {
  CheckpointManifest manifest;
  for (auto& [rank, part] : parts) {
    if (!part.error.empty()) {
      if (rank == 0)
        TUTTI_PROBE("checkpoint: rank 0 cannot write its file");
      else
        TUTTI_PROBE("checkpoint: another rank than 0 cannot write its file");
      return "rank " + std::to_string(rank) + ": " + part.error;
    }
    manifest.files.push_back(std::move(part.file));
    if (manifest.state.empty()) manifest.state = std::move(part.state);
  }
  return store_.publish(name, unfinished, manifest);
}

DurableLogs::DurableLogs(const std::vector<LogActor>& logs, Log& log) : log_(log) {
  for (const LogActor& log : logs)
    if (log.sync_timeout > Nanoseconds(0)) logs_.push_back({log});
}

// A log that has not answered yet gets no second request, which would fill its mailbox.
void DurableLogs::sync(Context& context, const std::string& checkpoint) {
  for (DurableLog& log : logs_) {
    if (log.syncing && !log.syncing.ready()) continue;
    log.syncing = context.request<LogSynced>(log.to.writer, SyncLog{});
    log.until =
        context.now() + (log.late ? std::min(kLateTimeout, log.to.sync_timeout) : log.to.sync_timeout);
  }
  for (DurableLog& log : logs_) {
    const bool late = !answers_in_time(context, log);
    if (late && !std::exchange(log.late, late))
      log_.warning("checkpoint " + checkpoint + " does not wait for " + log.to.name +
                   ", which is slow to write, nor do later checkpoints until it keeps up; a run that "
                   "resumes from them may miss its records");
    log.late = late;
  }
}

// A log is not slow because the whole process stood still: after SIGSTOP, for example.
bool DurableLogs::answers_in_time(Context& context, DurableLog& log) {
  constexpr Nanoseconds kSlice = std::chrono::milliseconds(100);
  while (context.now() < log.until) {
    const TimePoint next = std::min(log.until, context.now() + kSlice);
    if (log.syncing.ready_by(next)) return true;
    if (const Nanoseconds stood_still = context.now() - next; stood_still > kSlice) log.until += stood_still;
  }
  return log.syncing.ready();
}

namespace {

constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(100);
constexpr Nanoseconds kSendTimeout = std::chrono::milliseconds(200);
constexpr const char* kStopVerb = "stop";
constexpr const char* kFinishVerb = "finish";
constexpr const char* kAbortVerb = "abort";

}  // namespace

Supervisor::Supervisor(const Job& job, const Place& place, const RankActors& actors, Disk& disk, Log& log,
                       Recorder& recorder, EndKind& end)
    : actors_(actors),
      log_(log),
      recorder_(recorder),
      end_(end),
      after_interrupt_(place.after_interrupt),
      folder_(disk, job.run_dir, job.checkpoints),
      store_(disk, log, job, place.uploads),
      logs_(actors.logs, log),
      start_(job, place.host, folder_, store_, log, recorder),
      failures_(job.settings.train.hang_timeout, log),
      publisher_(job, store_, actors.checkpointer, log, recorder) {}

// Sync comes first, since making groups takes time. The others have no use for groups.
void Supervisor::join(Context& context, Join& message) {
  TUTTI_ASSERT(stage_ == Stage::kJoining, "a second Join");
  place_ = message.topology;
  failures_.start(context.now(), place_.rank, place_.world);
  publisher_.join(place_.world);
  const Join without_groups{.epoch = message.epoch, .topology = place_};
  context.send(actors_.sync, std::move(message));
  context.send(actors_.loader, without_groups);
  for (const ActorId loader : actors_.eval_loaders) context.send(loader, without_groups);
  context.send(actors_.compute, without_groups);
  context.send(actors_.checkpointer, without_groups);
  stage_ = Stage::kOpening;
  context.send(actors_.sync, Agree{start_.opening(context, place_.rank)});
}

void Supervisor::agreed(Context& context, const std::vector<Statement>& statements) {
  if (stage_ == Stage::kOpening) return verify_or_prepare(context, start_.named(statements));
  if (stage_ == Stage::kVerifying) {
    if (start_.good(statements)) return verify_or_prepare(context, {});
    TUTTI_PROBE("resume: all ranks turn to an older checkpoint");
    stage_ = Stage::kOpening;
    return context.send(actors_.sync, Agree{start_.naming()});
  }
  if (stage_ == Stage::kPreparing) {
    start_.begin(statements);
    stage_ = Stage::kBeginning;
    return context.send(actors_.sync, Agree{});
  }
  const Start start = start_.start();
  stage_ = Stage::kTraining;
  context.send(actors_.checkpointer, start);
  context.send(actors_.compute, start);
  context.send(actors_.loader, start);
}

// Without a checkpoint there is nothing to verify, or no more.
void Supervisor::verify_or_prepare(Context& context, Verify next) {
  stage_ = next.checkpoint.empty() ? Stage::kPreparing : Stage::kVerifying;
  if (stage_ == Stage::kVerifying) return context.send(actors_.compute, std::move(next));
  context.send(actors_.compute, Prepare(start_.preparation()));
}

void Supervisor::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* join_message = message.get_if<Join>()) {
    join(context, *join_message);
  } else if (auto* packet = message.get_if<ControlReceived>()) {
    handle_control(context, packet->from, packet->text);
  } else if (auto* heartbeats = message.get_if<Heartbeats>()) {
    failures_.add(heartbeats->peers);
    context.reply(envelope, Noted{});
  } else if (auto* agreement = message.get_if<Agreed>()) {
    agreed(context, agreement->statements);
  } else if (auto* verified = message.get_if<Verified>()) {
    context.send(actors_.sync, Agree{start_.verification(*verified)});
  } else if (auto* prepared = message.get_if<Prepared>()) {
    context.send(actors_.sync, Agree{start_.restoring(std::move(*prepared))});
  } else if (auto* part = message.get_if<Durable>()) {
    durable(context, std::move(*part));
  } else if (auto* done = message.get_if<TrainingDone>()) {
    trained(context, std::move(*done));
  } else if (message.get_if<StopRequested>()) {
    stop_requested(context);
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

void Supervisor::handle_control(Context& context, int from, const std::string& text) {
  const auto order = ControlText::parse(text);
  if (order.verb() == "durable") {
    add_part(context, from, parse_durable(order));
  } else if (order.verb() == kFinishVerb) {
    if (!ending_.done) TUTTI_PROBE("end: rank 0 is through before this rank");
    ending_.agreed = parse_end(order).kind;
    finish_if_ready(context);
  } else if (order.verb() == kAbortVerb) {
    TUTTI_PROBE("end: another rank's failure ends this rank");
    context.abort(parse_end(order));
  } else if (order.verb() == kStopVerb) {
    TUTTI_PROBE("stop: another rank passes the request on");
    if (stage_ != Stage::kTraining)
      TUTTI_PROBE("stop: another rank's request comes before training or after");
    if (stop_requested_) TUTTI_PROBE("stop: requests of two ranks cross");
    prepare_to_stop(context);
  } else {
    TUTTI_ASSERT(false, "an unknown control packet: " + text);
  }
}

void Supervisor::durable(Context& context, Durable part) {
  logs_.sync(context, part.name);
  if (place_.rank == 0) return add_part(context, 0, std::move(part));
  context.send(actors_.sync, SendControl{0, durable_text(part)});
}

// On rank 0.
void Supervisor::add_part(Context& context, int rank, Durable part) {
  const auto conclusion = publisher_.add(context, rank, std::move(part));
  if (!conclusion) return;
  throw_if_failed(context);
  if (!conclusion->last) return;
  if (!conclusion->published) TUTTI_PROBE("end: the last checkpoint failed");
  ending_.agreed = conclusion->published ? EndKind::kDone : EndKind::kNoLastCheckpoint;
  finish_if_ready(context);
}

void Supervisor::stop_requested(Context& context) {
  if (const auto failure = failures_.check_stop_request(context.now())) {
    TUTTI_PROBE("stop: asked for while another rank is silent");
    return fail(context, *failure);
  }
  if (stop_requested_) TUTTI_PROBE("stop: a rank is asked twice");
  if (!stop_requested_) send_others(context, ControlText({kStopVerb}).text());
  prepare_to_stop(context);
}

// Training stops at the next verdict. Evaluations have no verdict: their loaders stop on every rank.
void Supervisor::prepare_to_stop(Context& context) {
  if (stop_requested_) return;
  stop_requested_ = true;
  log_.warning("asked to stop: finishes the step, writes a checkpoint and ends" +
               (after_interrupt_.empty() ? "" : "; " + after_interrupt_));
  context.send(actors_.compute, StopRequested{});
  for (const ActorId loader : actors_.eval_loaders) context.send(loader, StopRequested{});
}

std::optional<TimePoint> Supervisor::idle(Context& context) {
  if (stage_ == Stage::kJoining || stage_ == Stage::kFinished) return std::nullopt;
  if (const auto failure = failures_.check(context.now())) fail(context, *failure);
  if (place_.rank == 0 && stage_ == Stage::kTraining) look_into_folder(context);
  if (const std::string why = journal_whole_ ? recorder_.incomplete() : ""; !why.empty()) {
    journal_whole_ = false;
    log_.warning("the journal ends here, and training continues without it: " + why);
  }
  return context.now() + kPollInterval;
}

// On rank 0.
void Supervisor::look_into_folder(Context& context) {
  if (const std::string gone = folder_.gone(); !gone.empty())
    return fail(context, {std::nullopt, {EndKind::kOperatingError, gone}});
  if (!stop_requested_ && folder_.stop_requested())
    context.send(context.self(), StopRequested{});  // a message is recorded
}

void Supervisor::fail(Context& context, const FailureDetector::Failure& failure) {
  send_others_and_wait(context, failure.rank, end_order(kAbortVerb, failure.end));
  context.abort(failure.end);
}

void Supervisor::trained(Context& context, TrainingDone done) {
  if (done.alone) {
    const RankEnd end{done.failure->kind(),
                      "rank " + std::to_string(place_.rank) + ": " + done.failure->what()};
    send_others_and_wait(context, std::nullopt, end_order(kAbortVerb, end));
    throw OperatingError(end.reason, end.kind);
  }
  ending_.done = std::move(done);
  throw_if_failed(context);
  if (!ending_.done->failure && !ending_.done->checkpoint_follows) {
    TUTTI_PROBE("end: no last checkpoint is needed");
    return finish(context, EndKind::kDone);
  }
  finish_if_ready(context);
}

// On rank 0: a failure that all ranks know is thrown once the last checkpoint is concluded, then by each
// rank.
void Supervisor::throw_if_failed(Context& context) {
  if (place_.rank == 0 && ending_.done && ending_.done->failure &&
      publisher_.concluded() != ending_.done->checkpoints)
    TUTTI_PROBE("end: a run that gives up waits for its last checkpoint");
  if (place_.rank != 0 || !ending_.done || !ending_.done->failure ||
      publisher_.concluded() != ending_.done->checkpoints)
    return;
  send_others_and_wait(context, std::nullopt, end_order(kFinishVerb, {ending_.done->failure->kind()}));
  throw *ending_.done->failure;
}

// The end waits for this rank's Compute too: a sum with other ranks, or rank 0's sample of text, may be
// unfinished.
void Supervisor::finish_if_ready(Context& context) {
  if (!ending_.agreed || !ending_.done) return;
  if (ending_.done->failure) throw *ending_.done->failure;
  if (place_.rank == 0) send_others(context, end_order(kFinishVerb, {*ending_.agreed}));
  finish(context, *ending_.agreed);
}

void Supervisor::finish(Context& context, EndKind kind) {
  stage_ = Stage::kFinished;
  end_ = kind;
  if (kind == EndKind::kDone && ending_.done->stopped) {
    TUTTI_PROBE("end: stopped on request");
    end_ = EndKind::kStopped;
  }
  if (kind == EndKind::kDone && ending_.done->skipping) {
    TUTTI_PROBE("end: the last steps were all skipped");
    end_ = EndKind::kSkipping;
  }
  context.send(actors_.loader, Stop{});
  for (const ActorId loader : actors_.eval_loaders) context.send(loader, Stop{});
  for (const auto& log : actors_.logs) context.send(log.writer, FinishLog{});
  context.send(actors_.compute, Stop{});
  context.send(actors_.checkpointer, Stop{});
  context.send(actors_.sync, Stop{});
  context.stop();
}

void Supervisor::send_others(Context& context, const std::string& order) {
  for (int r = 0; r < place_.world; ++r)
    if (r != place_.rank) context.send(actors_.sync, SendControl{r, order});
}

// Before this rank and its Sync end. Waits no longer than kSendTimeout, since Sync may be stuck.
void Supervisor::send_others_and_wait(Context& context, std::optional<int> except, const std::string& order) {
  std::vector<Pending<ControlSent>> sent;
  for (int r = 0; r < place_.world; ++r)
    if (r != place_.rank && r != except)
      sent.push_back(context.request<ControlSent>(actors_.sync, SendControl{r, order}));
  const TimePoint until = context.now() + kSendTimeout;
  for (const auto& reply : sent)
    while (!reply.ready() && context.now() < until) context.sleep(std::chrono::milliseconds(1));
}

}  // namespace tutti
