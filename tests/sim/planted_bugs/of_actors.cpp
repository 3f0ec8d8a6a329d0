#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/checkpointer.h"
#include "actors/loader.h"
#include "sim/environment/sim_disk.h"
#include "tests/sim/planted_bugs/planted_bugs.h"

namespace tutti {
namespace {

// Hands a rank's messages on after `change` has seen them.
class Between final : public Actor {
 public:
  using Change = std::function<void(Message&)>;
  Between(std::unique_ptr<Actor> actor, Change change)
      : actor_(std::move(actor)), change_(std::move(change)) {}
  void start(Context& context) override { actor_->start(context); }
  void receive(Context& context, Envelope& envelope) override {
    change_(envelope.message);
    actor_->receive(context, envelope);
  }
  std::optional<TimePoint> idle(Context& context) override { return actor_->idle(context); }

 private:
  std::unique_ptr<Actor> actor_;
  Change change_;
};

// A loader in whose place `change` has seen the messages: of this rank, -1 = of all.
SimSeams loader_bug(Between::Change change, int of_rank = -1) {
  SimSeams seams;
  const auto recorder = std::make_shared<RingRecorder>();
  seams.actors = [=](TokenScheduler& scheduler, const RankActors& actors, const Job& job, int rank) {
    if (of_rank >= 0 && rank != of_rank) return;
    auto loader = std::make_unique<Loader>(
        job.train, [&job](const RankTopology& place) { return job.train_sampler(place); }, actors.compute,
        *recorder);
    scheduler.install(actors.loader, std::make_unique<Between>(std::move(loader), change));
  };
  return seams;
}

SimSeams skips_a_batch_on_resume() {
  return loader_bug([](Message& message) {
    if (auto* start = message.get_if<Start>())
      if (start->position.batch > 0 && start->position.batch < 4) ++start->position.batch;
  });
}

SimSeams starts_the_epoch_again_on_resume() {
  return loader_bug([](Message& message) {
    if (auto* start = message.get_if<Start>()) start->position.batch = 0;
  });
}

// Without a batch in reserve, so that each credit counts.
void read_one_ahead(Job& job, int) { job.settings.train_data.prefetch = 1; }

// One of a loader's credits is swallowed.
SimSeams loses_a_credit() {
  constexpr int kWhich = 4;
  const auto swallow = [taken = 0](Message& message) mutable {
    if (auto* credit = message.get_if<Credit>())
      if (++taken == kWhich) credit->count = 0;
  };
  SimSeams seams = loader_bug(swallow, /*of_rank=*/1);
  seams.job = read_one_ahead;
  return seams;
}

SimSeams counts_every_credit() {
  SimSeams seams;
  seams.job = read_one_ahead;
  return seams;
}

// A checkpointer that says Durable when the file is in memory, and writes it when it comes to that.
class SaysDurableTooSoon final : public Actor {
 public:
  SaysDurableTooSoon(Disk& disk, const std::string& checkpoints, ActorId supervisor)
      : disk_(disk), checkpoints_(checkpoints), checkpointer_(*memory_, checkpoints, supervisor, recorder_) {
    memory_->make_folders(checkpoints);
  }

  void receive(Context& context, Envelope& envelope) override {
    if (auto* start = envelope.message.get_if<Start>()) nonce_ = start->nonce;
    if (auto* snapshot = envelope.message.get_if<Snapshot>())
      folders_.insert(unfinished_folder(checkpoints_, snapshot->name, nonce_));
    checkpointer_.receive(context, envelope);
    for (const std::string& folder : folders_) write_down(context, folder);
  }

 private:
  void write_down(Context& context, const std::string& folder) {
    for (const std::string& name : memory_->list(folder)) {
      const std::string path = folder + "/" + name;
      context.sleep(kBehind);
      disk_.make_folders(folder);
      const auto file = disk_.open(path, true);
      file->append(memory_->read(path));
      file->sync();
      disk_.sync_folder(folder);
      memory_->remove_all(path);
    }
  }

  static constexpr Nanoseconds kBehind = std::chrono::milliseconds(2);

  Disk& disk_;
  std::string checkpoints_, nonce_;
  SimDisk in_memory_;
  const std::unique_ptr<Disk> memory_ = in_memory_.view(0);
  RingRecorder recorder_;
  Checkpointer checkpointer_;
  std::set<std::string> folders_;
};

SimSeams says_durable_too_soon() {
  SimSeams seams;
  const auto disks = std::make_shared<std::map<int, Disk*>>();
  seams.disk = [disks](std::unique_ptr<Disk> disk, int rank) {
    (*disks)[rank] = disk.get();
    return disk;
  };
  seams.actors = [disks](TokenScheduler& scheduler, const RankActors& actors, const Job& job, int rank) {
    scheduler.install(actors.checkpointer, std::make_unique<SaysDurableTooSoon>(
                                               *disks->at(rank), job.checkpoints, actors.supervisor));
  };
  return seams;
}

// Compute waits for the Checkpointer, which waits for Compute.
SimSeams checkpointer_that_asks_back() {
  class Asks final : public Actor {
   public:
    explicit Asks(ActorId compute) : compute_(compute) {}
    void receive(Context& context, Envelope& envelope) override {
      if (envelope.message.get_if<ReserveCopies>()) context.ask<Noted>(compute_, StopRequested{});
    }

   private:
    ActorId compute_;
  };
  SimSeams seams;
  seams.actors = [](TokenScheduler& scheduler, const RankActors& actors, const Job&, int rank) {
    if (rank == 0) scheduler.install(actors.checkpointer, std::make_unique<Asks>(actors.compute));
  };
  return seams;
}

// Sends without end from the start, and looks at no message meanwhile.
class Floods final : public Actor {
 public:
  explicit Floods(ActorId whom) : whom_(whom) {}
  void start(Context& context) override {
    for (int i = 0; i < 10'000; ++i) context.send(whom_, Logged{});
  }
  void receive(Context&, Envelope&) override {}

 private:
  ActorId whom_;
};

SimSeams two_that_flood_each_other() {
  SimSeams seams;
  seams.actors = [](TokenScheduler& scheduler, const RankActors& actors, const Job&, int rank) {
    if (rank != 0) return;
    const ActorId log = actors.logs.front().writer;
    scheduler.install(log, std::make_unique<Floods>(actors.checkpointer));
    scheduler.install(actors.checkpointer, std::make_unique<Floods>(log));
  };
  return seams;
}

}  // namespace

std::vector<Bug> bugs_of_actors() {
  return {
      {"ResumingSkipsABatch", "death", skips_a_batch_on_resume},
      {"ResumingStartsTheEpochAgain", "death", starts_the_epoch_again_on_resume},
      {"ACreditIsLost", "", loses_a_credit, counts_every_credit, "hangs"},
      {"DurableIsSaidTooSoon", "power_loss", says_durable_too_soon},
      {"TwoActorsWaitForEachOther", "", checkpointer_that_asks_back, {}, "actors wait for each other"},
      {"TwoActorsFloodEachOther", "", two_that_flood_each_other, {}, "full mailboxes block each other"},
  };
}

}  // namespace tutti
