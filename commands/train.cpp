#include "commands/train.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "actors/rank.h"
#include "collectives/local/group.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/transport.h"
#include "collectives/mpi/world.h"
#include "collectives/text_exchange.h"
#include "io/journal/recorded_run.h"
#include "job/run_journal.h"
#include "job/run_report.h"
#include "recipe/setting.h"
#include "recipe/toml_reader.h"
#include "runtime/actor/thread_scheduler.h"
#include "runtime/printable.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/process_watch.h"
#include "runtime/process/this_process.h"
#include "runtime/process/time_limit.h"
#include "runtime/random.h"
#include "runtime/transport.h"
#include "tensors/torch_error.h"
#include "training/time/time.h"

namespace tutti {
namespace {

constexpr int kUserError = 2;
constexpr Nanoseconds kLastWords = std::chrono::seconds(20);  // rank 0 may still write a text and its table
constexpr Nanoseconds kFarewell = std::chrono::seconds(1);
static_assert(kLogsEndWithin + 4 * kFarewell < kLastWords, "other ranks wait for rank 0's slow loggers");
constexpr char kNoTrouble = '+';
constexpr char kTrouble = '!';

// What this rank brings along: a recipe, or why it has none.
struct Order {
  Setting recipe;
  std::string trouble;
  LaunchOptions options;
  std::string host;  // that this rank is on

  bool good() const { return trouble.empty(); }
  Nanoseconds patience() const;
};

// One rank's connection to the others, whatever carries it.
struct Connection {
  Group& group;
  Transport& transport;
  std::string host;
};

// What else its actors reach the outside by. Where a logger hangs it is never destroyed.
struct Outside {
  PosixDisk disk;
  SystemClock clock;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Log> log;
  ThreadScheduler scheduler;
};

struct Ending {
  int exit_code = 0;
  bool leaves_threads = false;  // of loggers that hang
};

Nanoseconds Order::patience() const {
  if (!good()) return std::chrono::seconds(60);
  return std::chrono::seconds(Time::parse(recipe.at("train").at("hang_timeout")).count());
}

Order take_order(const RecipeSource& source, const LaunchOptions& options) {
  Order order;
  order.options = options;
  try {
    order.recipe = source();
    const Setting& backend = order.recipe.at("collectives").at("backend");
    if (backend.text() == "local" && launched_rank())
      backend.fail("expected mpi or auto: local joins the ranks of one process, and mpirun started this one");
  } catch (const UserError& error) {
    order.trouble = error.what();
  }
  order.host = host_name();
  return order;
}

// Every rank says a word, or what its trouble is. One rank's trouble is everybody's: all throw it alike; the
// rank is named where others could do it.
std::vector<std::string> agree(Group& group, const std::string& trouble, const std::string& word,
                               Nanoseconds patience) {
  auto said = exchange_texts(group, trouble.empty() ? kNoTrouble + word : kTrouble + trouble, patience);
  for (std::size_t r = 0; r < said.size(); ++r) {
    if (said[r][0] == kNoTrouble) continue;
    const bool everywhere = std::all_of(said.begin(), said.end(), [&](auto& one) { return one == said[r]; });
    throw UserError((everywhere ? "" : "rank " + std::to_string(r) + ": ") + said[r].substr(1));
  }
  for (auto& one : said) one.erase(0, 1);
  return said;
}

// Rank 0's name for this start, the same on all ranks.
std::string common_nonce(Group& group, const Order& order) {
  return agree(group, order.trouble, fresh_nonce(), order.patience())[0];
}

// The one time that ranks tell each other what they have while they make the job. Each takes it, also one
// that cannot come so far; then all fail.
class Turn {
 public:
  Turn(Group& group, Nanoseconds patience) : group_(group), patience_(patience) {}

  std::vector<std::string> take(const std::string& trouble, const std::string& word) {
    taken_ = failed_ = true;
    auto said = agree(group_, trouble, word, patience_);
    failed_ = false;
    return said;
  }
  void take_untaken(const std::string& trouble) {
    if (!taken_) take(trouble, "");
  }
  bool failed() const { return failed_; }

 private:
  Group& group_;
  Nanoseconds patience_;
  bool taken_ = false;
  bool failed_ = false;
};

JobOptions job_options(const Order& order, Group& group, const std::string& nonce, Turn& turn) {
  JobOptions options;
  options.world = group.size();
  options.run_dir = order.options.run_dir;
  options.resume = order.options.resume;
  options.fresh_seed = Draw(0, nonce).bits() & 0xffffffff;
  options.nonce = nonce;
  options.brought = order.options.brought;
  options.rank = group.rank();
  options.tell_all = [&turn](const std::string& mine) { return turn.take("", mine); };
  options.hosts.assign(static_cast<std::size_t>(group.size()), order.host);
  return options;
}

std::string first_difference(const std::string& theirs, const std::string& ours) {
  const auto keys = recipe_difference(parse_recipe(theirs, "recipe"), parse_recipe(ours, "recipe"));
  return keys.empty() ? "they are written differently" : keys[0];
}

// Only what is the same on all ranks gives the same bits.
void require_same_recipe(Group& group, const Job& job, const std::string& trouble, Nanoseconds patience) {
  const std::string digest = std::to_string(Draw(0, job.recipe_text).bits());
  const auto digests = agree(group, trouble, digest, patience);
  const bool same = std::all_of(digests.begin(), digests.end(), [&](auto& one) { return one == digests[0]; });
  if (same) return;
  const auto recipes = exchange_texts(group, job.recipe_text, patience);
  for (std::size_t r = 1; r < recipes.size(); ++r)
    if (digests[r] != digests[0])
      throw UserError("rank " + std::to_string(r) +
                      " was given another recipe than rank 0: " + first_difference(recipes[r], recipes[0]));
}

Job agreed_job(const Order& order, Group& group) {
  const std::string nonce = common_nonce(group, order);
  Turn turn(group, order.patience());
  Job job;
  std::string trouble;
  try {
    job = make_job(order.recipe, job_options(order, group, nonce, turn));
  } catch (const std::exception& error) {
    if (turn.failed()) throw;
    trouble = one_line(error);
  }
  turn.take_untaken(trouble);
  require_same_recipe(group, job, trouble, order.patience());
  return job;
}

// Ends the process: threads or other ranks may be stuck, so nothing is unwound.
[[noreturn]] void end_with(int exit_code) {
  done_within(kFarewell, [] { std::fflush(nullptr); });
  _exit(exit_code);
}

// A logger that hangs may do so for a disk that has the log and the journal too.
void say_who_hangs(Outside& outside, const std::string& end) {
  std::string who;
  for (const std::string& one : outside.scheduler.left_behind()) who += (who.empty() ? "" : ", ") + one;
  const std::string what =
      who + " hangs or is slow: the run ends without it, and what it has not written is lost";
  const auto tell = [&outside, what] {
    outside.log->warning(what);
    outside.log->flush();
  };
  if (!done_within(kFarewell, tell)) print_warning(what);
  done_within(kFarewell, [&outside, end, who] {
    log_trouble(*outside.log, *outside.recorder);
    outside.recorder->end(end + kEndedWithout + who);
  });
}

Ending run_rank(const Job& job, const Connection& connection) {
  const int rank = connection.group.rank();
  auto outside = std::make_unique<Outside>();
  outside->recorder = make_recorder(job, rank, connection.host);
  const std::string log_path = rank_log_path(job.run_dir, rank);
  outside->log = make_log(log_path, rank, rank == 0);
  auto& [disk, clock, recorder, log, scheduler] = *outside;
  const CrashReport crash(*recorder, rank, log_path);
  if (rank == 0) log->info("seed " + std::to_string(job.seed) + ", " + batch_identity(job));
  RunOutcome outcome;
  const RankPlace place{
      rank, 0, connection.host, prints_to_terminal(), false, process_started_s(), start_child, /*live=*/true};
  const RankActors cast = add_rank(
      scheduler, job, place, {connection.group, connection.transport, disk, clock, *log, *recorder}, outcome);
  const auto stop = [&] { scheduler.post(cast.supervisor, StopRequested{}); };
  const ProcessWatch watch(scheduler, stop, rank, [own = outside.get()] {
    log_last_happenings(*own->log, *own->recorder, own->clock.now());
  });
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    if (outcome.refused) {
      if (rank == 0) discard_journals(job);
      throw;
    }
    recorder->end(error.what());
    log->info(error.what());
    log_trouble(*log, *recorder);
    log_last_happenings(*log, *recorder, clock.now());
    if (first_to_tell((job.run_dir + "/recipe.toml").c_str())) {
      print_error(told_by(rank, error.what()));
      if (job.world > 1) linger();
    }
    end_with(dynamic_cast<const UserError*>(&error) ? kUserError : 1);
  }
  const std::string end = "exit code " + std::to_string(outcome.exit_code);
  if (!scheduler.left_behind().empty()) {
    say_who_hangs(*outside.release(), end);
    return {outcome.exit_code, /*leaves_threads=*/true};
  }
  log_trouble(*log, *recorder);
  recorder->end(end);
  return {outcome.exit_code};
}

// Runs the job once all ranks agree on it. No rank ends before rank 0 has told why it does not run: mpirun
// would end rank 0 too.
Ending run_agreed(const Order& order, Group& group, const std::function<Ending(const Job&)>& run) {
  try {
    if (order.good()) begin_process(order.recipe);
    return run(agreed_job(order, group));
  } catch (const UserError& error) {
    if (group.rank() == 0) print_error(error.what());
    exchange_texts(group, "");
    return {kUserError};
  } catch (const std::exception& error) {
    print_error("rank " + std::to_string(group.rank()) + ": " + error.what());
    end_with(1);
  }
}

Ending train_under_mpi(Order order) {
  const int self = launched_rank().value_or(0);
  std::optional<StartLimit> limit(std::in_place, self, "connecting to the other ranks (MPI_Init)",
                                  order.patience());
  std::optional<StartLimit> leaving;  // outlives the world, whose end waits for every rank
  MpiWorld world(nullptr, nullptr);
  const SystemClock clock;
  MpiGroup group(world, clock, world.all_ranks(), Reduction::kOrdered);
  MpiTransport transport(world);
  limit.reset();
  const std::string host = order.host = world.host_name(world.rank());
  const Ending ending = run_agreed(order, group, [&](const Job& job) {
    if (job.recipe.at("collectives").at("reduction").text() != "native")
      return run_rank(job, {group, transport, host});
    MpiGroup native(world, clock, world.all_ranks(), Reduction::kNative);
    return run_rank(job, {native, transport, host});
  });
  leaving.emplace(self, "leaving the other ranks (MPI_Finalize)", order.patience() + kLastWords);
  return ending;
}

Ending train_alone(const Order& order) {
  const auto group = LocalFabric::make(1)->group(0);
  LoneTransport transport;
  return run_agreed(order, *group, [&](const Job& job) {
    return run_rank(job, {*group, transport, host_name()});
  });
}

}  // namespace

int train(const RecipeSource& recipe, const LaunchOptions& options) {
  hold_stop_signals();
  const Order order = take_order(recipe, options);
  const bool mpi =
      launched_rank() || (order.good() && order.recipe.at("collectives").at("backend").text() == "mpi");
  const Ending ending = mpi ? train_under_mpi(order) : train_alone(order);
  if (ending.leaves_threads && options.ends_process) end_with(ending.exit_code);
  return ending.exit_code;
}

}  // namespace tutti
