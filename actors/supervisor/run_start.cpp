#include "actors/supervisor/run_start.h"

#include <utility>

#include "actors/messages/control_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kOwn = "own";

}  // namespace

RunStart::RunStart(const Job& job, int rank, std::string host, RunFolder& folder, CheckpointStore& store,
                   Log& log, Recorder& recorder)
    : job_(job),
      rank_(rank),
      host_(std::move(host)),
      folder_(folder),
      store_(store),
      log_(log),
      recorder_(recorder) {}

Statement RunStart::first_statement(Context& context) {
  if (rank_ != 0) return {};
  try {
    folder_.open(context, host_);
    const CheckpointStore::Choice chosen = choose();
    folder_.write_nonce(job_.nonce);
    return {.text = ControlText({chosen.folder, chosen.own ? kOwn : ""}).text()};
  } catch (const std::exception& error) {
    return {.trouble = error.what()};
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

Prepare RunStart::prepare(const std::vector<Statement>& statements) {
  const auto opening = ControlText::parse(agreed_texts(statements)[0]);
  prepare_ = {opening.field(0), opening.field(1) == kOwn};
  if (!folder_.has_nonce(job_.nonce))
    trouble_ = "the run folder " + folder_.path() + " is not shared: host " + host_ +
               " does not see the file that rank 0 wrote there";
  return prepare_;
}

Statement RunStart::second_statement(Prepared prepared) {
  if (trouble_.empty()) trouble_ = prepared.error;
  prepared_ = std::move(prepared);
  return {.trouble = trouble_};
}

Start RunStart::begin(const std::vector<Statement>& statements) {
  const bool first = rank_ == 0;
  if (first) folder_.remove_nonce();
  agreed_texts(statements);
  if (first) {
    store_.begin(prepared_.step > 0 ? prepare_.checkpoint : "");
    folder_.write_recipe(job_.recipe_text);
    if (const int keep = job_.settings.journal.keep; keep > 0) folder_.prune_journals(keep);
    log_.info(begin_text());
  }
  return {prepared_.position, job_.nonce};
}

std::string RunStart::begin_text() const {
  if (prepare_.checkpoint.empty()) return "training starts";
  if (prepared_.step == 0) return "training starts from " + prepare_.checkpoint;
  return "resumes from " + prepare_.checkpoint + " after step " + std::to_string(prepared_.step);
}

}  // namespace tutti
