#include "sim/known_checkpoints.h"

#include <functional>
#include <string_view>

#include "io/checkpoint.h"
#include "io/run_state.h"
#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

uint64_t hash(std::string_view bytes) { return std::hash<std::string_view>()(bytes); }

// Of all there is in it, and where it is: errors name that.
uint64_t hash_of_folder(const Disk& disk, const std::string& folder) {
  Draw whole(hash(folder), "checkpoint");
  for (const std::string& name : disk.list(folder)) {
    const auto bytes = disk.read(folder + "/" + name);
    whole = whole.at(hash(name)).at(hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return whole.bits();
}

KnownCheckpoint read(const Disk& disk, const std::string& folder) try {
  return {"", RunState::from_json(read_checkpoint(disk, folder).state).step};
} catch (const OperatingError& error) {
  return {error.what()};
}

}  // namespace

const KnownCheckpoint& KnownCheckpoints::look(const Disk& disk, const std::string& folder) {
  const auto [found, fresh] = known_.try_emplace(hash_of_folder(disk, folder));
  if (fresh) found->second = read(disk, folder);
  return found->second;
}

}  // namespace tutti
