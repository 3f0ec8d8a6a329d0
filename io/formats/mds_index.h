#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// index.json of a dataset that MosaicML Streaming's MDSWriter wrote (version 2). Free of libtorch.
namespace tutti {

inline constexpr const char* kMdsIndexName = "index.json";

struct MdsFile {
  std::string name;  // below the dataset's folder
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> hashes;  // algorithm and hexadecimal value
};

struct MdsShard {
  MdsFile raw;
  std::optional<MdsFile> compressed;
  std::string compression;  // "zstd", "zstd:7", "gz", ...; "" if there is no compressed file
  int64_t samples = 0;
};

struct MdsColumn {
  std::string name;
  std::string encoding;               // "jpeg", "ndarray:int32:2049", ...
  std::optional<uint32_t> size = {};  // in bytes, if the same in all samples
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // of every shard, in the order of a sample's bytes
  std::vector<MdsShard> shards;

  int64_t samples() const;
};

// Reads an index.json. Throws UserError with the file: no such index, shards of other formats or of differing
// columns, names that lead out of the folder.
MdsIndex read_mds_index(const std::string& path);

// The first hash of the file that can be computed here (xxHash's) and differs from the hash of `bytes`, as a
// text for an error; "" if no hash differs.
std::string wrong_mds_hash(const MdsFile& file, std::span<const std::byte> bytes);

}  // namespace tutti
