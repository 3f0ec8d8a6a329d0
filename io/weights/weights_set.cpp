#include "io/weights/weights_set.h"

#include <set>

#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kMostIndexBytes = uint64_t{256} << 20;

using Json = nlohmann::json;

Json parse_index(const Disk& disk, const std::string& path) try {
  return parse_json<Json>(disk.read_text(path, kMostIndexBytes));
} catch (const Json::parse_error& error) {
  throw UserError({path}, "byte " + std::to_string(error.byte) + ": it is not JSON");
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace

void WeightsSet::add(std::unique_ptr<TensorSource> file, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    entries_[name] = file->at(name);
    homes_[name] = file.get();
  }
  files_.push_back(std::move(file));
}

void WeightsSet::read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const {
  homes_.at(name)->read_numbers(name, first, to);
}

std::map<std::string, std::vector<std::string>> read_weights_index(const Disk& disk,
                                                                   const std::string& path) {
  const Json index = parse_index(disk, path);
  const auto map = index.find("weight_map");
  if (!index.is_object() || map == index.end() || !map->is_object())
    throw UserError({path}, "expected an object with \"weight_map\": names of tensors, each with its file");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      throw UserError({path}, "tensor '" + name + "': expected the name of a file beside the index");
    files[file.get<std::string>()].push_back(name);
  }
  return files;
}

}  // namespace tutti
