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

void put(SharedBytes& file, uint64_t offset, std::span<const std::byte> bytes) {
  auto& all = file.change();
  if (all.size() < offset + bytes.size()) all.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<int64_t>(offset));
}

// Kept whole, kept up to some byte, or lost.
void survive(DiskNode& file, const DiskNode::Write& write, const RandomKey& draw) {
  if (draw.below(3) == 0) return;
  if (write.truncates) return file.durable_bytes.change().clear();
  const std::span<const std::byte> all = write.bytes;
  const bool torn = draw.below(2, 1) == 0;
  const auto kept = all.first(torn ? draw.below(all.size() + 1, 2) : all.size());
  if (!kept.empty()) put(file.durable_bytes, write.offset, kept);
}

// What is left of everything below, which is all there is now.
void settle(DiskNode& node, const RandomKey& draw, uint64_t& counter) {
  for (const auto& write : node.unsynced) survive(node, write, draw.fold_in(counter++));
  node.unsynced.clear();
  node.bytes = node.durable_bytes;
  node.children = node.durable_children;
  for (const auto& [name, child] : node.children) settle(*child, draw, counter);
}

using Twins = std::map<const DiskNode*, DiskNodePtr>;

DiskNodePtr twin_of(const DiskNodePtr& node, Twins& twins) {
  if (!node) return nullptr;
  DiskNodePtr& twin = twins[node.get()];
  if (twin) return twin;
  const DiskNodePtr made = twin = std::make_shared<DiskNode>(*node);
  for (auto* children : {&made->children, &made->durable_children})
    for (auto& [name, child] : *children) child = twin_of(child, twins);
  return made;
}

}  // namespace

DiskTree::DiskTree() : root_(std::make_shared<DiskNode>(DiskNode::Kind::kFolder)) {}

DiskNodePtr DiskTree::find(const std::string& path, bool follow) const {
  fs::path left = fs::absolute(path).lexically_normal();
  for (int links = 0; links < kMostLinks; ++links) {
    DiskNodePtr at = root_;
    fs::path behind = "/";
    bool jumped = false;
    const fs::path names = left.relative_path();
    for (auto name = names.begin(); name != names.end() && !jumped; ++name) {
      if (name->empty()) continue;
      const auto found = at->children.find(name->string());
      if (found == at->children.end()) return nullptr;
      at = found->second;
      const bool last = std::next(name) == names.end();
      if (at->kind != DiskNode::Kind::kLink || (last && !follow)) {
        behind /= *name;
        continue;
      }
      fs::path rest = behind / at->target;
      for (auto more = std::next(name); more != names.end(); ++more) rest /= *more;
      left = rest.lexically_normal();
      jumped = true;
    }
    if (!jumped) return at;
  }
  return nullptr;
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
  fs::path behind = "/";
  for (const auto& name : fs::absolute(path).lexically_normal().relative_path()) {
    if (name.empty()) continue;
    behind /= name;
    DiskNodePtr next = find(behind);
    if (!next) {
      next = std::make_shared<DiskNode>(DiskNode::Kind::kFolder);
      link(behind, next);
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
  if (change.gone.folder) change.gone.folder->children.erase(change.gone.name);
  if (change.come.folder) change.come.folder->children[change.come.name] = change.node;
  unsynced_.push_back(std::move(change));
}

void DiskTree::apply(const NameChange& change) {
  if (change.gone.folder) change.gone.folder->durable_children.erase(change.gone.name);
  if (change.come.folder) change.come.folder->durable_children[change.come.name] = change.node;
}

void DiskTree::sync_names(const DiskNodePtr& folder) {
  std::erase_if(unsynced_, [&](const NameChange& change) {
    if (change.gone.folder != folder && change.come.folder != folder) return false;
    apply(change);
    return true;
  });
}

void DiskTree::write(DiskNode& file, uint64_t offset, std::span<const std::byte> bytes) {
  put(file.bytes, offset, bytes);
  file.unsynced.push_back({false, offset, {bytes.begin(), bytes.end()}});
}

void DiskTree::truncate(DiskNode& file) {
  file.bytes = {};
  file.unsynced.push_back({true, 0, {}});
  file.damaged = false;
}

void DiskTree::sync(DiskNode& file) {
  file.durable_bytes = file.bytes;
  file.unsynced.clear();
}

void DiskTree::lose_power(const RandomKey& draw) {
  uint64_t counter = 0;
  std::set<DiskNodePtr> cut;  // folders of which a change is lost, and so all that came after
  for (const auto& change : unsynced_) {
    const bool lost = cut.count(change.gone.folder) + cut.count(change.come.folder) > 0 ||
                      draw.fold_in(counter++).below(2) == 0;
    if (!lost) {
      apply(change);
      continue;
    }
    for (const DiskNodePtr& folder : {change.gone.folder, change.come.folder})
      if (folder) cut.insert(folder);
  }
  unsynced_.clear();
  settle(*root_, draw, counter);
}

DiskTree DiskTree::copy() const {
  DiskTree tree;
  Twins twins;
  tree.root_ = twin_of(root_, twins);
  for (NameChange change : unsynced_) {
    change.node = twin_of(change.node, twins);
    for (Place* place : {&change.gone, &change.come}) place->folder = twin_of(place->folder, twins);
    tree.unsynced_.push_back(std::move(change));
  }
  return tree;
}

}  // namespace tutti
