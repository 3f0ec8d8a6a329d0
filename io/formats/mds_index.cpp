#include "io/formats/mds_index.h"

#include <algorithm>
#include <set>

#include "io/json/json_text.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using IndexJson = nlohmann::json;

constexpr uint64_t kMostMdsIndexBytes = uint64_t{512} << 20;
constexpr int64_t kMostShardBytes = int64_t{1} << 32;  // places in a shard are uint32
constexpr int64_t kBytesOfPlace = 4;

[[noreturn]] void refuse_index(const std::string& what) { throw UserError(what); }

const IndexJson& member(const IndexJson& object, const char* key) {
  static const IndexJson kNone;
  const auto member = object.find(key);
  return member == object.end() ? kNone : *member;
}

bool is_safe(const std::string& name) {
  if (name.empty() || name.starts_with('/') || name.find('\0') != std::string::npos) return false;
  return ('/' + name + '/').find("/../") == std::string::npos;
}

MdsFile file_of(const IndexJson& json, const char* key) {
  MdsFile file{text_member(json, "basename"), 0, {}};
  if (!is_safe(file.name)) refuse_index(std::string(key) + ".basename names no file of the folder");
  const int64_t bytes = integer_member(json, "bytes", -1);
  if (bytes < 0 || bytes > kMostShardBytes)
    refuse_index(std::string(key) + ".bytes is not in [0, " + std::to_string(kMostShardBytes) + "]");
  file.bytes = static_cast<uint64_t>(bytes);
  const IndexJson& hashes = member(json, "hashes");
  if (!hashes.is_object()) return file;
  for (const auto& [name, value] : hashes.items())
    if (value.is_string()) file.hashes.emplace_back(name, value.get<std::string>());
  return file;
}

std::vector<MdsColumn> columns_of(const IndexJson& shard) {
  const IndexJson &names = member(shard, "column_names"), &encodings = member(shard, "column_encodings"),
                  &sizes = member(shard, "column_sizes");
  if (!names.is_array() || !encodings.is_array() || !sizes.is_array() || names.empty() ||
      names.size() != encodings.size() || names.size() != sizes.size())
    refuse_index("column_names, column_encodings and column_sizes are not three lists of one length");
  std::vector<MdsColumn> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string() || !encodings[i].is_string())
      refuse_index("a column's name or encoding is no text");
    columns.push_back({names[i].get<std::string>(), encodings[i].get<std::string>()});
    if (sizes[i].is_null()) continue;
    const int64_t size = integer_member(IndexJson{{"size", sizes[i]}}, "size", -1);
    if (size < 0 || size >= kMostShardBytes)
      refuse_index("the size of column '" + columns[i].name + "' is no size");
    if (size > 0) columns[i].size = static_cast<uint32_t>(size);
  }
  return columns;
}

MdsShard shard_of(const IndexJson& json) {
  if (!json.is_object()) refuse_index("is no object");
  const std::string format = text_member(json, "format");
  if (format != "mds") refuse_index("has the format '" + format + "'; only mds is read");
  if (integer_member(json, "version") != 2)
    refuse_index("is not of version 2, which is the one that is read");
  MdsShard shard{.raw = file_of(member(json, "raw_data"), "raw_data")};
  if (member(json, "zip_data").is_object()) {
    shard.compressed = file_of(member(json, "zip_data"), "zip_data");
    shard.compression = text_member(json, "compression");
    const std::string kind = shard.compression.substr(0, shard.compression.find(':'));
    if (kind != "zstd" && kind != "gz")
      refuse_index("is compressed by '" + shard.compression + "'; read are zstd, gz and uncompressed shards");
    if (shard.compressed->name == shard.raw.name) refuse_index("has one name for two files");
  }
  shard.samples = integer_member(json, "samples", -1);
  if (shard.samples < 1 || shard.samples > static_cast<int64_t>(shard.raw.bytes) / kBytesOfPlace)
    refuse_index("has no count of samples that " + std::to_string(shard.raw.bytes) + " bytes can hold");
  return shard;
}

bool are_equal(const std::vector<MdsColumn>& a, const std::vector<MdsColumn>& b) {
  return std::ranges::equal(a, b, [](const MdsColumn& x, const MdsColumn& y) {
    return x.name == y.name && x.encoding == y.encoding && x.size == y.size;
  });
}

MdsIndex index_of(const IndexJson& json) {
  if (!json.is_object() || integer_member(json, "version") != 2)
    refuse_index("is no index of version 2 of a Streaming dataset");
  const IndexJson& shards = member(json, "shards");
  if (!shards.is_array() || shards.empty()) refuse_index("names no shards");
  MdsIndex index;
  std::set<std::string> names;
  for (const IndexJson& shard : shards) try {
      index.shards.push_back(shard_of(shard));
      std::vector<MdsColumn> columns = columns_of(shard);
      if (index.columns.empty())
        index.columns = std::move(columns);
      else if (!are_equal(index.columns, columns))
        refuse_index("has other columns than the shards before it");
      if (!names.insert(index.shards.back().raw.name).second) refuse_index("has the file of another shard");
    } catch (const UserError& error) {
      refuse_index("shard " + std::to_string(&shard - &shards.front()) + ": " + error.message());
    }
  return index;
}

template <class Integer>
std::string hexadecimal(Integer value) {
  constexpr int kBits = 8 * sizeof(Integer);
  std::string text;
  for (int shift = kBits - 4; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15];
  return text;
}

// The hash as Python's hexdigest() writes it; "" if the algorithm is unknown.
std::string hash_of(const std::string& algorithm, std::span<const std::byte> bytes) {
  if (algorithm == "xxh64") return hexadecimal(XXH64(bytes.data(), bytes.size(), 0));
  if (algorithm == "xxh32") return hexadecimal(XXH32(bytes.data(), bytes.size(), 0));
  if (algorithm == "xxh3_64") return hexadecimal(XXH3_64bits(bytes.data(), bytes.size()));
  if (algorithm != "xxh128" && algorithm != "xxh3_128") return "";
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return hexadecimal(hash.high64) + hexadecimal(hash.low64);
}

}  // namespace

int64_t MdsIndex::samples() const {
  int64_t count = 0;
  for (const MdsShard& shard : shards) count += shard.samples;
  return count;
}

MdsIndex read_mds_index(const std::string& path) try {
  return index_of(parse_json(PosixDisk().read_text(path, kMostMdsIndexBytes)));
} catch (const IndexJson::exception& error) {
  throw UserError({path}, json_problem(error));
} catch (const OperatingError& error) {
  throw UserError(error.what());
} catch (const UserError& error) {
  throw UserError({path}, printable(error.message()));
}

std::string wrong_mds_hash(const MdsFile& file, std::span<const std::byte> bytes) {
  for (const auto& [algorithm, expected] : file.hashes) {
    const std::string hash = hash_of(algorithm, bytes);
    if (hash.empty()) continue;
    if (hash == lower_case(expected)) return "";
    return "its " + algorithm + " is " + hash + ", and that in index.json " + printable(expected);
  }
  return "";
}

}  // namespace tutti
