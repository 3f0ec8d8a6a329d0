#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/exported/program.h"

namespace tutti::exported {

// The calls of a program by the modules that make them, as a tree. A module that is called once, whose calls
// are not interrupted, is a node of it; the calls of others count as their callers'.
struct Module {
  struct Item {
    const Node* node = nullptr;
    std::unique_ptr<Module> module = {};  // if not null
  };

  std::string path;  // "layer1.0"
  std::string type;  // "BasicBlock"
  std::vector<Item> items;
  Module* caller = nullptr;
  std::set<std::string> stored;   // values of stored tensors that it has: no caller above needs them
  std::set<std::string> defined;  // values that it and those below compute

  // What it and those below use and do not have, tensors first; `numbers`: values that are none.
  std::vector<std::string> needed(const std::set<std::string>& numbers) const;
};

// `program` must outlive the tree.
std::unique_ptr<Module> find_modules(const Program& program);

// The values that a node uses.
void add_used(const Node& node, std::vector<std::string>& names);

}  // namespace tutti::exported
