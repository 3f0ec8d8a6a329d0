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

// The bytes of a file, copied on write: power losses are tried on copies of whole disks.
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

// A file, folder or symbolic link: as processes see it, and (durable_*) as synced.
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
  std::string target;  // for links
  std::string source;  // the real file that holds the bytes, until the file is opened for writing; "" = none
  SharedBytes bytes, durable_bytes;
  std::vector<Write> unsynced;
  bool damaged = false;  // a write was lost or torn without an error
  Children children, durable_children;
};
using DiskNodePtr = std::shared_ptr<DiskNode>;

// Files and folders in memory that simulate power losses. Synced bytes of a file and synced names of a folder
// survive. An unsynced write to a file may survive, be torn or be lost; unsynced changes to the names of a
// folder survive up to a drawn change.
class DiskTree {
 public:
  DiskTree();
  DiskTree(DiskTree&&) = default;
  DiskTree& operator=(DiskTree&&) = default;

  // Null if the path does not exist. Follows links, the last link only if `follow`.
  DiskNodePtr find(const std::string& path, bool follow = true) const;
  // The path behind the links of `path` that are in the tree, also of a missing file.
  std::string behind_links(const std::string& path) const { return walk(path, /*follow=*/true).path; }
  // The folder that holds the name, or null.
  DiskNodePtr parent_of(const std::string& path) const;

  // Makes the folder and its parents, durable; returns the folder.
  DiskNodePtr make_folders(const std::string& path);
  // Changes of names; a name that exists is replaced.
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
    Place removed, added;  // without a folder: none
    DiskNodePtr node;      // with the added name
  };
  struct Found {
    DiskNodePtr node;
    std::string path;
  };
  static void apply(const NameChange& change);
  Found walk(const std::string& path, bool follow) const;
  Place place_of(const std::string& path) const;
  void change(NameChange change);

  DiskNodePtr root_;
  std::deque<NameChange> unsynced_;
};

}  // namespace tutti
