#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/random.h"

namespace tutti {

// A file's bytes. Copies share them until one is changed: power losses are tried on copies of whole disks.
class SharedBytes {
 public:
  const std::vector<std::byte>& get() const { return *bytes_; }
  std::vector<std::byte>& change() {
    if (bytes_.use_count() > 1) bytes_ = std::make_shared<std::vector<std::byte>>(*bytes_);
    return *bytes_;
  }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_ = std::make_shared<std::vector<std::byte>>();
};

// A file, a folder or a symbolic link, twice: as processes see it, and as it would be found after a power
// loss.
struct DiskNode {
  enum class Kind { kFile, kFolder, kLink };
  using Children = std::map<std::string, std::shared_ptr<DiskNode>>;
  struct Write {
    bool truncates = false;
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  explicit DiskNode(Kind kind) : kind(kind) {}

  Kind kind;
  std::string target;  // of a link
  SharedBytes bytes, durable_bytes;
  std::vector<Write> unsynced;
  bool damaged = false;  // a write was lost or torn, and nobody was told
  Children children, durable_children;
};
using DiskNodePtr = std::shared_ptr<DiskNode>;

// Files and folders in memory that know what of them would survive a power loss: a file's bytes once it is
// synced, a name in a folder once the folder is. What is not synced may survive, be torn or be lost: names in
// a folder up to some change, each write of a file on its own.
class DiskTree {
 public:
  DiskTree();
  DiskTree(DiskTree&&) = default;
  DiskTree& operator=(DiskTree&&) = default;

  // Null when there is none. Links on the way are followed, the last one if `follow`.
  DiskNodePtr find(const std::string& path, bool follow = true) const;
  // The folder that holds the name, or null.
  DiskNodePtr parent_of(const std::string& path) const;

  // Each of `path`'s folders is there and durable.
  DiskNodePtr make_folders(const std::string& path);
  // Names; what one of them stood for before is gone.
  void link(const std::string& path, DiskNodePtr node);
  void unlink(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void sync_names(const DiskNodePtr& folder);

  static void write(DiskNode& file, uint64_t offset, std::span<const std::byte> bytes);
  static void truncate(DiskNode& file);
  static void sync(DiskNode& file);

  void lose_power(const RandomKey& draw);
  DiskTree copy() const;

 private:
  struct Place {
    DiskNodePtr folder;
    std::string name;
  };
  struct NameChange {
    Place gone, come;  // either may be none
    DiskNodePtr node;  // that comes
  };
  static void apply(const NameChange& change);
  Place place_of(const std::string& path) const;
  void change(NameChange change);

  DiskNodePtr root_;
  std::deque<NameChange> unsynced_;
};

}  // namespace tutti
