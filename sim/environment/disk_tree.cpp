#include "sim/environment/disk_tree.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 16;

void overwrite(SharedBytes& file, uint64_t offset, std::span<const std::byte> bytes) {
  auto& all = file.change();
  if (all.size() < offset + bytes.size()) all.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<int64_t>(offset));
}

// Applies a write wholly, up to some byte, or not at all.
void apply_part(DiskNode& file, const DiskNode::Write& write, const RandomKey& draw) {
  if (draw.below(3) == 0) return;
  if (write.truncates) return file.durable_bytes.change().clear();
  const std::span<const std::byte> all = write.bytes;
  const bool torn = draw.below(2, 1) == 0;
  const auto kept = all.first(torn ? draw.below(all.size() + 1, 2) : all.size());
  if (!kept.empty()) overwrite(file.durable_bytes, write.offset, kept);
}

// Replaces the state of a node and everything below by what survives a power loss.
void lose_unsynced(DiskNode& node, const RandomKey& draw, uint64_t& counter) {
  for (const auto& write : node.unsynced) apply_part(node, write, draw.fold_in(counter++));
  node.unsynced.clear();
  node.bytes = node.durable_bytes;
  node.children = node.durable_children;
  for (const auto& [name, child] : node.children) lose_unsynced(*child, draw, counter);
}

using Copies = std::map<const DiskNode*, DiskNodePtr>;

DiskNodePtr copy_of(const DiskNodePtr& node, Copies& copies) {
  if (!node) return nullptr;
  DiskNodePtr& copy = copies[node.get()];
  if (copy) return copy;
  const DiskNodePtr made = copy = std::make_shared<DiskNode>(*node);
  for (auto* children : {&made->children, &made->durable_children})
    for (auto& [name, child] : *children) child = copy_of(child, copies);
  return made;
}

}  // namespace

DiskTree::DiskTree() : root_(std::make_shared<DiskNode>(DiskNode::Kind::kFolder)) {}

DiskNodePtr DiskTree::find(const std::string& path, bool follow) const { return walk(path, follow).node; }

DiskTree::Found DiskTree::walk(const std::string& path, bool follow) const {
  fs::path target = fs::absolute(path).lexically_normal();
  for (int links = 0; links < kMostLinks; ++links) {
    DiskNodePtr at = root_;
    fs::path walked = "/";
    bool restarted = false;
    const fs::path names = target.relative_path();
    for (auto name = names.begin(); name != names.end() && !restarted; ++name) {
      if (name->empty()) continue;
      const auto child = at->children.find(name->string());
      if (child == at->children.end()) return {nullptr, target};
      at = child->second;
      const bool last = std::next(name) == names.end();
      if (at->kind != DiskNode::Kind::kLink || (last && !follow)) {
        walked /= *name;
        continue;
      }
      fs::path rest = walked / at->target;
      for (auto more = std::next(name); more != names.end(); ++more) rest /= *more;
      target = rest.lexically_normal();
      restarted = true;
    }
    if (!restarted) return {at, target};
  }
  return {nullptr, target};
}

DiskNodePtr DiskTree::parent_of(const std::string& path) const {
  return find(fs::absolute(path).lexically_normal().parent_path());
}

DiskTree::Place DiskTree::place_of(const std::string& path) const {
  const DiskNodePtr folder = parent_of(path);
  TUTTI_ASSERT(folder, "no folder holds " + path);
  return {folder, fs::absolute(path).lexically_normal().filename()};
}

DiskNodePtr DiskTree::make_folders(const std::string& path) {
  DiskNodePtr at = root_;
  fs::path walked = "/";
  for (const auto& name : fs::absolute(path).lexically_normal().relative_path()) {
    if (name.empty()) continue;
    walked /= name;
    DiskNodePtr next = find(walked);
    if (!next) {
      next = std::make_shared<DiskNode>(DiskNode::Kind::kFolder);
      link(walked, next);
      sync_names(at);
    }
    at = next;
  }
  return at;
}

void DiskTree::link(const std::string& path, DiskNodePtr node) {
  change({{}, place_of(path), std::move(node)});
}

void DiskTree::unlink(const std::string& path) { change({place_of(path), {}, nullptr}); }

void DiskTree::rename(const std::string& from, const std::string& to) {
  change({place_of(from), place_of(to), find(from, /*follow=*/false)});
}

void DiskTree::change(NameChange change) {
  if (change.removed.folder) change.removed.folder->children.erase(change.removed.name);
  if (change.added.folder) change.added.folder->children[change.added.name] = change.node;
  unsynced_.push_back(std::move(change));
}

void DiskTree::apply(const NameChange& change) {
  if (change.removed.folder) change.removed.folder->durable_children.erase(change.removed.name);
  if (change.added.folder) change.added.folder->durable_children[change.added.name] = change.node;
}

void DiskTree::sync_names(const DiskNodePtr& folder) {
  std::erase_if(unsynced_, [&](const NameChange& change) {
    if (change.removed.folder != folder && change.added.folder != folder) return false;
    apply(change);
    return true;
  });
}

void DiskTree::write(DiskNode& file, uint64_t offset, std::span<const std::byte> bytes) {
  overwrite(file.bytes, offset, bytes);
  file.unsynced.push_back({false, offset, {bytes.begin(), bytes.end()}});
}

void DiskTree::truncate(DiskNode& file) {
  file.bytes = {};
  file.source.clear();
  file.unsynced.push_back({true, 0, {}});
  file.damaged = false;
}

void DiskTree::sync(DiskNode& file) {
  file.durable_bytes = file.bytes;
  file.unsynced.clear();
}

void DiskTree::lose_power(const RandomKey& draw) {
  uint64_t counter = 0;
  std::set<DiskNodePtr> cut;  // folders that lost a change, and so lose all later ones
  for (const auto& change : unsynced_) {
    const bool lost = cut.count(change.removed.folder) + cut.count(change.added.folder) > 0 ||
                      draw.fold_in(counter++).below(2) == 0;
    if (!lost) {
      apply(change);
      continue;
    }
    for (const DiskNodePtr& folder : {change.removed.folder, change.added.folder})
      if (folder) cut.insert(folder);
  }
  unsynced_.clear();
  lose_unsynced(*root_, draw, counter);
}

DiskTree DiskTree::copy() const {
  DiskTree tree;
  Copies copies;
  tree.root_ = copy_of(root_, copies);
  for (NameChange change : unsynced_) {
    change.node = copy_of(change.node, copies);
    for (Place* place : {&change.removed, &change.added}) place->folder = copy_of(place->folder, copies);
    tree.unsynced_.push_back(std::move(change));
  }
  return tree;
}

}  // namespace tutti
