#include "actors/supervisor/run_start.h"

#include <algorithm>
#include <utility>

#include "actors/messages/control_text.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

constexpr const char* kOwn = "own";
constexpr const char* kDamaged = "damaged";

Statement trouble_of(const std::exception& error) {
  return {.trouble = error.what(), .lacks_memory = tells_lack_of_memory(error)};
}

}  // namespace

RunStart::RunStart(const Job& job, std::string host, RunFolder& folder, CheckpointStore& store, Log& log,
                   Recorder& recorder)
    : job_(job), host_(std::move(host)), folder_(folder), store_(store), log_(log), recorder_(recorder) {}

Statement RunStart::opening(Context& context, int rank) {
  rank_ = rank;
  if (rank_ != 0) return {};
  try {
    folder_.open(context, host_, log_);
  } catch (const std::exception& error) {
    return trouble_of(error);
  }
  return naming();
}

Statement RunStart::naming() {
  if (rank_ != 0) return {};
  try {
    const CheckpointStore::Choice chosen = choose();
    if (!wrote_nonce_) folder_.write_nonce(job_.nonce);
    wrote_nonce_ = true;
    return {.text = ControlText({chosen.folder, chosen.own ? kOwn : ""}).text()};
  } catch (const std::exception& error) {
    return trouble_of(error);
  }
}

// Ownership is recorded only if the recipe allows both a checkpoint of this run and one of another.
CheckpointStore::Choice RunStart::choose() {
  CheckpointStore::Choice chosen = store_.choose(job_.from);
  chosen.folder = recorder_.input(RecordedInput::kCheckpoint, std::move(chosen.folder));
  if (!job_.from.autoresume.is_none() && !job_.from.load_path.is_none())
    chosen.own =
        recorder_.input(RecordedInput::kCheckpointOwner, std::string(chosen.own ? kOwn : "")) == kOwn;
  return chosen;
}

Verify RunStart::named(const std::vector<Statement>& statements) {
  const auto opening = ControlText::parse(agreed(statements)[0]);
  prepare_ = {opening.field(0), opening.field(1) == kOwn};
  if (!folder_.has_nonce(job_.nonce))
    trouble_ = "the run folder " + folder_.path() + " is not shared: host " + host_ +
               " does not see the file that rank 0 wrote there";
  return {prepare_.checkpoint};
}

Statement RunStart::verification(const Verified& verified) const {
  if (!trouble_.empty()) return {.trouble = trouble_};
  if (verified.files == FilesFound::kHidden)
    return {.trouble = "host " + host_ +
                       " does not see the checkpoint that rank 0 starts from: " + verified.problem};
  if (verified.files == FilesFound::kDamaged)
    return {.text = ControlText({kDamaged, verified.problem}).text()};
  return {};
}

// The damage that the lowest rank found is named.
bool RunStart::good(const std::vector<Statement>& statements) {
  const std::vector<std::string> texts = agreed(statements);
  const auto damaged = std::ranges::find_if(texts, [](const std::string& text) { return !text.empty(); });
  if (damaged == texts.end()) return true;
  if (damaged != texts.begin()) TUTTI_PROBE("resume: another rank than 0 finds the damage");
  store_.reject(prepare_.checkpoint, ControlText::parse(*damaged).field(1));
  return false;
}

Statement RunStart::restoring(Prepared prepared) {
  if (trouble_.empty()) trouble_ = prepared.error;
  prepared_ = std::move(prepared);
  return {.trouble = trouble_, .lacks_memory = prepared_.lacks_memory};
}

void RunStart::begin(const std::vector<Statement>& statements) {
  agreed(statements);
  if (rank_ != 0) return;
  folder_.remove_nonce();
  store_.begin(prepared_.step > 0 ? prepare_.checkpoint : "");
  folder_.write_recipe(job_.recipe_text);
  if (const int keep = job_.settings.journal.keep; keep > 0) folder_.prune_journals(keep);
  log_.info(begin_text());
}

// Without the nonce, if there is trouble.
std::vector<std::string> RunStart::agreed(const std::vector<Statement>& statements) try {
  return agreed_texts(statements);
} catch (const UserError&) {
  if (wrote_nonce_) folder_.remove_nonce();
  throw;
}

std::string RunStart::begin_text() const {
  if (prepare_.checkpoint.empty()) return "training starts";
  if (prepared_.step == 0) return "training starts from " + prepare_.checkpoint;
  return "resumes from " + prepare_.checkpoint + " after step " + std::to_string(prepared_.step);
}

}  // namespace tutti
