#include "sim/replay/replay.h"

#include <ATen/Version.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/journal/recorded_run.h"
#include "job/recipe_catalogs.h"
#include "job/run_journal.h"
#include "recipe/toml_reader.h"
#include "runtime/process/this_process.h"
#include "sim/environment/dry_disk.h"
#include "sim/environment/local_ranks.h"
#include "sim/environment/sim_clock.h"
#include "sim/replay/replay_recorder.h"
#include "sim/simulate/sim_world.h"

namespace tutti {
namespace {

// Ends a replay where it was to end.
class ReplayOver : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// Ends a replay that cannot write what it was asked for.
class StateNotWritten : public OperatingError {
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
  RecordedSteps steps(int r) const { return recorded_steps(journal_path(folder_, r)); }
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
  // off, or it gave up another rank for its silence. What others then waited for is not in the record, nor
  // what a logger that hung did not come to.
  bool ended_early() {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return !rank->next_delivery() && !rank->ended_with_logs(); });
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

CheckpointPiece whole_piece(const std::string& name, const at::Tensor& tensor) {
  const Shape shape = tensor.sizes().vec();
  return {name, shape, Shape(shape.size(), 0), shape, tensor.scalar_type(), tensor.contiguous()};
}

class Replay {
 public:
  Replay(const ReplayOptions& options, Record& record)
      : options_(options), record_(record), job_(job()), begun_(job_.world) {}

  ReplayResult run();

 private:
  Job job();
  void before_step(int rank, int64_t step, const Trainee& trainee, const Batch& batch);
  void require_record();
  void require_step(const char* option, const std::optional<int64_t>& step);
  Moved moved() const { return {record_.head().run_dir, options_.run_dir}; }
  bool digests() const { return record_.head().level == JournalLevel::kFull; }
  bool exact() const;
  void run_ranks();
  ReplayResult came_to_end();
  ReplayResult broke_off(const std::string& why);
  std::string fell_short() const;
  std::string missing(bool whole);
  std::string other_processors() const;
  std::string summary() const;
  std::string ends() const;
  std::string warnings() const;

  const ReplayOptions& options_;
  Record& record_;
  Job job_;
  std::vector<std::shared_ptr<ReplayRecorder>> recorders_;  // by rank
  std::vector<int64_t> begun_;                              // by rank, the last step
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
  begun_[rank] = step;
  if (options_.until && step > *options_.until) past_.insert(rank);
  if (static_cast<int>(past_.size()) == record_.world()) throw ReplayOver("");
  if (!options_.break_at || step != *options_.break_at) return;
  PosixDisk disk;
  const std::string folder = options_.run_dir + "/replay-step-" + std::to_string(step);
  auto pieces = checkpoint_pieces(trainee, record_.world(), rank);
  for (const auto& [name, tensor] : batch.leaves()) pieces.push_back(whole_piece("batch/" + name, tensor));
  try {
    write_rank_file(disk, folder, rank, pieces);
  } catch (const OperatingError& error) {
    throw StateNotWritten("the state before step " + std::to_string(step) +
                          " cannot be written: " + error.what());
  }
  if (++dumped_ == record_.world())
    throw ReplayOver("; the state before step " + std::to_string(step) + " is in " + folder);
}

// Whether the bits are promised to be those of the record.
bool Replay::exact() const {
  return job_.settings.collectives.reduction == Reduction::kOrdered && other_processors().empty();
}

void Replay::run_ranks() {
  LocalRanks ranks(job_.world, {.script = &record_});
  const auto clock = std::make_shared<SimClock>(ranks.scheduler());
  const auto disk = std::make_shared<DryDisk>();
  for (int r = 0; r < job_.world; ++r) {
    const bool compare = digests() && (options_.rank < 0 || options_.rank == r);
    recorders_.push_back(std::make_shared<ReplayRecorder>(
        record_.rank(r), ReplayRecorder::Options{compare, exact(), options_.until, moved()}));
    RankEnvironment& environment = ranks.environments()[r];
    environment.clock = clock;
    environment.disk = disk;
    environment.recorder = recorders_[r];
    add_rank(ranks.scheduler(), job_, environment);
  }
  ranks.scheduler().run();
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
  const auto chosen = record_.rank(0).next_input(RecordedInput::kCheckpoint);
  if (!chosen || chosen->empty()) return;
  const std::string folder = moved()(*chosen);
  if (!PosixDisk().exists(folder))
    throw UserError(folder +
                    ": the checkpoint that this start went on from is not there any more, so it cannot " +
                    "be replayed");
  try {
    read_checkpoint(PosixDisk(), folder);
  } catch (const OperatingError& error) {
    throw UserError(std::string("the checkpoint that this start went on from cannot be read any more: ") +
                    error.what());
  }
}

// All ranks come to the same steps, but a rank's record may break off before the others'.
void Replay::require_step(const char* option, const std::optional<int64_t>& step) {
  if (!step) return;
  RecordedSteps all;
  std::vector<int64_t> last;  // by rank
  for (int r = 0; r < record_.world(); ++r) {
    const RecordedSteps has = record_.steps(r);
    last.push_back(has.last);
    if (has.last > all.last) all = has;
  }
  const std::string asked = std::string(option) + " step=" + std::to_string(*step) + ": the record of ";
  if (all.first == 0) throw UserError(asked + "this start has no steps");
  if (*step < all.first || *step > all.last)
    throw UserError(asked + "this start has steps " + std::to_string(all.first) + " to " +
                    std::to_string(all.last));
  for (int r = 0; r < record_.world(); ++r)
    if (last[r] < *step)
      throw UserError(asked + "rank " + std::to_string(r) + " breaks off " +
                      (last[r] == 0 ? "before its first step" : "in step " + std::to_string(last[r])));
}

ReplayResult Replay::run() {
  require_record();
  begin_process(job_.settings);
  try {
    run_ranks();
  } catch (const ReplayDifference& error) {
    return {false, error.what() + warnings()};
  } catch (const ReplayOver& over) {
    const std::string missed = missing(/*whole=*/false);
    return {missed.empty(), (missed.empty() ? summary() + over.what() : missed) + warnings()};
  } catch (const StateNotWritten& error) {
    return {false, error.what() + warnings()};
  } catch (const std::exception& error) {
    return broke_off(error.what());
  }
  return came_to_end();
}

// All actors have ended by themselves. So has the record, and has nothing that they did not come to.
ReplayResult Replay::came_to_end() {
  for (const std::string& difference : {fell_short(), record_.rest(), missing(/*whole=*/true)})
    if (!difference.empty()) return {false, difference + warnings()};
  return {true, summary() + ends() + warnings()};
}

// As it must where a rank's record ends before the run did: the others then wait for it.
ReplayResult Replay::broke_off(const std::string& why) {
  const std::string rest = record_.rest();
  const bool rightly = record_.ended_early();
  if (const std::string step = fell_short(); !step.empty())
    return {false, step + " (" + why + ")" + (rest.empty() ? "" : "; " + rest) + warnings()};
  if (!rightly)
    return {false, (rest.empty() ? summary() + "; and then: " + why : rest + " (" + why + ")") + warnings()};
  if (const std::string missed = missing(/*whole=*/false); !missed.empty())
    return {false, missed + warnings()};
  return {true, summary() + ends() + (rest.empty() ? "" : "; " + rest) + warnings()};
}

// Why it ended before it had done what it was told to, for a replay that was not ended for having done it.
std::string Replay::fell_short() const {
  const auto step = options_.break_at ? options_.break_at : options_.until;
  if (!step) return "";
  const auto behind = std::min_element(begun_.begin(), begun_.end());
  if (*behind < *step)
    return "step " + std::to_string(*step) + " was not come to: rank " +
           std::to_string(behind - begun_.begin()) + " was replayed to step " + std::to_string(*behind) +
           " only";
  return options_.break_at ? "the state before step " + std::to_string(*step) + " was not written" : "";
}

// What the record has of a rank that it did not come to: of all its steps, or of those before the one that it
// was replayed to.
std::string Replay::missing(bool whole) {
  for (int r = 0; r < job_.world; ++r) {
    const int64_t last = whole ? std::numeric_limits<int64_t>::max() : begun_[r] - 1;
    if (std::string what = recorders_[r]->missing(last); !what.empty()) return what;
  }
  return "";
}

std::string Replay::summary() const {
  int64_t deliveries = 0, compared = 0;
  for (int r = 0; r < job_.world; ++r) {
    deliveries += record_.rank(r).deliveries();
    compared += recorders_[r]->compared();
  }
  const std::string what = exact() ? " digests, all equal" : " losses, all equal to a tolerance";
  return "replayed " + std::to_string(job_.world) + (job_.world == 1 ? " rank, " : " ranks, ") +
         std::to_string(deliveries) + " messages; " +
         (digests() ? std::to_string(compared) + what
                    : "no digests were recorded (journal.level = \"control\")");
}

// Of a rank that waits for others whose record is shorter, what its own record says is still to come.
std::string Replay::ends() const {
  std::string text;
  for (int r = 0; r < job_.world; ++r) {
    RecordedRank& rank = record_.rank(r);
    if (rank.next_delivery()) text += "; rank " + std::to_string(r) + " was not replayed further";
    rank.read_to_end();
    if (!rank.ended_with_logs())
      text += "; the record of rank " + std::to_string(r) + " ends " + rank.text_of_end();
  }
  return text;
}

// "the run computed with AVX2", "rank 1 computed with AVX2": with what this machine does not; "" = with
// nothing.
std::string Replay::other_processors() const {
  const std::string here = at::get_cpu_capability();
  std::set<std::string> all;
  std::string others;
  for (int r = 0; r < record_.world(); ++r) {
    const std::string& cpu = record_.rank(r).head().cpu;
    all.insert(cpu);
    if (cpu != here)
      others += (others.empty() ? "rank " : ", rank ") + std::to_string(r) + " computed with " + cpu;
  }
  return all.size() == 1 && !others.empty() ? "the run computed with " + *all.begin() : others;
}

std::string Replay::warnings() const {
  const RecordedJob& head = record_.head();
  std::string text;
  const std::string build = build_and_commit("tutti");
  if (head.build != build)
    text += "\nthe run was recorded by " + head.build + ", this is " + build +
            ": what differs may be the code's doing";
  if (const std::string others = other_processors(); !others.empty())
    text += "\n" + others + ", this machine with " + at::get_cpu_capability() +
            ": bits may differ, and losses were compared to a tolerance, nothing else";
  if (job_.settings.collectives.reduction == Reduction::kNative)
    text += "\nnative reduction promises no bits: losses were compared to a tolerance, nothing else";
  return text;
}

}  // namespace

ReplayResult replay(const ReplayOptions& options) {
  Record record(recorded_start(options.run_dir, options.start));
  return Replay(options, record).run();
}

}  // namespace tutti
