#include "data/shards/shard_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "data/shards/fetch_command.h"
#include "io/formats/compressed_file.h"
#include "io/formats/mds_values.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOpen = 2048;   // mapped at once
constexpr std::size_t kMostLocked = 256;  // the same where each has a lock, and so a descriptor
constexpr int64_t kIndexByte = int64_t{1} << 40;
constexpr const char* kPart = ".part";
constexpr const char* kFetchLog = ".fetch.log";  // beside the file, until it is fetched

// The bytes of the lock file.
int64_t byte_of_making(int64_t shard) { return 2 * shard; }
int64_t byte_of_use(int64_t shard) { return 2 * shard + 1; }

// A name that no other thread and no other process has, of a file that gets its own once it is whole.
std::string part_name(const std::string& path) {
  static std::atomic<uint64_t> count = 0;
  return path + '.' + std::to_string(::getpid()) + '.' + std::to_string(++count) + kPart;
}

// What processes that were killed have left of a file. Call with its lock.
void remove_parts(const std::string& path) {
  const fs::path file(path);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(file.filename().string() + '.') && name.find(kPart) != std::string::npos)
      fs::remove(entry.path(), ignored);
  }
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void require_size(const std::string& path, uint64_t bytes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) throw UserError({path}, "there is no such file");
  if (static_cast<uint64_t>(facts.st_size) != bytes)
    throw UserError({path}, "has " + std::to_string(facts.st_size) + " bytes, and by index.json " +
                                std::to_string(bytes));
}

void require_whole(const MdsFile& file, const std::string& path) {
  require_size(path, file.bytes);
  const MappedFile mapped(path);
  if (const std::string wrong = wrong_mds_hash(file, mapped.bytes()); !wrong.empty())
    throw UserError({path}, "is damaged: " + wrong);
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw UserError({path}, "cannot be made: " + error.message() +
                                "; fetched and uncompressed shards go there: with remote, fetch and another "
                                "path they go elsewhere");
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw OperatingError({to}, "cannot be made: " + error.message());
}

// Names become parts of a command line, of a dataset that may be a stranger's.
void require_plain_names(const MdsIndex& index, const std::string& path) {
  const auto require = [&](const MdsFile& file) {
    if (!is_plain_word(file.name))
      throw UserError({path}, "names a file " + shown(file.name) +
                                  "; of names that are fetched by a command, " + kPlainCharacters);
  };
  for (const MdsShard& shard : index.shards) {
    require(shard.raw);
    if (shard.compressed) require(*shard.compressed);
  }
}

// Removes the file at the end of its scope, unless it has been renamed.
struct PartFile {
  std::string path;
  ~PartFile() { ::unlink(path.c_str()); }
};

}  // namespace

ShardFolder::ShardFolder(const Options& options) : options_(options) {
  if (has_remote()) fetch_index();
  index_ = read_mds_index(below(kMdsIndexName));
  if (has_remote()) require_plain_names(index_, below(kMdsIndexName));
}

std::string ShardFolder::path(int64_t number) const { return below(shard(number).raw.name); }

bool ShardFolder::may_remove(const MdsShard& shard) const {
  return has_remote() || (shard.compressed && exists(below(shard.compressed->name)));
}

bool ShardFolder::is_there(int64_t number) const { return exists(path(number)); }

void ShardFolder::fetch_index() const {
  const std::string path = below(kMdsIndexName);
  if (exists(path)) return;
  make_folders(below(".tutti"));
  const ByteLock lock(lock_path(), kIndexByte, ByteLock::Mode::kExclusive);
  if (exists(path)) return;
  remove_parts(path);
  const PartFile part{part_name(path)};
  fetch_file(options_.fetch, options_.remote + '/' + kMdsIndexName, part.path, path + kFetchLog);
  read_mds_index(part.path);
  rename_file(part.path, path);
}

OpenShardPtr ShardFolder::kept(int64_t number) const {
  const std::lock_guard lock(mutex_);
  if (const auto bad = damaged_.find(number); bad != damaged_.end())
    throw UserError({path(number)}, bad->second);
  const auto place = places_.find(number);
  if (place == places_.end()) return nullptr;
  open_.splice(open_.begin(), open_, place->second);
  return place->second->second;
}

OpenShardPtr ShardFolder::keep(int64_t number, OpenShardPtr open) const {
  const std::lock_guard lock(mutex_);
  open_.emplace_front(number, open);
  places_[number] = open_.begin();
  const std::size_t most = options_.most_bytes > 0 ? kMostLocked : kMostOpen;
  uint64_t bytes = 0;
  for (auto shard = open_.begin(); shard != open_.end();) {
    bytes += shard->second->file.bytes().size();
    const bool is_too_much = options_.most_bytes > 0 && bytes > options_.most_bytes;
    if (shard == open_.begin() || (!is_too_much && places_.size() <= most)) {
      ++shard;
      continue;
    }
    if (!is_too_much) shard = std::prev(open_.end());
    places_.erase(shard->first);
    shard = open_.erase(shard);
  }
  return open;
}

OpenShardPtr ShardFolder::open(int64_t number) const {
  if (OpenShardPtr shard = kept(number)) return shard;
  const MdsShard& shard = this->shard(number);
  if (!has_remote() && !shard.compressed) return keep(number, mapped(number, {}));
  make_folders(below(".tutti"));
  const ByteLock lock(lock_path(), byte_of_making(number), ByteLock::Mode::kExclusive);
  if (OpenShardPtr shard = kept(number)) return shard;  // by another thread, meanwhile
  return keep(number, made_and_mapped(number));
}

// The lock of use comes first, so that no other process removes the file between the steps.
OpenShardPtr ShardFolder::made_and_mapped(int64_t number) const {
  std::optional<ByteLock> use;
  if (options_.most_bytes > 0) use.emplace(lock_path(), byte_of_use(number), ByteLock::Mode::kShared);
  try {
    make(number);
    return mapped(number, std::move(use));
  } catch (const UserError& error) {
    if (!may_remove(shard(number))) throw;
    remove(shard(number));
  }
  try {
    if (options_.most_bytes > 0) use.emplace(lock_path(), byte_of_use(number), ByteLock::Mode::kShared);
    make(number);
    return mapped(number, std::move(use));
  } catch (const UserError& error) {
    const std::lock_guard lock(mutex_);
    const std::string& why = damaged_[number] =
        error.message() + (has_remote() ? "; it has been fetched twice" : "");
    throw UserError(error.position(), why);
  }
}

OpenShardPtr ShardFolder::mapped(int64_t number, std::optional<ByteLock> use) const {
  const std::string path = this->path(number);
  if (use) ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // the time of its last use
  require_size(path, shard(number).raw.bytes);
  auto open = std::make_shared<const OpenShard>(std::move(use), path);
  try {
    require_mds_shard(open->file.bytes(), shard(number).samples);
  } catch (const UserError& error) {
    throw UserError({path}, error.message());
  }
  return open;
}

void ShardFolder::make(int64_t number) const {
  const MdsShard& shard = this->shard(number);
  const std::string path = below(shard.raw.name);
  if (exists(path)) return;
  const bool is_remote = has_remote();
  make_room(shard.raw.bytes + (is_remote && shard.compressed ? shard.compressed->bytes : 0));
  make_folders(fs::path(path).parent_path());
  remove_parts(path);
  if (!shard.compressed) {
    if (is_remote) fetch(shard.raw);
    return;
  }
  const std::string compressed = below(shard.compressed->name);
  if (is_remote && !exists(compressed)) fetch(*shard.compressed);
  uncompress(shard);
  if (is_remote) ::unlink(compressed.c_str());
}

void ShardFolder::fetch(const MdsFile& file) const {
  const std::string path = below(file.name);
  remove_parts(path);
  const PartFile part{part_name(path)};
  fetch_file(options_.fetch, options_.remote + '/' + file.name, part.path, path + kFetchLog);
  try {
    require_whole(file, part.path);
  } catch (const UserError& error) {
    throw UserError({path}, error.message());
  }
  rename_file(part.path, path);
}

void ShardFolder::uncompress(const MdsShard& shard) const {
  const std::string from = below(shard.compressed->name), to = below(shard.raw.name);
  require_size(from, shard.compressed->bytes);
  const PartFile part{part_name(to)};
  try {
    uncompress_file(from, shard.compression, shard.raw.bytes, part.path);
  } catch (const UserError& error) {
    throw UserError({from}, error.message());
  }
  rename_file(part.path, to);
}

void ShardFolder::remove(const MdsShard& shard) const {
  ::unlink(below(shard.raw.name).c_str());
  if (has_remote() && shard.compressed) ::unlink(below(shard.compressed->name).c_str());
}

void ShardFolder::make_room(uint64_t bytes) const {
  if (options_.most_bytes == 0) return;
  struct Present {
    std::pair<int64_t, int64_t> used;  // seconds and nanoseconds
    int64_t shard;
    uint64_t bytes;
  };
  std::vector<Present> present;
  uint64_t all = bytes;
  for (int64_t i = 0; i < std::ssize(index_.shards); ++i) {
    struct stat facts {};
    if (!may_remove(shard(i)) || ::stat(path(i).c_str(), &facts) != 0) continue;
    const auto size = static_cast<uint64_t>(facts.st_size);
    present.push_back({{facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec}, i, size});
    all += size;
  }
  std::ranges::sort(present, {}, &Present::used);
  for (const Present& file : present) {
    if (all <= options_.most_bytes) return;
    if (evict(file.shard)) all -= file.bytes;
  }
}

bool ShardFolder::evict(int64_t number) const {
  {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(number);
    if (place != places_.end() && place->second->second.use_count() > 1) return false;
    if (place != places_.end()) {
      open_.erase(place->second);
      places_.erase(place);
    }
  }
  const ByteLock unused = ByteLock::attempt(lock_path(), byte_of_use(number));
  if (!unused.holds()) return false;
  remove(shard(number));
  return true;
}

void ShardFolder::verify(int64_t number) const {
  const OpenShardPtr shard = open(number);
  if (const std::string wrong = wrong_mds_hash(this->shard(number).raw, shard->file.bytes()); !wrong.empty())
    throw UserError({path(number)}, "is damaged: " + wrong);
}

}  // namespace tutti
