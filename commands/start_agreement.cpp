#include "commands/start_agreement.h"

#include <vector>

#include "collectives/agreement.h"
#include "commands/live_environment.h"
#include "job/make_job.h"
#include "job/records/run_journal.h"
#include "recipe/setting.h"
#include "recipe/toml_reader.h"
#include "runtime/launcher.h"
#include "runtime/process/this_process.h"
#include "runtime/random.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kFetchTimeout = std::chrono::hours(24);

// Rounds of statements of all ranks. If a rank states trouble, all ranks throw in that round.
class StartAgreement {
 public:
  StartAgreement(Group& group, Nanoseconds timeout) : group_(group), timeout_(timeout) {}

  std::vector<std::string> round(const Statement& mine) { return round_within(timeout_, mine); }
  std::vector<std::string> round_within(Nanoseconds timeout, const Statement& mine) {
    ++rounds_;
    agrees_ = false;
    std::vector<std::string> texts = agreed_texts(agree(group_, mine, timeout));
    agrees_ = true;
    return texts;
  }
  int rounds() const { return rounds_; }
  bool agrees() const { return agrees_; }  // the last round did not throw

 private:
  Group& group_;
  Nanoseconds timeout_;
  int rounds_ = 0;
  bool agrees_ = true;
};

JobOptions job_options(const StartRequest& request, const Group& group, const std::string& nonce) {
  JobOptions options;
  options.world = group.size();
  options.run_dir = request.options.run_dir;
  options.resume = request.options.resume;
  options.fresh_seed = RandomKey(0, nonce).bits() & 0xffffffff;
  options.nonce = nonce;
  options.components = request.options.components;
  options.rank = group.rank();
  options.hosts.assign(static_cast<std::size_t>(group.size()), request.host);
  return options;
}

std::string first_difference(const std::string& theirs, const std::string& ours) {
  const auto keys = recipe_difference(parse_recipe(theirs, "recipe"), parse_recipe(ours, "recipe"));
  return keys.empty() ? "they are written differently" : keys[0];
}

// What the ranks must have alike: the data, by their digest, and the recipe.
std::string common_text(const Job& job) { return std::to_string(job.data_digest) + '\n' + job.recipe_text; }

// Different recipes, and different data, would give different bits.
void require_same(const std::vector<std::string>& texts) {
  std::vector<std::string> recipes;
  for (const std::string& text : texts) recipes.push_back(text.substr(text.find('\n') + 1));
  for (std::size_t r = 1; r < recipes.size(); ++r) {
    if (recipes[r] == recipes[0] && texts[r] != texts[0])
      throw UserError(
          "rank " + std::to_string(r) +
          " reads other data than rank 0 by the same [data.train]: is it the same file, and does a "
          "command write the same each time?");
    if (recipes[r] != recipes[0])
      throw UserError("rank " + std::to_string(r) +
                      " was given another recipe than rank 0: " + first_difference(recipes[r], recipes[0]));
  }
}

}  // namespace

StartRequest make_request(const RecipeSource& source, const LaunchOptions& options) {
  StartRequest request;
  request.options = options;
  request.host = host_name();
  try {
    request.recipe = source();
    request.settings = RunSettings::read(request.recipe);
    if (request.settings.collectives.backend == Backend::kLocal && launched_rank())
      request.settings.collectives.backend.fail(
          "expected mpi or auto: local joins the ranks of one process, and mpirun started this one");
  } catch (const UserError& error) {
    request.trouble = error.what();
  }
  return request;
}

// Rank 0's, before it has made the job: its nonce. Rank 0 fetches checkpoints first, which may take hours.
std::string first_round(const StartRequest& request, Group& group, StartAgreement& agreement) {
  std::string trouble = request.trouble;
  const bool waits = request.good() && uses_remote(request.recipe, request.options.resume);
  if (waits && group.rank() == 0) try {
      fetch_start(request.recipe, request.options.run_dir, request.options.resume);
    } catch (const UserError& error) {
      trouble = error.what();
    }
  return agreement.round_within(waits ? kFetchTimeout : request.timeout(),
                                {.trouble = trouble, .text = fresh_nonce(request.run_dir())})[0];
}

// Three rounds: rank 0's nonce, facts about per-rank datasets, the data's digest with the resolved recipes.
Job agree_on_job(const StartRequest& request, Group& group) {
  StartAgreement agreement(group, request.timeout());
  const std::string nonce = first_round(request, group, agreement);
  Job job;
  Statement mine;
  try {
    JobOptions options = job_options(request, group, nonce);
    options.all_gather = [&](const std::string& own) { return agreement.round({.text = own}); };
    job = make_job(request.recipe, options);
    mine.text = common_text(job);
  } catch (const std::exception& error) {
    if (!agreement.agrees()) throw;
    mine = {.trouble = whole_text(error), .lacks_memory = tells_lack_of_memory(error)};
  }
  if (agreement.rounds() == 1) agreement.round(mine);  // throws: the job was not made
  require_same(agreement.round(mine));
  return job;
}

}  // namespace tutti
