#include "models/exported/modules.h"

#include <algorithm>
#include <utility>

namespace tutti::exported {
namespace {

struct Placed {
  const Node* node;
  std::vector<Frame> frames;
};

// Calls [begin, end) within the frame of this depth.
struct Segment {
  std::size_t begin, end, depth;
  bool is_module = false;
};

class Finder {
 public:
  explicit Finder(const Program& program) {
    for (const Node& node : program.graph.nodes) {
      auto frames = node.frames;
      if (frames.empty() && !nodes_.empty()) frames = nodes_.back().frames;
      nodes_.push_back({&node, std::move(frames)});
    }
  }

  std::unique_ptr<Module> find() {
    auto whole = std::make_unique<Module>();
    if (!nodes_.empty() && !nodes_[0].frames.empty()) whole->type = nodes_[0].frames[0].type;
    fill(*whole, {0, nodes_.size(), 0});
    return whole;
  }

 private:
  const Frame* frame(std::size_t node, std::size_t depth) const {
    const auto& frames = nodes_[node].frames;
    return depth < frames.size() ? &frames[depth] : nullptr;
  }

  // The calls of the segment's own, each alone, and those of the modules below it.
  std::vector<Segment> split(const Segment& whole) const {
    std::vector<Segment> parts;
    for (std::size_t i = whole.begin; i < whole.end;) {
      const Frame* const below = frame(i, whole.depth + 1);
      std::size_t end = i + 1;
      if (below)
        while (end < whole.end && frame(end, whole.depth + 1) &&
               frame(end, whole.depth + 1)->call == below->call)
          ++end;
      parts.push_back({i, end, whole.depth + 1, below != nullptr});
      i = end;
    }
    return parts;
  }

  const std::string& path(const Segment& segment) const { return frame(segment.begin, segment.depth)->path; }

  void fill(Module& module, const Segment& whole) {
    std::vector<Segment> parts = split(whole);
    for (bool changed = true; std::exchange(changed, false);) {
      std::map<std::string, int> calls;
      for (const Segment& part : parts)
        if (part.is_module) ++calls[path(part)];
      std::vector<Segment> next;
      for (const Segment& part : parts) {
        if (!part.is_module || (calls[path(part)] == 1 && is_below(path(part), module.path))) {
          next.push_back(part);
          continue;
        }
        changed = true;
        for (const Segment& inner : split(part)) next.push_back(inner);
      }
      parts = std::move(next);
    }
    for (const Segment& part : parts) add(module, part);
  }

  static bool is_below(const std::string& path, const std::string& above) {
    return !path.empty() && (above.empty() || path.starts_with(above + "."));
  }

  void add(Module& module, const Segment& part) {
    if (!part.is_module) {
      module.items.push_back({nodes_[part.begin].node});
    } else {
      auto below = std::make_unique<Module>();
      below->path = path(part);
      below->type = frame(part.begin, part.depth)->type;
      below->caller = &module;
      fill(*below, part);
      module.items.push_back({nullptr, std::move(below)});
    }
  }

  std::vector<Placed> nodes_;
};

void define(Module& module) {
  for (auto& item : module.items) {
    if (item.node) {
      module.defined.insert(item.node->outputs.begin(), item.node->outputs.end());
    } else {
      define(*item.module);
      module.defined.insert(item.module->defined.begin(), item.module->defined.end());
    }
  }
}

void find_users(Module& module, std::map<std::string, std::vector<Module*>>& users) {
  for (auto& item : module.items) {
    if (item.module) {
      find_users(*item.module, users);
      continue;
    }
    std::vector<std::string> used;
    add_used(*item.node, used);
    for (const std::string& name : used) users[name].push_back(&module);
  }
}

std::vector<Module*> callers(Module* module) {
  std::vector<Module*> all;
  for (; module; module = module->caller) all.push_back(module);
  std::ranges::reverse(all);
  return all;
}

// The module that has a stored tensor: the lowest that all its users are in, and whose name begins its name.
Module* owner(Module& whole, const std::vector<Module*>& users, const std::string& name) {
  if (users.empty()) return &whole;
  std::vector<Module*> common = callers(users.front());
  for (Module* const user : users) {
    const std::vector<Module*> others = callers(user);
    const auto end = std::ranges::mismatch(common, others).in1;
    common.erase(end, common.end());
  }
  while (!common.back()->path.empty() && !name.starts_with(common.back()->path + ".")) common.pop_back();
  return common.back();
}

void add_needed(const Module& module, const std::set<std::string>& defined,
                const std::set<std::string>& stored, std::vector<std::string>& needed) {
  std::set<std::string> has = stored;
  has.insert(module.stored.begin(), module.stored.end());
  for (const auto& item : module.items) {
    if (item.module) {
      add_needed(*item.module, defined, has, needed);
      continue;
    }
    std::vector<std::string> used;
    add_used(*item.node, used);
    for (const std::string& name : used)
      if (!defined.contains(name) && !has.contains(name) && std::ranges::find(needed, name) == needed.end())
        needed.push_back(name);
  }
}

void add_used(const Operand& operand, std::vector<std::string>& names) {
  if (operand.kind == Operand::Kind::kValue) names.push_back(operand.value);
  for (const Operand& item : operand.items) add_used(item, names);
}

}  // namespace

void add_used(const Node& node, std::vector<std::string>& names) {
  for (const auto& [name, operand] : node.inputs) add_used(operand, names);
}

std::vector<std::string> Module::needed(const std::set<std::string>& numbers) const {
  std::vector<std::string> names;
  add_needed(*this, defined, {}, names);
  std::ranges::stable_partition(names, [&](const std::string& name) { return !numbers.contains(name); });
  return names;
}

std::unique_ptr<Module> find_modules(const Program& program) {
  auto whole = Finder(program).find();
  define(*whole);
  std::map<std::string, std::vector<Module*>> users;
  find_users(*whole, users);
  for (const Operand& output : program.graph.outputs)
    if (output.kind == Operand::Kind::kValue) users[output.value].push_back(whole.get());
  for (const auto& [value, stored] : program.stored)
    owner(*whole, users[value], stored.name)->stored.insert(value);
  return whole;
}

}  // namespace tutti::exported
