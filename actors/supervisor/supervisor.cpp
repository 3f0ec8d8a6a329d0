#include "actors/supervisor/supervisor.h"

#include <algorithm>

#include "actors/messages/control_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(100);
constexpr Nanoseconds kSilentAfter = std::chrono::milliseconds(1500);  // three heartbeats
constexpr Nanoseconds kNewsLeaveWithin = std::chrono::milliseconds(200);
constexpr const char* kOwn = "own";
constexpr const char* kStopVerb = "stop";
constexpr const char* kFinishVerb = "finish";
constexpr const char* kAbortVerb = "abort";

}  // namespace

Supervisor::Supervisor(const Job& job, Place place, const RankActors& actors, Disk& disk, Log& log,
                       Recorder& recorder, RunOutcome& outcome)
    : job_(job),
      place_(std::move(place)),
      actors_(actors),
      log_(log),
      recorder_(recorder),
      outcome_(outcome),
      folder_(disk, job.run_dir, job.checkpoints),
      store_(disk, log, job),
      logs_(actors.logs, log, recorder) {}

void Supervisor::start(Context& context) {
  const bool first = place_.rank == 0;
  for (int r = 0; r < job_.world; ++r)
    if (r != place_.rank && (first || r == 0)) peers_[r].heard = context.now();
  looked_ = context.now();
  say(context, first ? open_run_folder(context) : Statement());
}

void Supervisor::say(Context& context, const Statement& statement) {
  context.send(actors_.sync, Agree{statement});
}

Statement Supervisor::open_run_folder(Context& context) {
  try {
    folder_.open(context, place_.host);
    const CheckpointStore::Choice chosen = choose();
    folder_.show(job_.nonce);
    return {.text = ControlText({chosen.folder, chosen.own ? kOwn : ""}).text()};
  } catch (const std::exception& error) {
    return {.trouble = error.what()};
  }
}

// Whose it is need be recorded only where it may be either's.
CheckpointStore::Choice Supervisor::choose() {
  CheckpointStore::Choice chosen = store_.choose(job_.from);
  chosen.folder = recorder_.input(RecordedInput::kCheckpoint, std::move(chosen.folder));
  const bool either = !job_.from.autoresume.is_none() && !job_.from.load_path.is_none();
  if (either)
    chosen.own =
        recorder_.input(RecordedInput::kCheckpointOwner, std::string(chosen.own ? kOwn : "")) == kOwn;
  return chosen;
}

void Supervisor::agreed(Context& context, const std::vector<Statement>& statements) {
  if (stage_ == Stage::kOpening) {
    require_agreement(statements);
    opened(context, ControlText::parse(statements[0].text));
  } else {
    if (place_.rank == 0) folder_.hide();
    require_agreement(statements);
    begin(context);
  }
}

void Supervisor::opened(Context& context, const ControlText& opening) {
  stage_ = Stage::kPreparing;
  start_ = Prepare{opening.field(0), opening.field(1) == kOwn};
  if (!folder_.shows(job_.nonce))
    trouble_ = "the run folder " + folder_.path() + " is not shared: host " + place_.host +
               " does not see the file that rank 0 wrote there";
  context.send(actors_.compute, Prepare(start_));
}

void Supervisor::prepared(Context& context, Prepared ready) {
  if (trouble_.empty()) trouble_ = ready.error;
  prepared_ = std::move(ready);
  say(context, {.trouble = trouble_});
}

void Supervisor::begin(Context& context) {
  stage_ = Stage::kTraining;
  if (place_.rank == 0) {
    store_.begin(prepared_.step > 0 ? start_.checkpoint : "");
    folder_.take(job_.recipe_text);
    if (const int keep = job_.settings.journal.keep; keep > 0) folder_.prune_journals(keep);
    log_.info(begin_text());
  }
  const Start go{prepared_.position, job_.nonce};
  context.send(actors_.checkpointer, go);
  context.send(actors_.compute, go);
  context.send(actors_.loader, go);
}

std::string Supervisor::begin_text() const {
  if (start_.checkpoint.empty()) return "training starts";
  if (prepared_.step == 0) return "training starts from " + start_.checkpoint;
  return "resumes from " + start_.checkpoint + " after step " + std::to_string(prepared_.step);
}

// Every rank throws the same error, that of the lowest rank that has one; the one who prints it is rank 0.
void Supervisor::require_agreement(const std::vector<Statement>& statements) const {
  for (const Statement& one : statements)
    if (!one.trouble.empty()) throw UserError(one.trouble, EndKind::kRefused);
}

void Supervisor::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* packet = message.get_if<ControlReceived>()) {
    control(context, packet->from, packet->text);
  } else if (auto* heard = message.get_if<Heard>()) {
    for (auto& [rank, peer] : heard->peers) peers_[rank] = std::move(peer);
    context.reply(envelope, Noted{});
  } else if (auto* agreement = message.get_if<Agreed>()) {
    agreed(context, agreement->statements);
  } else if (auto* ready = message.get_if<Prepared>()) {
    prepared(context, std::move(*ready));
  } else if (auto* part = message.get_if<Durable>()) {
    logs_.sync(context, part->name);
    if (place_.rank == 0) {
      durable(context, 0, std::move(*part));
    } else {
      context.send(actors_.sync, SendControl{0, durable_text(*part)});
    }
  } else if (auto* done = message.get_if<TrainingDone>()) {
    trained(context, std::move(*done));
  } else if (message.get_if<StopRequested>()) {
    stop_requested(context);
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

void Supervisor::control(Context& context, int from, const std::string& text) {
  const auto order = ControlText::parse(text);
  if (order.verb() == "durable") {
    durable(context, from, parse_durable(order));
  } else if (order.verb() == kFinishVerb) {
    exit_code_ = parse_end(order).kind;
    finish_as_told(context);
  } else if (order.verb() == kAbortVerb) {
    context.abort(parse_end(order));
  } else if (order.verb() == kStopVerb) {
    prepare_to_stop(context);
  } else {
    TUTTI_ASSERT(false, "a control packet that nobody sends: " + text);
  }
}

// Rank 0: the checkpoint is published once every rank has reported.
void Supervisor::durable(Context& context, int rank, Durable part) {
  const std::string name = part.name;
  auto& parts = unpublished_[name].parts;
  parts[rank] = std::move(part);
  if (static_cast<int>(parts.size()) == job_.world) conclude(context, name);
}

void Supervisor::conclude(Context& context, const std::string& name) {
  Unpublished whole = std::move(unpublished_[name]);
  unpublished_.erase(name);
  const std::string error = recorder_.input(RecordedInput::kPublishError, publish(name, whole));
  if (error.empty()) {
    log_.info("checkpoint " + name + " is published");
  } else {
    ++outcome_.failed_checkpoints;
    log_.warning("checkpoint " + name + " failed (" + std::to_string(outcome_.failed_checkpoints) +
                 " so far), the last good one stays: " + error);
    store_.discard(unfinished_folder(job_.checkpoints, name, job_.nonce));
  }
  context.send(actors_.checkpointer, Concluded{});
  recorder_.record({context.now(), error.empty() ? TraceKind::kPublished : TraceKind::kCheckpointFailed});
  ++concluded_;
  end_if_failed(context);
  if (!whole.parts.begin()->second.last) return;
  exit_code_ = error.empty() ? EndKind::kDone : EndKind::kNoLastCheckpoint;
  finish_as_told(context);
}

std::string Supervisor::publish(const std::string& name, Unpublished& whole) {
  CheckpointManifest manifest;
  for (auto& [rank, part] : whole.parts) {
    if (!part.error.empty()) return "rank " + std::to_string(rank) + ": " + part.error;
    manifest.files.push_back(std::move(part.file));
  }
  for (auto& [rank, part] : whole.parts)  // of the first that saves any
    if (manifest.state.empty()) manifest.state = std::move(part.state);
  return store_.publish(name, unfinished_folder(job_.checkpoints, name, job_.nonce), manifest);
}

// mpirun sends SIGTERM to the survivors of a lost rank too: there is nothing to finish then.
void Supervisor::stop_requested(Context& context) {
  forgive_own_absence(context);
  for (const auto& [rank, peer] : peers_) {
    if (context.now() - peer.heard > kSilentAfter) {
      fail(context, EndKind::kSilence, rank,
           "is silent while rank " + std::to_string(place_.rank) + " is told to stop");
      return;
    }
  }
  if (!stop_requested_) tell_all(context, ControlText({kStopVerb}).text());
  prepare_to_stop(context);
}

// The next verdict of all ranks stops the training; an evaluation has none, and is cut short on each.
void Supervisor::prepare_to_stop(Context& context) {
  if (stop_requested_) return;
  stop_requested_ = true;
  log_.info("asked to stop: finishes the step, checkpoints, and ends");
  context.send(actors_.compute, StopRequested{});
  for (const ActorId loader : actors_.eval_loaders) context.send(loader, StopRequested{});
}

std::optional<TimePoint> Supervisor::idle(Context& context) {
  if (stage_ == Stage::kFinished) return std::nullopt;
  watch(context);
  const bool first = place_.rank == 0;
  if (first && stage_ == Stage::kTraining && !stop_requested_ && folder_.stop_requested())
    context.send(context.self(), StopRequested{});  // a message is recorded
  return context.now() + kPollInterval;
}

// While this Supervisor was busy (a slow disk), or this process stood still, it could not hear: nobody is
// silent for that, and no collective hangs.
void Supervisor::forgive_own_absence(Context& context) {
  const Nanoseconds away = context.now() - looked_;
  looked_ = context.now();
  if (away < kSilentAfter / 2) return;
  for (auto& [rank, peer] : peers_) peer.heard = std::min(peer.heard + away, context.now());
  all_wait_since_ = std::min(all_wait_since_ + away, context.now());
}

void Supervisor::watch(Context& context) {
  forgive_own_absence(context);
  for (auto& [rank, peer] : peers_) {
    const Nanoseconds silent = context.now() - peer.heard;
    if (silent > job_.settings.train.hang_timeout) {
      fail(context, EndKind::kHang, rank,
           "has not been heard for " + std::to_string(static_cast<int>(seconds(silent))) + " s");
      return;
    }
    if (peer.last.waiting || peer.last.age_s <= seconds(job_.settings.train.hang_timeout)) continue;
    if (!peer.last.unhurried()) {
      fail(context, EndKind::kHang, rank, "hangs");
      return;
    }
    mention(context, rank);
  }
  watch_all_wait(context);
}

// A collective that does not end: every rank waits, so that none is to blame.
void Supervisor::watch_all_wait(Context& context) {
  if (place_.rank != 0 || static_cast<int>(peers_.size()) < job_.world) return;
  std::string all;
  for (const auto& [rank, peer] : peers_) {
    all += (all.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": step " +
           std::to_string(peer.last.step) + ", " + name(peer.last.last);
    if (!peer.last.waiting) all.clear();
    if (all.empty()) break;
  }
  if (all.empty() || all != all_wait_) all_wait_since_ = context.now();
  all_wait_ = all;
  if (context.now() - all_wait_since_ <= job_.settings.train.hang_timeout) return;
  const RankEnd hang{EndKind::kHang,
                     "a collective hangs: every rank waits for it; the last they did: " + all};
  tell_others(context, /*except=*/0, end_order(kAbortVerb, hang));
  context.abort(hang);
}

// What may take as long as it takes is at least told.
void Supervisor::mention(Context& context, int rank) {
  TimePoint& next = next_mention_[rank];
  if (context.now() < next) return;
  next = context.now() + job_.settings.train.hang_timeout;
  log_.warning("still waits for rank " + std::to_string(rank) + ": " + peers_[rank].last.text());
}

void Supervisor::fail(Context& context, EndKind kind, int rank, const std::string& why) {
  Heartbeat last = peers_[rank].last;
  last.age_s += seconds(context.now() - peers_[rank].heard);
  const RankEnd end{kind, "rank " + std::to_string(rank) + " " + why + "; the last it did: " + last.text()};
  tell_others(context, rank, end_order(kAbortVerb, end));
  context.abort(end);
}

// Before this rank goes down, and its Sync with it; a Sync that is stuck is not waited for.
void Supervisor::tell_others(Context& context, int except, const std::string& news) {
  std::vector<Pending<ControlSent>> sent;
  for (int r = 0; r < job_.world; ++r)
    if (r != place_.rank && r != except)
      sent.push_back(context.request<ControlSent>(actors_.sync, SendControl{r, news}));
  const TimePoint until = context.now() + kNewsLeaveWithin;
  for (const auto& one : sent)
    while (!one.ready() && context.now() < until) context.sleep(std::chrono::milliseconds(1));
}

void Supervisor::trained(Context& context, TrainingDone done) {
  if (done.alone) fail_all(context, *done.failure);
  done_ = std::move(done);
  end_if_failed(context);
  if (!done_->failure && !done_->checkpoint_follows) return finish(context, EndKind::kDone);
  finish_as_told(context);
}

// Once this rank's Compute is done: a sum that it takes part in, or rank 0's sample of text, may still be on
// its way.
void Supervisor::finish_as_told(Context& context) {
  if (!exit_code_ || !done_) return;
  if (done_->failure) throw *done_->failure;
  if (place_.rank == 0) tell_all(context, end_order(kFinishVerb, {*exit_code_}));
  finish(context, *exit_code_);
}

void Supervisor::tell_all(Context& context, const std::string& news) {
  for (int r = 0; r < job_.world; ++r)
    if (r != place_.rank) context.send(actors_.sync, SendControl{r, news});
}

void Supervisor::fail_all(Context& context, const OperatingError& why) {
  const RankEnd end{why.kind(), "rank " + std::to_string(place_.rank) + ": " + why.what()};
  tell_others(context, place_.rank, end_order(kAbortVerb, end));
  throw OperatingError(end.reason, end.kind);
}

// Each rank throws the failure itself, once rank 0 has seen the last checkpoint off.
void Supervisor::end_if_failed(Context& context) {
  if (place_.rank != 0 || !done_ || !done_->failure || concluded_ != done_->checkpoints) return;
  tell_others(context, place_.rank, end_order(kFinishVerb, {done_->failure->kind()}));
  throw *done_->failure;
}

void Supervisor::finish(Context& context, EndKind kind) {
  stage_ = Stage::kFinished;
  outcome_.end = kind == EndKind::kDone && done_->stopped ? EndKind::kStopped : kind;
  context.send(actors_.loader, Stop{});
  for (const ActorId loader : actors_.eval_loaders) context.send(loader, Stop{});
  for (const auto& log : actors_.logs) context.send(log.writer, Stop{});
  context.send(actors_.compute, Stop{});
  context.send(actors_.checkpointer, Stop{});
  context.send(actors_.sync, Stop{});
  context.stop();
}

}  // namespace tutti
