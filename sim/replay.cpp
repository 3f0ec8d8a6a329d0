#include "sim/replay.h"

#include <ATen/Version.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include "actors/recipe_catalogs.h"
#include "actors/run_journal.h"
#include "actors/world.h"
#include "collectives/local_group.h"
#include "io/recipe.h"
#include "io/recorded_run.h"
#include "runtime/build_stamp.h"
#include "sim/dry_disk.h"
#include "sim/local_run.h"
#include "sim/local_transport.h"
#include "sim/replay_recorder.h"
#include "sim/sim_clock.h"
#include "sim/sim_scheduler.h"
#include "sim/sim_world.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

// Ends a replay where it was to end.
class ReplayOver : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// The journals of all ranks of one start.
class Record final : public DeliveryScript {
 public:
  explicit Record(const std::string& folder) : folder_(folder) {
    const RecordedJob first = open(folder, 0).head();
    for (int r = 1; r < first.world; ++r) open(folder, r);
    for (const auto& rank : ranks_)
      if (rank->head().nonce != first.nonce || rank->head().world != first.world)
        throw UserError(folder + ": the journals are not of one run");
  }

  int world() const { return static_cast<int>(ranks_.size()); }
  RecordedRank& rank(int r) { return *ranks_[r]; }
  RecordedSteps steps() const { return recorded_steps(journal_path(folder_, 0)); }
  const RecordedJob& head() const { return ranks_[0]->head(); }

  const Line* next(int rank) override { return ranks_[rank]->next_delivery(); }
  void taken(int rank) override { ranks_[rank]->taken(); }
  std::optional<Message> from_outside(int rank) override {
    const Line* line = next(rank);
    if (line->message != StopRequested::kName || (!line->from.empty() && line->from != line->to))
      return std::nullopt;
    return Message(StopRequested{});
  }

  // Whether a rank that has come to the end of its record did not end well: it was killed, its record breaks
  // off, or it gave up another rank for its silence. What others then waited for is not in the record.
  bool ended_early() {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
      return !rank->next_delivery() && !rank->end().starts_with("exit code");
    });
  }

  // The rank that has not come to the end of its record, and what it waits for; "" when all have.
  std::string rest() {
    for (int r = 0; r < world(); ++r) {
      if (const Line* line = next(r)) {
        const std::string from = line->from.empty() ? "outside" : std::string(line->from);
        return "rank " + std::to_string(r) + ", " + std::string(line->to) + ": the record goes on with " +
               std::string(line->message) + " from " + from + ", which does not come";
      }
    }
    return "";
  }

 private:
  RecordedRank& open(const std::string& folder, int rank) {
    ranks_.push_back(std::make_unique<RecordedRank>(journal_path(folder, rank)));
    return *ranks_.back();
  }
  std::string folder_;
  std::vector<std::unique_ptr<RecordedRank>> ranks_;
};

struct ReplayedRank {
  std::unique_ptr<Group> group;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<ReplayRecorder> recorder;
  RunOutcome outcome;
};

CheckpointPiece whole_piece(const std::string& name, const at::Tensor& tensor) {
  const Shape shape = tensor.sizes().vec();
  return {name, shape, Shape(shape.size(), 0), shape, tensor.scalar_type(), tensor.contiguous()};
}

class Replay {
 public:
  Replay(const ReplayOptions& options, Record& record)
      : options_(options), record_(record), job_(job()), network_(job_.world) {}

  ReplayResult run();

 private:
  Job job();
  void before_step(int rank, int64_t step, const Trainee& trainee, const Batch& batch);
  void require_record();
  void require_step(const char* option, const std::optional<int64_t>& step);
  Moved moved() const { return {record_.head().run_dir, options_.run_dir}; }
  bool exact() const;
  void run_ranks();
  std::string summary() const;
  std::string ends() const;
  std::string warnings() const;

  const ReplayOptions& options_;
  Record& record_;
  Job job_;
  LocalNetwork network_;
  std::vector<ReplayedRank> ranks_;
  int dumped_ = 0;
  std::set<int> past_;  // ranks that have come to the step after the last
};

Job Replay::job() {
  const RecordedJob& head = record_.head();
  if (head.own_listeners)
    throw UserError(options_.run_dir +
                    ": a program trained it with algorithms or callbacks of its own, which a replay does not "
                    "have");
  const Setting recipe = parse_recipe(head.recipe, options_.run_dir + "/recipe.toml");
  JobOptions options;
  options.world = record_.world();
  options.run_dir = options_.run_dir;
  options.resume = head.resume;
  options.nonce = head.nonce;
  options.makes_folders = false;
  for (int r = 0; r < record_.world(); ++r)
    if (head.host != kLocalHost) options.hosts.push_back(record_.rank(r).head().host);
  Job job = make_job(resolve_recipe(recipe), options);
  job.before_step = [this](int rank, int64_t step, const Trainee& trainee, const Batch& batch) {
    before_step(rank, step, trainee, batch);
  };
  return job;
}

void Replay::before_step(int rank, int64_t step, const Trainee& trainee, const Batch& batch) {
  if (options_.until && step > *options_.until) past_.insert(rank);
  if (static_cast<int>(past_.size()) == record_.world()) throw ReplayOver("");
  if (!options_.break_at || step != *options_.break_at) return;
  PosixDisk disk;
  const std::string folder = options_.run_dir + "/replay-step-" + std::to_string(step);
  auto pieces = checkpoint_pieces(trainee, record_.world(), rank);
  for (const auto& [name, tensor] : batch.leaves()) pieces.push_back(whole_piece("batch/" + name, tensor));
  write_rank_file(disk, folder, rank, pieces);
  if (++dumped_ == record_.world())
    throw ReplayOver("; the state before step " + std::to_string(step) + " is in " + folder);
}

// Whether the bits are promised to be those of the record.
bool Replay::exact() const {
  return job_.recipe.at("collectives").at("reduction").text() != "native" &&
         record_.head().cpu == at::get_cpu_capability();
}

void Replay::run_ranks() {
  ProcessStateSwitch states(job_.world);
  SimScheduler::Options scheduling;
  scheduling.on_switch = [&states](int rank) { states.enter(rank); };
  scheduling.script = &record_;
  SimScheduler scheduler(scheduling);
  SimClock clock(scheduler);
  DryDisk disk;
  const auto fabric = LocalFabric::make(job_.world);
  const auto log = make_null_log();
  ranks_.resize(job_.world);
  for (int r = 0; r < job_.world; ++r) {
    ReplayedRank& rank = ranks_[r];
    rank.group = fabric->group(r);
    rank.transport = network_.transport(r);
    const bool compare = record_.head().level == "full" && (options_.rank < 0 || options_.rank == r);
    rank.recorder = std::make_unique<ReplayRecorder>(
        record_.rank(r), ReplayRecorder::Options{compare, exact(), options_.until, moved()});
    const RankPlace place{r, r, "this process", false, /*quiet=*/true};
    add_rank(scheduler, job_, place, {*rank.group, *rank.transport, disk, clock, *log, *rank.recorder},
             rank.outcome);
  }
  scheduler.run();
}

void Replay::require_record() {
  if (record_.head().host == kSimulatedHost)
    throw UserError(options_.run_dir + ": the run was simulated; tutti simulate repeats it");
  if (options_.rank >= record_.world() || options_.rank < -1)
    throw UserError("--rank " + std::to_string(options_.rank) + ": the run has ranks 0 to " +
                    std::to_string(record_.world() - 1));
  if (options_.break_at && options_.until && *options_.break_at > *options_.until)
    throw UserError("--break-at step=" + std::to_string(*options_.break_at) +
                    " lies behind --until step=" + std::to_string(*options_.until));
  require_step("--until", options_.until);
  require_step("--break-at", options_.break_at);
  const auto chosen = record_.rank(0).coming_answer(ReplayRecorder::kCheckpoint);
  if (!chosen || chosen->empty()) return;
  const std::string folder = moved()(*chosen);
  if (!PosixDisk().exists(folder))
    throw UserError(folder +
                    ": the checkpoint that this start went on from is not there any more, so it cannot " +
                    "be replayed");
}

// All ranks come to the same steps.
void Replay::require_step(const char* option, const std::optional<int64_t>& step) {
  if (!step) return;
  const RecordedSteps has = record_.steps();
  if (*step >= has.first && *step <= has.last && has.first > 0) return;
  const std::string steps =
      has.first == 0 ? "no steps" : "steps " + std::to_string(has.first) + " to " + std::to_string(has.last);
  throw UserError(std::string(option) + " step=" + std::to_string(*step) + ": the record of this start has " +
                  steps);
}

ReplayResult Replay::run() {
  require_record();
  begin_process(job_.recipe);
  try {
    run_ranks();
  } catch (const ReplayDifference& error) {
    return {false, error.what() + warnings()};
  } catch (const ReplayOver& over) {
    return {true, summary() + over.what() + warnings()};
  } catch (const std::exception& error) {
    const std::string rest = record_.rest();
    if (!rest.empty() && record_.ended_early()) return {true, summary() + ends() + "; " + rest + warnings()};
    if (!rest.empty()) return {false, rest + " (" + error.what() + ")" + warnings()};
    if (!record_.ended_early()) return {false, summary() + "; and then: " + error.what() + warnings()};
  }
  if (options_.break_at)
    return {false, "step " + std::to_string(*options_.break_at) + " was not come to; " + summary() + ends()};
  return {true, summary() + ends() + warnings()};
}

std::string Replay::summary() const {
  int64_t deliveries = 0, compared = 0;
  for (int r = 0; r < job_.world; ++r) {
    deliveries += record_.rank(r).deliveries();
    compared += ranks_[r].recorder->compared();
  }
  const std::string what = exact() ? " digests, all equal" : " losses, all equal to a tolerance";
  return "replayed " + std::to_string(job_.world) + (job_.world == 1 ? " rank, " : " ranks, ") +
         std::to_string(deliveries) + " messages; " +
         (record_.head().level == "full" ? std::to_string(compared) + what
                                         : "no digests were recorded (journal.level = \"control\")");
}

// Of a rank that waits for others whose record is shorter, what its own record says is still to come.
std::string Replay::ends() const {
  std::string text;
  for (int r = 0; r < job_.world; ++r) {
    RecordedRank& rank = record_.rank(r);
    if (rank.next_delivery()) text += "; rank " + std::to_string(r) + " was not replayed further";
    rank.read_to_end();
    if (!rank.end().starts_with("exit code"))
      text += "; the record of rank " + std::to_string(r) + " ends " + rank.text_of_end();
  }
  return text;
}

std::string Replay::warnings() const {
  const RecordedJob& head = record_.head();
  std::string text;
  const std::string build = build_and_commit("tutti");
  if (head.build != build)
    text += "\nthe run was recorded by " + head.build + ", this is " + build +
            ": what differs may be the code's doing";
  const std::string cpu = at::get_cpu_capability();
  if (head.cpu != cpu)
    text += "\nthe run computed with " + head.cpu + ", this machine with " + cpu +
            ": bits may differ, and losses were compared to a "
            "tolerance, nothing else";
  if (job_.recipe.at("collectives").at("reduction").text() == "native")
    text += "\nnative reduction promises no bits: losses were compared to a tolerance, nothing else";
  return text;
}

}  // namespace

ReplayResult replay(const ReplayOptions& options) {
  Record record(recorded_start(options.run_dir, options.start));
  return Replay(options, record).run();
}

}  // namespace tutti
