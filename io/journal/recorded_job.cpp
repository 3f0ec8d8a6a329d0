#include "io/journal/recorded_job.h"

#include "io/formats/json_text.h"
#include "runtime/error.h"

namespace tutti {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecordedJob, recipe, run_dir, resume, nonce, level, world,
                                                rank, host, build, cpu, data_digest, unix_ms, own_listeners)

std::string RecordedJob::to_json() const { return nlohmann::json(*this).dump(); }

RecordedJob RecordedJob::from_json(const std::string& text) {
  try {
    return parse_json(text).get<RecordedJob>();
  } catch (const nlohmann::json::exception& error) {
    throw OperatingError(std::string("the head of the journal cannot be read: ") + error.what());
  }
}

}  // namespace tutti
