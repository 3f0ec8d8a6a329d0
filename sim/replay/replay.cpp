#include "sim/replay/replay.h"

#include <ATen/Version.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/local_ranks.h"
#include "actors/messages/messages.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/newer_format.h"
#include "io/journal/recorded_run.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "job/records/run_journal.h"
#include "recipe/options.h"
#include "recipe/toml_reader.h"
#include "runtime/process/this_process.h"
#include "sim/environment/sim_disk.h"
#include "sim/replay/replay_recorder.h"
#include "sim/replay/saved_checkpoint.h"
#include "sim/simulate/sim_world.h"
#include "tensors/digests.h"

namespace tutti {
namespace {

// Thrown when the replay has done what --until or --break-at asks for.
class ReplayFinished : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// The journals of all ranks of an attempt.
class RecordedRanks final : public DeliveryScript {
 public:
  explicit RecordedRanks(const RecordedRun& run) : run_(run) {
    for (int r = 0; r < run.world(); ++r)
      ranks_.push_back(std::make_unique<RecordedRank>(run.path(r), run.heads[r]));
  }

  int world() const { return static_cast<int>(ranks_.size()); }
  RecordedRank& rank(int r) { return *ranks_[r]; }
  RecordedSteps steps(int r) const { return recorded_steps(run_.path(r)); }
  const RecordedJob& head() const { return run_.heads[0]; }

  const Line* next(int rank) override { return ranks_[rank]->next_delivery(); }
  void advance(int rank) override { ranks_[rank]->advance(); }
  std::optional<Message> from_outside(int rank) override {
    const Line* line = next(rank);
    if (line->message != StopRequested::kName || (!line->from.empty() && line->from != line->to))
      return std::nullopt;
    return Message(StopRequested{});
  }

  // Actors of older programs began with the ranks that they were made for.
  bool is_unrecorded(int rank, std::string_view message) override {
    return message == Join::kName && !ranks_[rank]->has_joins();
  }

  // True if a rank ended badly at the end of its record: it was killed, its record breaks off, or it gave up
  // a silent rank. Other ranks may then wait for messages that no record has.
  bool ended_early() {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
      return !rank->next_delivery() && !rank->ended_without_error();
    });
  }

  // True if no later attempt of the run is recorded.
  bool is_newest(const std::string& run_dir) const { return run_.folder == recorded_start(run_dir); }

  // The next delivery of a rank that is not at the end of its record; "" if all ranks are.
  std::string undelivered() {
    for (int r = 0; r < world(); ++r) {
      if (const Line* line = next(r)) {
        const std::string from = line->from.empty() ? "outside" : std::string(line->from);
        return "rank " + std::to_string(r) + ", " + std::string(line->to) + ": the record continues with " +
               std::string(line->message) + " from " + from + ", which does not arrive";
      }
    }
    return "";
  }

 private:
  RecordedRun run_;
  std::vector<std::unique_ptr<RecordedRank>> ranks_;
};

CheckpointPiece whole_piece(const std::string& name, const at::Tensor& tensor) {
  const Shape shape = tensor.sizes().vec();
  return {name, shape, Shape(shape.size(), 0), shape, tensor.scalar_type(), tensor.contiguous()};
}

class Replay {
 public:
  Replay(const ReplayOptions& options, RecordedRanks& record)
      : options_(options), record_(record), job_(job()), last_steps_(job_.world) {}

  ReplayResult run();

 private:
  Job job();
  bool cpu_stands_in(Setting& recipe) const;
  void before_step(int rank, int64_t step, const Trainee& trainee, const Batch& batch);
  void require_record();
  void require_step(const char* option, const std::optional<int64_t>& step);
  MovedFolder moved() const { return {record_.head().run_dir, options_.run_dir}; }
  bool digests() const { return record_.head().level == JournalLevel::kFull; }
  bool exact() const;
  bool compares_digests() const;
  void run_ranks();
  ReplayResult at_end();
  ReplayResult at_error(const std::string& why);
  ReplayResult equal(const std::string& more);
  std::string unreached_step() const;
  std::string missing(bool whole);
  std::string other_processors() const;
  std::string other_device() const;
  bool sums_differ() const;
  double tolerance() const;  // of losses, if bits may differ
  std::string summary() const;
  std::string other_code() const;
  std::string record_ends() const;
  std::string lost_records() const;
  std::string warnings() const;

  const ReplayOptions& options_;
  RecordedRanks& record_;
  Job job_;
  std::vector<std::shared_ptr<ReplayRecorder>> recorders_;  // by rank
  std::vector<int64_t> last_steps_;                         // by rank, the last step that began
  std::optional<std::string> resumed_;  // the checkpoint that the attempt resumed from, ""; none if unknown
  SimDisk disk_;
  CheckpointManifest dumped_;  // the state of all ranks, for --break-at
  std::set<int> ranks_past_until_;
};

Job Replay::job() {
  const RecordedJob& head = record_.head();
  if (head.own_listeners)
    throw UserError(options_.run_dir +
                    ": a program trained it with algorithms or callbacks of its own, which a replay does not "
                    "have");
  const Setting recipe = parse_recipe(head.recipe, options_.run_dir + "/recipe.toml", options_.overrides);
  JobOptions options;
  options.world = record_.world();
  options.run_dir = options_.run_dir;
  options.resume = head.resume;
  options.nonce = head.nonce;
  options.makes_folders = false;
  for (int r = 0; r < record_.world(); ++r)
    if (head.host != kLocalHost) options.hosts.push_back(record_.rank(r).head().host);
  Setting resolved = resolve_recipe(recipe);
  options.cpu_stands_in = cpu_stands_in(resolved);
  Job job = make_job(std::move(resolved), options);
  job.before_step = [this](int rank, int64_t step, const Trainee& trainee, const Batch& batch) {
    before_step(rank, step, trainee, batch);
  };
  return job;
}

// Chooses the recorded kind of device in the recipe if this machine has it, else the CPU.
bool Replay::cpu_stands_in(Setting& recipe) const {
  const bool recorded = !record_.head().device.empty();
  Setting& section = *recipe.find("device");
  const auto is_here = [&] {
    try {
      return DeviceLibrary::of(section) != nullptr;
    } catch (const UserError&) {
      return false;
    }
  };
  if (recorded)
    recipe.find("collectives")->find("backend")->value = "auto";  // what ranks of a process can have
  if (recorded && !options_.on_cpu && is_here()) return false;
  section.find("kind")->value = "cpu";
  return recorded;
}

void Replay::before_step(int rank, int64_t step, const Trainee& trainee, const Batch& batch) {
  last_steps_[rank] = step;
  if (options_.until && step > *options_.until) ranks_past_until_.insert(rank);
  if (static_cast<int>(ranks_past_until_.size()) == record_.world()) throw ReplayFinished("");
  if (!options_.break_at || step != *options_.break_at) return;
  PosixDisk disk;
  const std::string folder = options_.run_dir + "/replay-step-" + std::to_string(step);
  auto pieces = checkpoint_pieces(trainee);
  const std::size_t saved = pieces.size();
  for (const auto& [name, tensor] : batch.leaves()) pieces.push_back(whole_piece("batch/" + name, tensor));
  const bool last = std::ssize(dumped_.files) + 1 == record_.world();
  try {
    RankFile file = write_rank_file(disk, folder, rank, pieces);
    file.pieces.resize(saved);  // each rank has a batch of its own
    dumped_.files.push_back(std::move(file));
    if (last) write_viewer(disk, folder, dumped_);
  } catch (const OperatingError& error) {
    throw ReplayFailed("the state before step " + std::to_string(step) +
                       " cannot be written: " + error.what());
  }
  if (last) throw ReplayFinished("; the state before step " + std::to_string(step) + " is in " + folder);
}

// True if the replay must reproduce the bits of the record.
bool Replay::exact() const { return other_processors().empty() && other_device().empty() && !sums_differ(); }

// False: losses only, to a tolerance.
bool Replay::compares_digests() const { return exact() && record_.head().digests == kDigestKind; }

void Replay::run_ranks() {
  disk_.mirror(job_.run_dir);
  disk_.mirror(job_.checkpoints);
  LocalRanks ranks(job_, {.script = &record_});
  const auto clock = std::make_shared<SimClock>(ranks.scheduler());
  for (int r = 0; r < job_.world; ++r) {
    const bool compare = digests() && (options_.rank < 0 || options_.rank == r);
    recorders_.push_back(std::make_shared<ReplayRecorder>(
        record_.rank(r), ReplayRecorder::Options{compare, compares_digests(), options_.until, moved(),
                                                 !other_device().empty(), tolerance()}));
    RankEnvironment& environment = ranks.environments()[r];
    environment.clock = clock;
    environment.disk = disk_.view(r);
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
  const auto chosen = record_.rank(0).last_of_start(RecordedInput::kCheckpoint);
  if (chosen)
    resumed_ = moved()(*chosen);
  else if (job_.from.autoresume.is_none() && job_.from.load_path.is_none())
    resumed_ = "";
  if (!resumed_ || resumed_->empty()) return;
  const std::string& folder = *resumed_;
  const PosixDisk disk;
  if (!disk.exists(folder))
    throw UserError(
        folder + ": the checkpoint that this attempt resumed from is not there any more, so it cannot be " +
        "replayed");
  try {
    verify_files(disk, open_checkpoint(disk, folder));
  } catch (const NewerFormat& error) {
    throw UserError(error.what());
  } catch (const OperatingError& error) {
    throw UserError(std::string("the checkpoint that this attempt resumed from cannot be read any more: ") +
                    error.what());
  }
}

// All ranks do the same steps, but the record of one may break off before the others.
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
  if (all.first == 0) throw UserError(asked + "this attempt has no steps");
  if (*step < all.first || *step > all.last)
    throw UserError(asked + "this attempt has steps " + std::to_string(all.first) + " to " +
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
  } catch (const ReplayFailed& error) {
    return {false, error.what() + warnings()};
  } catch (const ReplayFinished& over) {
    const std::string difference = missing(/*whole=*/false);
    return {difference.empty(), (difference.empty() ? summary() + over.what() : difference) + warnings()};
  } catch (const std::exception& error) {
    return at_error(error.what());
  }
  return at_end();
}

// All actors have ended. A difference, if the record has more.
ReplayResult Replay::at_end() {
  for (const std::string& difference : {unreached_step(), record_.undelivered(), missing(/*whole=*/true)})
    if (!difference.empty()) return {false, difference + warnings()};
  return equal("");
}

// The replay was aborted. This is expected if the record of a rank ends early, since others then wait for it.
ReplayResult Replay::at_error(const std::string& why) {
  const std::string undelivered = record_.undelivered();
  const bool expected = record_.ended_early();
  if (const std::string step = unreached_step(); !step.empty())
    return {false, step + " (" + why + ")" + (undelivered.empty() ? "" : "; " + undelivered) + warnings()};
  if (!expected)
    return {false, (undelivered.empty() ? summary() + "; and then: " + why : undelivered + " (" + why + ")") +
                       warnings()};
  if (const std::string difference = missing(/*whole=*/false); !difference.empty())
    return {false, difference + warnings()};
  return equal(undelivered.empty() ? "" : "; " + undelivered);
}

// No digest differs. For a whole attempt, the record must also be complete and lead to the checkpoint.
ReplayResult Replay::equal(const std::string& more) {
  const std::string text = summary() + record_ends() + more;
  if (options_.until || options_.break_at) return {true, text + warnings()};
  if (const std::string lost = lost_records(); !lost.empty())
    return {false, lost + "; up to there: " + text + warnings()};
  if (!record_.is_newest(options_.run_dir)) return {true, text + warnings()};
  const auto checkpoint =
      compare_checkpoint(disk_, job_.checkpoints, job_.settings.checkpoint.set.names, exact());
  if (!checkpoint.same) return {false, checkpoint.text + "; " + text + warnings()};
  return {true, text + (checkpoint.text.empty() ? "" : "; " + checkpoint.text) + warnings()};
}

// Why the replay ended before the step of --until or --break-at; "" if it did not.
std::string Replay::unreached_step() const {
  const auto step = options_.break_at ? options_.break_at : options_.until;
  if (!step) return "";
  const auto slowest = std::min_element(last_steps_.begin(), last_steps_.end());
  if (*slowest < *step)
    return "step " + std::to_string(*step) + " was not reached: rank " +
           std::to_string(slowest - last_steps_.begin()) + " was replayed to step " +
           std::to_string(*slowest) + " only";
  return options_.break_at ? "the state before step " + std::to_string(*step) + " was not written" : "";
}

// A digest of the record that the replay did not reach: of all steps, or of those before a rank's last step.
std::string Replay::missing(bool whole) {
  for (int r = 0; r < job_.world; ++r) {
    const int64_t last = whole ? std::numeric_limits<int64_t>::max() : last_steps_[r] - 1;
    if (std::string text = recorders_[r]->missing(last); !text.empty()) return text;
  }
  return "";
}

std::string Replay::summary() const {
  int64_t deliveries = 0, compared = 0;
  for (int r = 0; r < job_.world; ++r) {
    deliveries += record_.rank(r).deliveries();
    compared += recorders_[r]->compared();
  }
  const std::string what = compares_digests() ? " digests, all equal" : " losses, all equal to a tolerance";
  return "replayed " + std::to_string(job_.world) + (job_.world == 1 ? " rank, " : " ranks, ") +
         std::to_string(deliveries) + " messages; " +
         (digests() ? std::to_string(compared) + what
                    : "no digests were recorded (journal.level = \"control\")");
}

// The ranks whose replay ended before their record, because they wait for others, and records that end early.
std::string Replay::record_ends() const {
  std::string text;
  for (int r = 0; r < job_.world; ++r) {
    RecordedRank& rank = record_.rank(r);
    if (rank.next_delivery()) text += "; rank " + std::to_string(r) + " was not replayed further";
    rank.read_to_end();
    if (!rank.ended_without_error())
      text += "; the record of rank " + std::to_string(r) + " ends " + rank.end_description();
  }
  return text;
}

// A later attempt without a record, a rank whose record is damaged, or ends before the run did: ranks take
// their steps together, so a killed one is at most a step behind, and a checkpoint is of steps that all have
// done.
std::string Replay::lost_records() const {
  // First, since the run may be under way.
  const bool has_saved = resumed_ && record_.is_newest(options_.run_dir);
  const int64_t saved =
      has_saved ? newest_saved_step(job_.checkpoints, job_.settings.checkpoint.set.names, *resumed_) : 0;
  RecordedSteps all;
  for (int r = 0; r < job_.world; ++r) {
    record_.rank(r).read_to_end();
    const RecordedSteps begun = record_.rank(r).begun();
    if (begun.first > 0) all.first = begun.first;
    all.last = std::max(all.last, begun.last);
  }
  if (saved > all.last && !ignored_attempts(options_.run_dir).empty())
    return "the record of a later attempt is lost: the run came to step " + std::to_string(saved) +
           ", and the newest attempt with a record to step " + std::to_string(all.last);
  const int64_t came_to = std::max(all.last - 1, saved);
  for (int r = 0; r < job_.world; ++r) {
    RecordedRank& rank = record_.rank(r);
    rank.read_to_end();  // once more: all that was written until the run came there
    const int64_t last = rank.begun().last > 0 ? rank.begun().last : std::max<int64_t>(all.first - 1, 0);
    if (!rank.is_damaged() && (!rank.breaks_off() || last >= came_to)) continue;
    return "the record of rank " + std::to_string(r) + " cannot be read beyond step " + std::to_string(last) +
           (last < came_to ? ", and the run came to step " + std::to_string(std::max(came_to, all.last))
                           : "");
  }
  return "";
}

// "the run computed with AVX2" or "rank 1 computed with AVX2": instruction sets that differ from this
// machine's.
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

// "the run computed on NVIDIA H100 80GB HBM3"; "" if this replay does too.
std::string Replay::other_device() const {
  const std::string& recorded = record_.head().device;
  return recorded == job_.device(0).name ? "" : "the run computed on " + recorded;
}

// NCCL sums in an order of its own; of two numbers there is one order.
bool Replay::sums_differ() const {
  const Setting recorded = parse_recipe(record_.head().recipe, "recipe");
  const auto backend = CollectiveSettings::kind().read(recorded.at("collectives")).backend;
  const bool maybe_nccl = backend == Backend::kNccl || backend == Backend::kAuto;
  return maybe_nccl && job_.world > 2 && !record_.head().device.empty() &&
         recorded.at("device").at("kind").text() != "test";
}

double Replay::tolerance() const {
  const bool coarse = !other_device().empty() && job_.settings.precision.autocast;
  return coarse ? ReplayRecorder::kTolerance16Bits : ReplayRecorder::kTolerance;
}

// What another build means for a difference.
std::string Replay::other_code() const {
  const bool began = std::ranges::any_of(last_steps_, [](int64_t step) { return step > 0; });
  if (began || record_.steps(0).last == 0) return ": a difference may be due to the code";
  return ", and starts a run with other messages, so no step can be replayed: replay the run with the tutti "
         "that recorded it; `tutti diff` and `tutti timeline` read its journal here, too";
}

std::string Replay::warnings() const {
  const RecordedJob& head = record_.head();
  std::string text;
  if (record_.is_newest(options_.run_dir)) text += ignored_attempts(options_.run_dir);
  const std::string build = build_and_commit("tutti");
  if (head.build != build)
    text += "\nthe run was recorded by " + head.build + ", this is " + build + other_code();
  if (const std::string others = other_processors(); !others.empty())
    text += "\n" + others + ", this machine with " + at::get_cpu_capability() +
            ": bits may differ, so only losses were compared, to a tolerance";
  if (const std::string other = other_device(); !other.empty())
    text += "\n" + other + ", this replay on " + (job_.devices ? job_.device(0).name : "the CPU") +
            ": bits may differ, so only losses were compared, to " + option_text(tolerance()) +
            " of the largest";
  if (sums_differ())
    text += "\nNCCL sums in an order of its own, so only losses were compared, to a tolerance";
  if (digests() && head.digests != kDigestKind)
    text +=
        "\nthe record has digests of another kind than this tutti, so only losses were compared, to a "
        "tolerance";
  return text;
}

}  // namespace

ReplayResult replay(const ReplayOptions& options) {
  RecordedRanks record(recorded_run(options.run_dir, options.start));
  return Replay(options, record).run();
}

}  // namespace tutti
