#include "training/loggers/trackers/mlflow_store.h"

#include "io/json/json_line.h"
#include "io/json/json_text.h"
#include "io/replaced_file.h"
#include "runtime/disk.h"
#include "training/loggers/trackers/tracked_names.h"

namespace tutti {
namespace {

constexpr int kMlflowIdCharacters = 32, kMlflowIdBase = 16;  // as of MLflow's own ids
constexpr uint64_t kMostIds = 1 << 16;                       // bytes of the file

std::string ids_path(const LogStart& start) { return start.run_dir + "/" + kMlflowFolder + "/run.json"; }

}  // namespace

MlflowIds MlflowIds::load(Disk& disk, const LogStart& start, const std::string& tracking_uri,
                          int64_t unix_ms) {
  if (start.resumes && disk.exists(ids_path(start))) {
    const auto json = parse_json(disk.read_text(ids_path(start), kMostIds), nullptr, false);
    if (text_member(json, "tracking_uri") == tracking_uri && !text_member(json, "nonce").empty())
      return {tracking_uri,
              text_member(json, "nonce"),
              text_member(json, "experiment_id"),
              text_member(json, "run_id"),
              integer_member(json, "start_ms"),
              integer_member(json, "sent")};
  }
  return {.tracking_uri = tracking_uri,
          .nonce = tracked_id(start, unix_ms, kMlflowIdCharacters, kMlflowIdBase),
          .start_ms = unix_ms};
}

void MlflowIds::save(Disk& disk, const LogStart& start) const {
  disk.make_folders(start.run_dir + "/" + kMlflowFolder);
  replace_file(disk, ids_path(start),
               json_line({{"tracking_uri", tracking_uri},
                          {"nonce", nonce},
                          {"experiment_id", experiment_id},
                          {"run_id", run_id},
                          {"start_ms", start_ms},
                          {"sent", sent}}) +
                   "\n");
}

}  // namespace tutti
