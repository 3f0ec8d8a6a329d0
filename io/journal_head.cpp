#include "io/journal_head.h"

#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace tutti {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JournalHead, recipe, run_dir, resume, nonce, level, world, rank, host, build,
                                   cpu, data_digest, unix_ms)

std::string JournalHead::to_json() const { return nlohmann::json(*this).dump(); }

JournalHead JournalHead::from_json(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<JournalHead>();
  } catch (const nlohmann::json::exception& error) {
    throw OperatingError(std::string("the journal's head cannot be read: ") + error.what());
  }
}

}  // namespace tutti
