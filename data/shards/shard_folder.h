#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "data/shards/byte_lock.h"
#include "io/formats/mds_index.h"
#include "io/mapped_file.h"

namespace tutti {

// A shard that is mapped; not evicted before the object's end.
struct OpenShard {
  OpenShard(std::optional<ByteLock> use, const std::string& path) : use(std::move(use)), file(path) {}

  std::optional<ByteLock> use;  // of a folder that evicts shards
  MappedFile file;
};
using OpenShardPtr = std::shared_ptr<const OpenShard>;

// The shards of an MDS dataset in a local folder. Shards that are compressed are uncompressed there, once.
// With a remote source, shards are fetched at their first read, and shared by the ranks of a host: a fetched
// file gets its name once whole. Locks are in the folder's .tutti/. Thread-safe.
class ShardFolder {
 public:
  struct Options {
    std::string path;
    std::string remote = "";  // "": all files are in the folder
    std::string fetch = "";   // of fetch_file
    uint64_t most_bytes = 0;  // of shards in the folder, without shards in use; 0: no limit
  };

  // Reads index.json, after fetching a missing index.json. Throws UserError with the file, and OperatingError
  // if the command fails.
  explicit ShardFolder(const Options& options);

  const MdsIndex& index() const { return index_; }
  const Options& options() const { return options_; }
  std::string path(int64_t shard) const;  // of its uncompressed file

  // Fetches and uncompresses the shard if needed, then maps the file. A damaged shard is fetched anew, once.
  // Throws UserError with a file that is still damaged, OperatingError if the command fails.
  OpenShardPtr open(int64_t shard) const;
  // Throws UserError if the shard's bytes have another hash than that in index.json.
  void verify(int64_t shard) const;
  // True if the shard can be had without fetching or uncompressing.
  bool is_there(int64_t shard) const;

 private:
  const MdsShard& shard(int64_t number) const { return index_.shards[static_cast<std::size_t>(number)]; }
  bool has_remote() const { return !options_.remote.empty(); }
  bool may_remove(const MdsShard& shard) const;
  std::string below(const std::string& name) const { return options_.path + '/' + name; }
  std::string lock_path() const { return below(".tutti/locks"); }

  OpenShardPtr kept(int64_t shard) const;
  OpenShardPtr keep(int64_t shard, OpenShardPtr open) const;
  void fetch_index() const;
  OpenShardPtr made_and_mapped(int64_t shard) const;
  OpenShardPtr mapped(int64_t shard, std::optional<ByteLock> use) const;
  // Makes a missing uncompressed file. Throws UserError for a damaged file.
  void make(int64_t shard) const;
  void fetch(const MdsFile& file) const;
  void uncompress(const MdsShard& shard) const;
  void remove(const MdsShard& shard) const;
  // Removes shards until there is room for one more of so many bytes: those used last stay.
  void make_room(uint64_t bytes) const;
  bool evict(int64_t shard) const;

  Options options_;
  MdsIndex index_;
  mutable std::mutex mutex_;
  mutable std::list<std::pair<int64_t, OpenShardPtr>> open_;  // those used last at the front
  mutable std::map<int64_t, std::list<std::pair<int64_t, OpenShardPtr>>::iterator> places_;
  mutable std::map<int64_t, std::string> damaged_;  // found so after fetching anew
};

}  // namespace tutti
